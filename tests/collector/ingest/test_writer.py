"""One thread, few transactions, and no answer before its commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, select

from roof_agent.records import Measurement, Record
from roof_agent.wire import device_message, record_message
from roof_collector.ingest.convert import device_columns, rows_of
from roof_collector.ingest.writer import StoppedError, Writer
from roof_collector.store.engine import open_database
from roof_collector.store.rows import Batch, Greeting, Receipt
from roof_collector.store.schema import measurement as measurement_table

RUN = "0123-4567-89ab"
FINGERPRINT = "f" * 64
RunOf = Callable[..., list[Record]]


@pytest.fixture
def greeting(request: pytest.FixtureRequest) -> Greeting:
    return Greeting(device_columns(device_message(request.getfixturevalue("device")), "0.1.0"), (), "stream")


def batch(records: list[Record], run_id: str = RUN) -> Batch:
    return Batch(1, run_id, "stream", rows_of(map(record_message, records), FINGERPRINT))


def stored(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(measurement_table)).scalar_one()


def commits(engine: Engine) -> list[int]:
    found: list[int] = []
    event.listen(engine, "commit", lambda connection: found.append(1))
    return found


def test_what_waits_is_committed_together(
    engine: Engine, greeting: Greeting, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(measurement)

    async def scenario() -> None:
        writer = Writer(engine)
        jobs = [batch(records, f"{number:08x}") for number in range(100)]
        answers = [writer.put(greeting), *(await asyncio.gather(*(writer.submit(job, 100) for job in jobs)))]
        writer.start()
        receipts = await asyncio.gather(*answers)
        assert receipts[1:] == [Receipt(3)] * 100
        await writer.stop()

    found = commits(engine)
    asyncio.run(scenario())
    assert len(found) == 1
    assert stored(engine) == 100


def test_a_full_queue_makes_its_senders_wait(
    engine: Engine, greeting: Greeting, run_of: RunOf, measurement: Measurement
) -> None:
    records = run_of(*[measurement] * 9)

    async def scenario() -> None:
        writer = Writer(engine, queue_bytes=100)
        await writer.submit(greeting, 60)
        late = asyncio.create_task(writer.submit(batch(records), 60))
        await asyncio.sleep(0.05)
        assert not late.done()
        writer.start()
        assert await (await late) == Receipt(11)
        # A job larger than the queue isn't refused for ever.
        assert await (await writer.submit(batch(records, "beefbeef"), 500)) == Receipt(11)
        await writer.stop()
        with pytest.raises(StoppedError):
            await writer.submit(batch(records), 1)

    asyncio.run(scenario())


def test_nothing_is_answered_while_the_database_is_locked(
    tmp_path: Path,
    greeting: Greeting,
    run_of: RunOf,
    measurement: Measurement,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "store.sqlite"
    engine = open_database(f"sqlite:///{path}")
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA busy_timeout = 10"))
    engine.dispose()

    async def scenario() -> None:
        writer = Writer(engine)
        writer.start()
        await writer.put(greeting)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = writer.put(batch(run_of(measurement)))
        await asyncio.sleep(0.5)
        assert not answer.done()
        assert "locked" in writer.trouble
        other.execute("ROLLBACK")
        assert await answer == Receipt(3)
        assert writer.trouble == ""
        # Stopping doesn't wait for a database that stays away; what isn't stored isn't acknowledged.
        other.execute("BEGIN IMMEDIATE")
        lost = writer.put(batch(run_of(measurement), "beefbeef"))
        await writer.stop()
        with pytest.raises(StoppedError):
            await lost
        other.close()

    asyncio.run(scenario())
    assert stored(engine) == 1
    engine.dispose()
    assert [record.message.partition(":")[0] for record in caplog.records if record.levelname == "ERROR"] == [
        "the database can't be written, and is tried again"
    ] * 2


def test_a_row_that_the_database_refuses_is_rejected_alone(
    engine: Engine, greeting: Greeting, run_of: RunOf, measurement: Measurement
) -> None:
    spoiled, fine = batch(run_of(*[measurement] * 3)), batch(run_of(measurement), "beefbeef")
    # As if validation had a hole.
    row: list[Any] = list(spoiled.rows.measurements[1])
    row[1] = None
    spoiled.rows.measurements[1] = tuple(row)

    async def scenario() -> None:
        writer = Writer(engine)
        writer.start()
        # A transaction that is rolled back uses up numbers in PostgreSQL; so this goes alone.
        assert (await writer.put(greeting)).device_id == 1
        bad, good = await asyncio.gather(writer.put(spoiled), writer.put(fine))
        assert good == Receipt(3)
        assert (bad.next_seq, [seq for seq, _ in bad.rejections]) == (5, [2])
        await writer.stop()

    asyncio.run(scenario())
    assert stored(engine) == 3
