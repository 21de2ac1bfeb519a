"""What may pass: every bad value is rejected by its name, alone, whatever else the batch holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roof_agent.records import Measurement, Outcome, Record
from roof_agent.wire import device_message, record_message
from roof_collector.ingest.convert import MODEL_BYTES, device_columns, rows_of
from roof_collector.ingest.validation import INT64, RejectedError
from roof_collector.store.rows import Rows
from roof_collector.store.schema import layer, network
from roof_collector.store.schema import measurement as measurement_table
from roofline.v1 import run_pb2

FINGERPRINT = "f" * 64
RunOf = Callable[..., list[Record]]
Change = Callable[[Any], None]


def setting(path: str, value: Any) -> tuple[str, Change]:
    """Return what sets a message's field, named by its path."""

    def change(message: Any) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            message = getattr(message, parent)
            message = message[0] if parent == "nodes" else message
        target = getattr(message, last)
        if hasattr(target, "append"):
            target.append(value)
        elif hasattr(target, "update"):
            target.update(value)
        else:
            setattr(message, last, value)

    return f"{path}={str(value)[:20]!r}", change


NAN, INF = math.nan, math.inf
REAL_FIELDS = (
    "elapsed_seconds", "cpu_share", "statistics.min", "statistics.mean", "statistics.ci_high", "work.flops",
    "work.stream_bytes", "work.bus_bytes", "network.unjoined_seconds", "network.profiled_seconds",
    "network.nodes.seconds.median", "repetitions",
)  # fmt: skip
TEXT_FIELDS = (
    "probe", "subject", "element_type", "backend", "backend_version", "isa", "compiler", "reason",
    "grade_reasons", "before.governor", "network.model_name", "network.provider", "network.optimization",
    "network.nodes.name", "network.nodes.op_type",
)  # fmt: skip
POISON = dict(
    [
        *(setting(field, value) for field in REAL_FIELDS for value in (NAN, INF, -INF, -1.0)),
        *(setting(field, value) for field in TEXT_FIELDS for value in ("a\0b", "a\x1bb", "x" * 5000)),
        setting("before.load_1m", NAN),
        setting("after.frequency_hz", {0: INF}),
        setting("after.temperature_celsius", {"soc\n": 1.0}),
        setting("parameters", {"": "x"}),
        setting("parameters", {"x": "a\0"}),
        setting("parameters", {str(number): "" for number in range(2000)}),
        setting("probe", ""),
        setting("quantity", "parsecs"),
        setting("quantity", ""),
        setting("outcome", 0),
        setting("outcome", 17),
        setting("grade", 17),
        setting("threads", 1 << 31),
        setting("cpus", 1 << 31),
        setting("started_monotonic_ns", -1),
        setting("involuntary_switches", 1 << 63),
        setting("work.working_set_bytes", 1 << 63),
        setting("statistics.n", 0),
        setting("statistics.n", 1 << 31),
        setting("statistics.median", 5.0),
        setting("network.model_name", ""),
        setting("network.model_sha256", "A" * 64),
        setting("network.executed_sha256", "../x"),
        setting("network.nodes.index", 1),
        setting("network.nodes.op_type", ""),
    ]
)


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_a_bad_value_rejects_its_record_alone(
    poison: Change, run_of: RunOf, measurement: Measurement
) -> None:
    records = [record_message(record) for record in run_of(measurement, measurement, measurement)]
    poison(records[2].measurement)
    rows = rows_of(records, FINGERPRINT)
    assert [seq for seq, _ in rows.rejections] == [2]
    assert "\0" not in rows.rejections[0][1]
    assert len(rows.rejections[0][1]) < 400
    assert [row[0] for row in rows.measurements] == [1, 3]
    assert {row[0] for row in rows.networks} == {row[0] for row in rows.layers} == {1, 3}
    assert rows.start is not None
    assert rows.finish is not None


def test_rows_have_their_tables_columns(run_of: RunOf, measurement: Measurement) -> None:
    rows = rows_of(map(record_message, run_of(measurement)), FINGERPRINT)
    assert rows.rejections == []
    # The collector adds the run to each, and to measurements when it was received.
    assert [len(row) for row in rows.measurements] == [len(measurement_table.c) - 2]
    assert [len(row) for row in rows.networks] == [len(network.c) - 1]
    assert [len(row) for row in rows.layers] == [len(layer.c) - 1] * 2


def test_a_reason_may_have_lines(run_of: RunOf, measurement: Measurement) -> None:
    failed = replace(
        measurement, outcome=Outcome.FAILED, reason="killed\n\tby the OOM killer", statistics=None
    )
    rows = rows_of(map(record_message, run_of(failed)), FINGERPRINT)
    assert rows.rejections == []


