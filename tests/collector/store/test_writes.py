"""What both engines must do with what arrives: keep it once, and say what is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, Table, func, select

from roof_agent.records import Measurement, ModelPart, ModelRef, Record
from roof_agent.wire import device_message, record_message
from roof_collector.ingest.convert import device_columns, rows_of
from roof_collector.store.export import run_document
from roof_collector.store.parts import get_model
from roof_collector.store.rows import Batch, Beat, Farewell, Greeting, Receipt, Welcome
from roof_collector.store.schema import device, layer, model_part, rejection, run
from roof_collector.store.schema import measurement as measurement_table
from roof_collector.store.writes import write

RUN = "0123-4567-89ab"
FINGERPRINT = "f" * 64
RunOf = Callable[..., list[Record]]


class Store:
    """Writes to a database as one device's session does."""

    def __init__(self, engine: Engine, facts: dict[str, Any]) -> None:
        self.engine = engine
        self.facts = facts
        self.now_ns = 1000
        self.device_id = self.greet().device_id

    def write(self, *jobs: Any) -> list[Any]:
        self.now_ns += 1
        with self.engine.begin() as connection:
            return write(connection, jobs, self.now_ns)

    def greet(self, *run_ids: str, stream: str = "stream") -> Welcome:
        (welcome,) = self.write(Greeting(self.facts, run_ids, stream))
        assert isinstance(welcome, Welcome)
        return welcome

    def batch(self, records: Sequence[Record], run_id: str = RUN, stream: str = "stream") -> Batch:
        rows = rows_of([record_message(record) for record in records], FINGERPRINT)
        return Batch(self.device_id, run_id, stream, rows)

    def send(self, records: Sequence[Record], run_id: str = RUN) -> Receipt:
        (receipt,) = self.write(self.batch(records, run_id))
        assert isinstance(receipt, Receipt)
        return receipt

    def count(self, table: Table) -> int:
        with self.engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()

    def run(self, run_id: str = RUN) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(select(run).where(run.c.run_id == run_id)).one()

    def document(self) -> dict[str, Any]:
        with self.engine.connect() as connection:
            found = run_document(connection, RUN)
        assert found is not None
        return found


@pytest.fixture
def store(engine: Engine, request: pytest.FixtureRequest) -> Store:
    message = device_message(request.getfixturevalue("device"))
    return Store(engine, device_columns(message, "0.1.0"))


def test_every_field_comes_back(store: Store, run_of: RunOf, measurement: Measurement) -> None:
    assert store.send(run_of(measurement)) == Receipt(3)
    document = store.document()
    (found,) = document["measurements"]
    statistics = {"n": 5, "min": 1.0, "q10": 1.1, "median": 2.0, "q90": 3.0, "max": 4.0}
    statistics |= {"mean": 2.2, "mad": 0.5, "ci_low": 1.5, "ci_high": 2.5}
    conditions = {
        "monotonic_ns": 11,
        "frequency_hz": {"0": 1.8e9, "3": 1.5e9},
        "governor": "ondemand",
        "temperature_celsius": {"soc": 61.5, "outside": -3.0},
        "throttled_bits": 0x50000,
        "load_1m": 0.25,
        "steal_ticks": 0,
        "memory_available_bytes": 1 << 31,
        "clock_hz": 1.79e9,
    }
    nodes = [
        {"seq": 1, "position": 0, "name": "conv1", "op_type": "Conv", **statistics, "n": 3},
        {"seq": 1, "position": 1, "name": "", "op_type": "Relu", **statistics, "n": 3},
    ]
    assert found == {
        "seq": 1,
        "received_at": store.now_ns,
        "probe": "network",
        "subject": "mobilenet_v1",
        "quantity": "seconds",
        "element_type": "float32",
        "threads": 4,
        "cpus": [0, 1, 2, 3],
        "backend": "onnxruntime",
        "backend_version": "1.22",
        "isa": "neon",
        "compiler": "gcc 12",
        "parameters": {"batch": "1", "mode": "größer"},
        "outcome": "ok",
        "reason": "",
        "grade": "noisy",
        "grade_reasons": ["load 0.25"],
        **statistics,
        "repetitions": [1.0, 1.25, 2.0, 3.0, 4.0],
        "stream_bytes": 24.0,
        "bus_bytes": 32.0,
        "flops": 16.0,
        "working_set_bytes": 1 << 26,
        "conditions_before": conditions,
        "conditions_after": {**conditions, "monotonic_ns": 99},
        "started_monotonic_ns": 12,
        "elapsed_seconds": 1.5,
        "cpu_share": 0.98,
        "involuntary_switches": 7,
        "network": {
            "seq": 1,
            "model_name": "mobilenet_v1",
            "model_sha256": "a" * 64,
            "executed_sha256": "b" * 64,
            "provider": "CPUExecutionProvider",
            "optimization": "all",
            "unjoined_seconds": 0.001,
            "profiled_seconds": 2.5,
            "nodes": nodes,
        },
    }
    found = document["run"]
    assert (found["preset"], found["boot_id"], found["planned"], found["labels"]) == (
        "quick",
        "boot",
        1,
        {"why": "test"},
    )
    assert (found["complete"], found["ok"], found["ended_at"]) == (True, 1, store.now_ns)
    assert found["device_facts"]["clusters"] == [
        {"core": "cortex-a72", "cpus": [0, 1, 2, 3], "max_hz": 1.8e9}
    ]


