"""How fast the collector keeps what it is sent, beside the bare driver: `python benchmarks/ingest.py`.

Batches of a thousand measurements from each of ten agents go from their bytes through parsing, validation
and the writer to the commit; beside it `sqlite3.executemany` writes the same rows, ten thousand a
transaction, with the same settings. Group commit is that of a hundred agents with batches of one, beside
one row a transaction. Alternately, medians. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from roof_agent.records import Conditions, Device, Grade, Measurement, Outcome, Record, Statistics, Work
from roof_agent.wire import device_message, record_message
from roof_collector.ingest.convert import device_columns, rows_of
from roof_collector.ingest.writer import Writer
from roof_collector.store.engine import open_database
from roof_collector.store.hot import insert_text
from roof_collector.store.rows import Batch, Greeting
from roof_collector.store.schema import measurement
from roofline.v1 import session_pb2

AGENTS = 10
RECORDS = 1000
FINGERPRINT = "f" * 64


def example() -> Measurement:
    """Return a measurement as boards make them: thirty repetitions, conditions before and after."""
    conditions = Conditions(
        monotonic_ns=123456789,
        frequency_hz=dict.fromkeys(range(4), 1.8e9),
        governor="ondemand",
        temperature_celsius={"cpu-thermal": 61.5},
        throttled_bits=0,
        load_1m=0.25,
        steal_ticks=0,
        busy_ticks=1000,
        total_ticks=4000,
        memory_available_bytes=1 << 31,
        clock_hz=1.79e9,
    )
    return Measurement(
        "bandwidth", "triad", "bytes_per_s", Outcome.OK, "float64", 4, (0, 1, 2, 3), "native", "0.1.0",
        "neon", "gcc 12.2.0", {"store": "plain", "bytes": "134217728"}, "", Grade.CLEAN, (),
        Statistics(30, 1.0, 1.1, 2.0, 3.0, 4.0, 2.2, 0.5, 1.5, 2.5), tuple(1.0 + 0.1 * i for i in range(30)),
        Work(24.0, 32.0, 16.0, 1 << 26), conditions, conditions, 12, 1.5, 0.98, 7,
    )  # fmt: skip


def messages(agents: int, batches: int, records: int) -> list[tuple[str, bytes]]:
    """Return (run, serialized batch) as they come from that many agents in turn."""
    one = example()
    sent = []
    for batch in range(batches):
        first = batch * records
        content = [record_message(Record(seq, one)) for seq in range(first, first + records)]
        for agent in range(agents):
            run_id = f"{agent:08x}"
            sent.append((run_id, session_pb2.Batch(run_id=run_id, records=content).SerializeToString()))
    return sent


async def collect(database: str, sent: list[tuple[str, bytes]]) -> tuple[float, float]:
    """Return wall and CPU seconds from the first message to the last one's commit."""
    engine = open_database(database)
    writer = Writer(engine)
    writer.start()
    device = device_columns(device_message(Device(FINGERPRINT, "board", "aarch64")), "0.1.0")
    welcome = await writer.put(Greeting(device, (), "stream"))
    begin, cpu = time.perf_counter(), time.process_time()

    async def agent(run_id: str) -> None:
        answers = []
        for to, data in sent:
            if to == run_id:
                batch = session_pb2.Batch.FromString(data)
                rows = rows_of(batch.records, FINGERPRINT)
                job = Batch(welcome.device_id, run_id, "stream", rows)
                answers.append(await writer.submit(job, len(data)))
        receipts = await asyncio.gather(*answers)
        assert not any(receipt.rejections for receipt in receipts)

    await asyncio.gather(*(agent(run_id) for run_id in sorted({run_id for run_id, _ in sent})))
    spent = time.perf_counter() - begin, time.process_time() - cpu
    await writer.stop()
    engine.dispose()
    return spent


def bare(path: Path, rows: list[tuple[Any, ...]], per_transaction: int) -> tuple[float, float]:
    """Return wall and CPU seconds of the driver alone."""
    engine = open_database(f"sqlite:///{path}")
    statement = insert_text(measurement, ("run", "received_at"), engine.dialect)
    engine.dispose()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    begin, cpu = time.perf_counter(), time.process_time()
    for at in range(0, len(rows), per_transaction):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, rows[at : at + per_transaction])
        connection.execute("COMMIT")
    spent = time.perf_counter() - begin, time.process_time() - cpu
    connection.close()
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--batches", type=int, default=2, help="of a thousand, each agent")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database there")
    chosen = parser.parse_args()
    large = messages(AGENTS, chosen.batches, RECORDS)
    small = messages(100, 5, 1)
    rows = []
    for run_id, data in large:
        batch = session_pb2.Batch.FromString(data)
        found = rows_of(batch.records, FINGERPRINT).measurements
        rows += [(int(run_id, 16), 1, *row) for row in found]
    singles = rows[:500]
    figures: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": [], "group": [], "single": []}
    for _ in range(chosen.repeat):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            figures["bare"].append(bare(folder / "bare.sqlite", rows, 10_000))
            figures["ours"].append(asyncio.run(collect(f"sqlite:///{folder / 'ours.sqlite'}", large)))
            figures["single"].append(bare(folder / "single.sqlite", singles, 1))
            figures["group"].append(asyncio.run(collect(f"sqlite:///{folder / 'group.sqlite'}", small)))
    counts = {"ours": len(rows), "bare": len(rows), "group": 500, "single": 500}
    rate = {}
    cpu = {}
    for what, spent in figures.items():
        rate[what] = counts[what] / statistics.median(wall for wall, _ in spent)
        cpu[what] = statistics.median(seconds for _, seconds in spent) / counts[what]
        print(f"{what:8} {rate[what]:10.0f} rows/s  {cpu[what] * 1e6:8.1f} us CPU a row")
    result = {
        "bench": "ingest",
        "sqlite_ratio_raw": round(rate["ours"] / rate["bare"], 3),
        "cost_cpu_ratio_raw": round(cpu["ours"] / cpu["bare"], 3),
        "group_commit_gain": round(rate["group"] / rate["single"], 2),
    }
    if chosen.postgresql:
        wall, _ = asyncio.run(collect(chosen.postgresql, large))
        result["postgres_ratio_sqlite"] = round(len(rows) / wall / rate["ours"], 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