def test_records_that_do_not_follow_are_left_for_later(run_of: RunOf, measurement: Measurement) -> None:
    records = [record_message(record) for record in run_of(*[measurement] * 4)]
    del records[3]
    rows = rows_of(records, FINGERPRINT)
    assert (rows.first, rows.end, [row[0] for row in rows.measurements]) == (0, 3, [1, 2])


@pytest.mark.parametrize(
    "records",
    [[], [run_pb2.Record(seq=INT64)], [run_pb2.Record(seq=(1 << 64) - 1)]],
    ids=["none", "2^63-1", "2^64-1"],
)
def test_a_batch_without_a_place_is_refused(records: list[run_pb2.Record]) -> None:
    with pytest.raises(RejectedError):
        rows_of(records, FINGERPRINT)


def test_a_run_begins_once_and_with_its_own_device(run_of: RunOf, measurement: Measurement) -> None:
    start = record_message(run_of(measurement)[0])
    assert rows_of([start], "e" * 64).rejections == [(0, "the run is another device's")]
    start.seq = 7
    assert rows_of([start], FINGERPRINT).rejections == [(7, "a run's start is its first record")]


@pytest.mark.parametrize(
    "part",
    [
        {"offset": 0, "data": b""},
        {"offset": 60, "data": b"x" * 41},
        {"offset": (1 << 64) - 1, "data": b"x"},
        {
            "offset": 0,
            "data": b"x",
            "model": {"name": "n", "sha256": "a" * 64, "size_bytes": MODEL_BYTES + 1},
        },
        {"offset": 0, "data": b"x", "model": {"name": "n", "sha256": "a" * 63, "size_bytes": 1}},
        {"offset": 0, "data": b"x", "model": {"name": "../\0", "sha256": "a" * 64, "size_bytes": 1}},
    ],
)
def test_pieces_beyond_their_model_are_rejected(part: dict[str, Any]) -> None:
    whole = {"model": {"name": "net", "sha256": "a" * 64, "size_bytes": 100}, **part}
    rows = rows_of([run_pb2.Record(seq=3, model_part=whole)], FINGERPRINT)
    assert len(rows.rejections) == 1
    assert rows.parts == []


@pytest.mark.parametrize("field", ["hostname", "model", "soc", "architecture", "os", "kernel", "container"])
@pytest.mark.parametrize("value", ["a\0b", "x" * 300, "a\nb"])
def test_a_device_is_checked_like_anything_else(
    request: pytest.FixtureRequest, field: str, value: str
) -> None:
    message = device_message(request.getfixturevalue("device"))
    setattr(message, field, value)
    with pytest.raises(RejectedError, match=field):
        device_columns(message, "0.1.0")


# Anything that protobuf can carry.

_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_DOUBLE: st.floats(),
    FieldDescriptor.TYPE_STRING: st.text(st.characters(codec="utf-8"), max_size=20),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=20),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_UINT32: st.integers(0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: st.integers(0, (1 << 64) - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(1 << 63), INT64),
    FieldDescriptor.TYPE_ENUM: st.integers(-1, 9),
}


def scramble(message: Message, data: st.DataObject, depth: int = 0) -> None:
    """Set some fields of a message to anything that they can hold."""
    for field in message.DESCRIPTOR.fields:
        if not data.draw(st.integers(0, 3)):
            continue
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            target = getattr(message, field.name)
            if field.message_type.GetOptions().map_entry:
                key, value = (_SCALARS[one.type] for one in field.message_type.fields)
                target.update(data.draw(st.dictionaries(key, value, max_size=2)))
            elif hasattr(target, "add"):
                scramble(target.add(), data, depth + 1)
            else:
                target.SetInParent()
                scramble(target, data, depth + 1)
        elif hasattr(getattr(message, field.name), "append"):
            getattr(message, field.name).extend(data.draw(st.lists(_SCALARS[field.type], max_size=3)))
        else:
            setattr(message, field.name, data.draw(_SCALARS[field.type]))


def storable(value: Any) -> bool:
    """Say whether both engines keep a value as it is."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(1 << 63) <= value <= INT64
    return "\0" not in value if isinstance(value, str) else value is None or isinstance(value, bytes)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), kind=st.sampled_from(["start", "measurement", "model_part", "end"]))
def test_whatever_comes_is_storable_or_rejected(data: st.DataObject, kind: str) -> None:
    record = run_pb2.Record(seq=0)
    content = getattr(record, kind)
    content.SetInParent()
    scramble(content, data)
    rows = rows_of([record, run_pb2.Record(seq=1)], FINGERPRINT)
    assert isinstance(rows, Rows)
    assert (rows.end, rows.rejections[-1][0]) == (2, 1)
    everything = [*rows.measurements, *rows.networks, *rows.layers, *rows.rejections]
    assert all(storable(value) for row in everything for value in row)
    for columns in (rows.start or {}, rows.finish or {}):
        assert all(storable(value) for value in columns.values() if not isinstance(value, dict))
