"""Sessions with a collector, over real gRPC."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import onnx
import pytest
from sqlalchemy import select

from roof_agent.errors import UsageError
from roof_agent.records import Measurement, Plan, Record
from roof_agent.wire import parse_plan, record_message
from roof_collector.ingest.plans import FIRST_NETWORKS
from roof_collector.serve import Collector, parse_address
from roof_collector.store.engine import open_database
from roof_collector.store.schema import measurement as measurement_table
from roof_collector.store.schema import run
from roofline.v1 import run_pb2, session_pb2

RUN = "0123-4567-89ab"
RunOf = Callable[..., list[Record]]
Connect = Callable[[int], Any]
Until = Callable[[Callable[[], bool]], Awaitable[None]]


def no_plan(engine: Any) -> Any:
    return lambda device: Plan()


class Reader:
    """What a database says of the run."""

    def __init__(self, database: str) -> None:
        self._engine = open_database(database)

    def run(self) -> Any:
        with self._engine.connect() as connection:
            return connection.execute(select(run).where(run.c.run_id == RUN)).first()

    def seqs(self) -> list[int]:
        with self._engine.connect() as connection:
            return list(connection.execute(select(measurement_table.c.seq).order_by("seq")).scalars())

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def reader(store_url: str) -> Any:
    found = Reader(store_url)
    yield found
    found.close()


def test_a_run_is_stored_while_its_collector_lives(
    store_url: str, reader: Reader, connect: Connect, until: Until, run_of: RunOf, measurement: Measurement
) -> None:
    async def scenario() -> None:
        async with Collector(store_url, web=None, planner=no_plan) as collector:
            async with connect(collector.grpc_port) as client:
                ack = await client.hello(RUN)
                assert (ack.protocol_version, ack.limits.batch_records, ack.limits.window_batches) == (
                    1,
                    1000,
                    8,
                )
                assert [(place.run_id, place.seq) for place in ack.resume] == [(RUN, 0)]
                records = run_of(*[measurement] * 5)
                assert (await client.store(RUN, records[:3])).next_seq == 3
                # Acknowledged is committed.
                assert reader.seqs() == [1, 2]
                assert reader.run().stream
                await client.send(
                    heartbeat=session_pb2.Heartbeat(run_id=RUN, done=2, planned=5, current="add")
                )
                await until(lambda: reader.run().current == "add")
                assert (await client.store(RUN, records[4:])).next_seq == 3
                assert (await client.store(RUN, records[3:])).next_seq == 7
            await until(lambda: reader.run().stream is None)

    asyncio.run(scenario())
    assert reader.seqs() == [1, 2, 3, 4, 5]
    assert reader.run().complete


def test_a_poisoned_record_never_blocks_the_next(
    store_url: str, reader: Reader, connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    poisoned = [
        replace(measurement, elapsed_seconds=float("inf")),
        replace(measurement, subject="a\0b"),
        replace(measurement, quantity="bananas"),
    ]

    async def scenario() -> session_pb2.Ack:
        async with (
            Collector(store_url, web=None, planner=no_plan) as collector,
            connect(collector.grpc_port) as client,
        ):
            await client.hello()
            records = [record_message(record) for record in run_of(*poisoned, measurement)]
            records.insert(5, run_pb2.Record(seq=5))
            records[6].seq = 6
            await client.send(batch=session_pb2.Batch(run_id=RUN, records=records))
            found: session_pb2.Ack = (await client.receive()).ack
            return found

    ack = asyncio.run(scenario())
    assert ack.next_seq == 7
    assert [one.seq for one in ack.rejected] == [1, 2, 3, 5]
    assert "elapsed_seconds is inf" in ack.rejected[0].reason
    assert reader.seqs() == [4]
    assert reader.run().complete


def test_the_plan_names_networks_that_can_be_fetched(
    migrated: Callable[[str], str], connect: Connect
) -> None:
    async def scenario() -> None:
        async with (
            Collector(migrated("sqlite"), web=None) as collector,
            connect(collector.grpc_port) as client,
        ):
            plan = parse_plan((await client.hello()).plan)
            assert plan.threads == (1, 0)
            assert tuple(ref.name for ref in plan.models) == FIRST_NETWORKS
            for ref in plan.models:
                parts = await client.fetch(ref.sha256)
                data = b"".join(part.data for part in parts)
                assert (len(data), hashlib.sha256(data).hexdigest()) == (ref.size_bytes, ref.sha256)
                assert onnx.load_from_string(data).graph.node
                (rest,) = await client.fetch(ref.sha256, ref.size_bytes - 10)
                assert (rest.offset, rest.data) == (ref.size_bytes - 10, data[-10:])
            for sha256, code in (
                ("0" * 64, grpc.StatusCode.NOT_FOUND),
                ("../../etc/passwd", grpc.StatusCode.INVALID_ARGUMENT),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await client.fetch(sha256)
                assert caught.value.code() == code

    asyncio.run(scenario())


def test_the_newest_stream_feeds_a_run(
    store_url: str, reader: Reader, connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(*[measurement] * 3)

    async def scenario() -> None:
        async with (
            Collector(store_url, web=None, planner=no_plan) as collector,
            connect(collector.grpc_port) as old,
            connect(collector.grpc_port) as other,
            connect(collector.grpc_port) as new,
        ):
            await old.hello()
            await other.hello("beef-beef")
            await old.store(RUN, records[:2])
            ack = await new.hello(RUN)
            assert ack.resume[0].seq == 2
            close = (await old.receive()).close
            assert "newer session" in close.reason
            assert not close.final
            assert await old.ended()
            assert (await new.store(RUN, records[2:])).next_seq == 5
            # Another run of the same board isn't disturbed.
            assert (await other.store("beef-beef", records)).next_seq == 5

    asyncio.run(scenario())
    assert reader.run().complete


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"heartbeat": session_pb2.Heartbeat(run_id=RUN)}, "begins with a hello"),
        ({"hello": session_pb2.Hello(protocol_version=2)}, "version 1 of the protocol.*the agent version 2"),
        ({"hello": session_pb2.Hello(protocol_version=1)}, "fingerprint is no SHA-256"),
    ],
)
def test_who_speaks_otherwise_is_told_so(
    migrated: Callable[[str], str], connect: Connect, message: dict[str, Any], words: str
) -> None:
    async def scenario() -> None:
        async with (
            Collector(migrated("sqlite"), web=None, planner=no_plan) as collector,
            connect(collector.grpc_port) as client,
        ):
            await client.send(**message)
            close = (await client.receive()).close
            assert close.final
            with pytest.raises(AssertionError, match=words):
                raise AssertionError(close.reason)
            assert await client.ended()

    asyncio.run(scenario())


@pytest.mark.parametrize("run_id", ["", "../../x", "a" * 65, "0123456\0"])
def test_a_run_needs_a_name_that_is_one(
    migrated: Callable[[str], str], connect: Connect, run_id: str
) -> None:
    async def scenario() -> None:
        async with (
            Collector(migrated("sqlite"), web=None, planner=no_plan) as collector,
            connect(collector.grpc_port) as client,
        ):
            await client.hello()
            await client.batch(run_id, [])
            close = (await client.receive()).close
            assert (close.final, "8 to 64 hex digits" in close.reason) == (True, True)

    asyncio.run(scenario())


def test_a_message_beyond_the_limit_ends_its_stream_only(
    migrated: Callable[[str], str], connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    async def scenario() -> None:
        async with (
            Collector(migrated("sqlite"), web=None, planner=no_plan) as collector,
            connect(collector.grpc_port) as honest,
            connect(collector.grpc_port) as huge,
        ):
            await honest.hello()
            await huge.hello()
            await huge.batch(RUN, run_of(replace(measurement, repetitions=(1.0,) * 150_000)))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await huge.receive()
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (await honest.store(RUN, run_of(measurement))).next_seq == 3

    asyncio.run(scenario())


def test_stopping_stores_what_came_and_tells_the_agents(
    store_url: str, reader: Reader, connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(*[measurement] * 30)

    async def scenario() -> None:
        collector = Collector(store_url, web=None, planner=no_plan)
        async with collector, connect(collector.grpc_port) as client:
            await client.hello()
            for at in range(0, 32, 4):
                await client.batch(RUN, records[at : at + 4])
            acked = (await client.receive()).ack.next_seq
            stopping = asyncio.create_task(collector.stop())
            while not (answer := await client.receive()).HasField("close"):
                acked = answer.ack.next_seq
            assert answer.close.reason == "the collector is stopping"
            assert not answer.close.final
            await stopping
            assert reader.run().next_seq >= acked
        assert reader.run().stream is None

    asyncio.run(scenario())


def test_a_killed_collectors_runs_are_not_taken_for_running(
    tmp_path: Path, connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    database = f"sqlite:///{tmp_path / 'store.sqlite'}"

    async def scenario() -> None:
        async with (
            Collector(database, web=None, planner=no_plan) as killed,
            connect(killed.grpc_port) as client,
        ):
            await client.hello()
            await client.store(RUN, run_of(measurement)[:2])
            reader = Reader(database)
            assert reader.run().stream
            # The first is still there, but it will not say another word.
            async with Collector(database, web=None, planner=no_plan):
                assert reader.run().stream is None
            reader.close()

    asyncio.run(scenario())


def test_a_mistake_of_the_collector_ends_the_session_and_is_logged(
    migrated: Callable[[str], str], connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(engine: Any) -> Any:
        def plan(device: Any) -> Plan:
            raise KeyError("plan")

        return plan

    async def scenario() -> None:
        async with (
            Collector(migrated("sqlite"), web=None, planner=broken) as collector,
            connect(collector.grpc_port) as client,
        ):
            # No hello_ack comes, but a close.
            assert not (await client.hello()).protocol_version
            assert await client.ended()

    asyncio.run(scenario())
    assert "broke" in caplog.text


def test_addresses_in_use_or_no_addresses_are_said(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'store.sqlite'}"

    async def scenario() -> None:
        async with Collector(database, web=None, planner=no_plan) as collector:
            taken = f"127.0.0.1:{collector.grpc_port}"
            with pytest.raises(
                UsageError, match=f"agents can't be served at {taken}: Address already in use"
            ):
                await Collector(database, listen=taken, web=None, planner=no_plan).__aenter__()
            with pytest.raises(UsageError, match=f"pages can't be served at {taken}: Address already in use"):
                await Collector(database, web=taken, planner=no_plan).__aenter__()

    asyncio.run(scenario())
    assert parse_address("[::1]:80") == ("::1", 80)
    for wrong in ("50051", ":50051", "host:port", "host:70000"):
        with pytest.raises(UsageError, match="is no address"):
            parse_address(wrong)


def test_a_killed_collector_loses_and_doubles_nothing(
    tmp_path: Path, connect: Connect, run_of: RunOf, measurement: Measurement
) -> None:
    path = tmp_path / "store.sqlite"
    records = run_of(*[replace(measurement, network=None)] * 2500)
    program = [sys.executable, "-m", "roof_collector.cli", "serve", "--database", f"sqlite:///{path}"]

    def start() -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [*program, "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr
        line = process.stderr.readline()
        assert line.startswith("agents: roof-agent --collector 127.0.0.1:")
        return process, int(line.rpartition(":")[2])

    async def feed(port: int, kill_at: int, kill: Callable[[], None]) -> int:
        """Send from where the collector wants it, and kill it in the middle; return what was acked."""
        async with connect(port) as client:
            acked: int = (await client.hello(RUN)).resume[0].seq
            at = acked
            try:
                while acked < len(records):
                    while at < len(records) and at < acked + 400:
                        await client.batch(RUN, records[at : at + 50])
                        at += 50
                    acked = max(acked, (await client.receive()).ack.next_seq)
                    if acked >= kill_at:
                        kill()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass
            return acked

    acked = 0
    for kill_at in (400, 1400, len(records) + 1):
        process, port = start()
        try:
            with sqlite3.connect(path) as store:
                (stored,) = store.execute("SELECT coalesce(max(next_seq), 0) FROM run").fetchone()
            store.close()
            assert stored >= acked
            acked = asyncio.run(feed(port, kill_at, process.kill))
        finally:
            process.kill()
            process.communicate()
    assert acked == len(records)
    with sqlite3.connect(path) as store:
        assert store.execute("SELECT seq FROM measurement ORDER BY seq").fetchall() == [
            (seq,) for seq in range(1, 2501)
        ]
        assert store.execute("SELECT complete FROM run").fetchall() == [(1,)]
        assert store.execute("SELECT count(*) FROM rejection").fetchone() == (0,)
    store.close()