def test_unknown_is_null(store: Store, run_of: RunOf, measurement: Measurement) -> None:
    bare = Measurement("peak", "fma", "flops_per_s", measurement.outcome, statistics=measurement.statistics)
    store.send(run_of(bare))
    (found,) = store.document()["measurements"]
    unknown = {name for name, value in found.items() if value is None}
    assert unknown == {
        "grade", "stream_bytes", "bus_bytes", "flops", "working_set_bytes", "conditions_before",
        "conditions_after", "cpu_share", "involuntary_switches", "network",
    }  # fmt: skip


def test_what_is_sent_again_is_there_once(store: Store, run_of: RunOf, measurement: Measurement) -> None:
    records = run_of(*[measurement] * 6)
    assert store.send(records[:5]).next_seq == 5
    before = store.document()
    assert store.send(records[:5]).next_seq == 5
    assert store.send(records[1:4]).next_seq == 5
    assert store.document()["measurements"] == before["measurements"]
    # The new half of a batch counts.
    assert store.send(records[3:]).next_seq == 8
    assert [one["seq"] for one in store.document()["measurements"]] == [1, 2, 3, 4, 5, 6]
    assert store.count(layer) == 12


def test_a_number_used_again_for_something_else_changes_nothing(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    assert measurement.network is not None
    bare = replace(measurement, network=None)
    grown = replace(
        measurement.network, nodes=tuple(replace(measurement.network.nodes[0], index=i) for i in range(9))
    )
    store.send(run_of(bare, measurement)[:3])
    before = store.document()["measurements"]
    again = replace(measurement, subject="other", network=grown)
    assert store.send(run_of(again, again, bare)).next_seq == 5
    assert store.document()["measurements"][:2] == before


def test_a_gap_stores_nothing_and_says_where_to_go_on(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(*[measurement] * 6)
    assert store.send(records[2:4]) == Receipt(0)
    store.send(records[:2])
    assert store.send(records[5:]) == Receipt(2)
    assert store.count(measurement_table) == 1


def test_batches_of_one_transaction_follow_each_other(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(*[measurement] * 4)
    other = "ffff-ffff"
    receipts = store.write(
        store.batch(records[:2]),
        store.batch(records[:3], other),
        store.batch(records[2:4]),
        store.batch(records[5:], other),
        store.batch(records[1:]),
    )
    assert [receipt.next_seq for receipt in receipts] == [2, 3, 4, 3, 6]
    assert (store.run().next_seq, store.run(other).next_seq) == (6, 3)
    assert store.count(measurement_table) == 4 + 2


def test_runs_of_one_name_on_two_devices_are_two(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    store.send(run_of(measurement))
    (welcome,) = store.write(Greeting({**store.facts, "fingerprint": "e" * 64}, (RUN,), "other"))
    assert welcome.next_seqs == {RUN: 0}
    assert welcome.device_id != store.device_id
    store.device_id = welcome.device_id
    assert store.send(run_of(measurement)[:2]).next_seq == 2
    assert store.count(run) == 2


def test_a_rejected_record_is_noted_and_the_next_one_stored(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    poisoned = replace(measurement, elapsed_seconds=float("nan"))
    receipt = store.send(run_of(measurement, poisoned, measurement))
    assert receipt == Receipt(5, ((2, "elapsed_seconds is nan"),))
    document = store.document()
    assert [one["seq"] for one in document["measurements"]] == [1, 3]
    assert document["rejections"] == [
        {"seq": 2, "received_at": store.now_ns, "reason": "elapsed_seconds is nan"}
    ]


def test_a_device_is_one_row_with_what_was_last_said(store: Store) -> None:
    first = store.now_ns
    store.facts["kernel"] = "6.2"
    assert store.greet().device_id == store.device_id
    with store.engine.connect() as connection:
        row = connection.execute(select(device)).one()
    assert (row.kernel, row.first_seen_at, row.last_seen_at) == ("6.2", first, store.now_ns)


def test_a_greeting_is_told_where_its_runs_are(store: Store, run_of: RunOf, measurement: Measurement) -> None:
    store.send(run_of(measurement)[:2])
    assert store.greet(RUN, "beef-beef", stream="second").next_seqs == {RUN: 2, "beef-beef": 0}
    assert store.run().stream == "second"


def test_live_state_lasts_as_long_as_its_stream(
    store: Store, run_of: RunOf, measurement: Measurement
) -> None:
    store.send(run_of(measurement)[:2])
    store.write(Beat(store.device_id, RUN, "stream", 3, 17, "triad"))
    row = store.run()
    assert (row.done, row.planned, row.current, row.heard_at) == (3, 17, "triad", store.now_ns)
    store.write(Farewell("older"))
    assert store.run().stream == "stream"
    # A farewell comes last, whatever its place.
    store.write(Farewell("stream"), store.batch(run_of(measurement)[2:]))
    assert (store.run().stream, store.run().next_seq) == (None, 3)


def pieces(data: bytes, size: int, sha256: str | None = None) -> list[ModelPart]:
    ref = ModelRef("net", sha256 or hashlib.sha256(data).hexdigest(), len(data))
    return [ModelPart(ref, at, data[at : at + size]) for at in range(0, len(data), size)]


def test_a_model_is_there_when_its_pieces_are(store: Store, run_of: RunOf) -> None:
    data = bytes(range(256)) * 3
    records = run_of(*pieces(data, 300))
    sha256 = hashlib.sha256(data).hexdigest()
    store.send(records[:3])
    assert get_model(store.engine, sha256) is None
    assert store.count(model_part) == 2
    assert store.send(records[3:]).rejections == ()
    assert get_model(store.engine, sha256) == ("net", data)
    # Once there it is not kept a second time, not even in pieces.
    store.send(records[:3], "abcd-abcd")
    assert store.count(model_part) == 0


def test_pieces_that_do_not_give_their_digest_are_rejected(store: Store, run_of: RunOf) -> None:
    data = b"x" * 100
    receipt = store.send(run_of(*pieces(data, 60, "a" * 64)))
    assert receipt.rejections == ((2, "the pieces of model net don't give its digest"),)
    assert (store.count(model_part), store.count(rejection)) == (0, 1)
    assert get_model(store.engine, "a" * 64) is None


def test_a_runs_broken_pieces_do_not_spoil_another_runs(store: Store, run_of: RunOf) -> None:
    data = b"good" * 50
    sha256 = hashlib.sha256(data).hexdigest()
    store.send(run_of(*pieces(b"evil" * 50, 150, sha256))[:2], "bad0-bad0")
    assert store.send(run_of(*pieces(data, 150))).rejections == ()
    assert get_model(store.engine, sha256) == ("net", data)


def test_the_end_of_a_run_forgets_pieces_that_never_became_whole(store: Store, run_of: RunOf) -> None:
    store.send(run_of(*pieces(b"x" * 100, 60)[:1]))
    assert store.count(model_part) == 0
