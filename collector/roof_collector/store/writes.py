"""What is written: sessions' comings and goings, and their batches, many in one transaction.

Everything may be written twice and is there once: a run's `next_seq` is read and moved in the
transaction that writes its rows, and a row that is there stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, update
from sqlalchemy.dialects import postgresql, sqlite

from roof_collector.store.hot import insert_new, mark
from roof_collector.store.parts import drop_parts, store_parts
from roof_collector.store.rows import Batch, Beat, Farewell, Greeting, Job, Receipt, Rows, Welcome
from roof_collector.store.schema import device, layer, measurement, network, rejection, run

# What the collector adds to rows, before their own columns.
_STAMP = ("run", "received_at")
_NUMBER = ("run",)


def write(connection: Connection, jobs: Sequence[Job], now_ns: int) -> list[Welcome | Receipt | None]:
    """Do the jobs in the connection's transaction and return each one's answer.

    Greetings go first and farewells last, whatever their order.
    """
    welcomes = [_greet(connection, job, now_ns) if isinstance(job, Greeting) else None for job in jobs]
    receipts = iter(_store(connection, [job for job in jobs if isinstance(job, Batch)], now_ns))
    for job in jobs:
        if isinstance(job, Beat):
            _beat(connection, job, now_ns)
    for job in jobs:
        if isinstance(job, Farewell):
            connection.execute(update(run).where(run.c.stream == job.stream).values(stream=None))
    return [
        next(receipts) if isinstance(job, Batch) else welcome
        for job, welcome in zip(jobs, welcomes, strict=True)
    ]


def forget_streams(connection: Connection) -> None:
    """Say that no session feeds any run: for the only collector of a database, which has just begun."""
    connection.execute(update(run).where(run.c.stream.is_not(None)).values(stream=None))


@dataclass
class _Place:
    """Where a run is: its row's number and its `next_seq`, and what these batches add to it."""

    number: int
    next_seq: int
    stream: str = ""
    fresh: list[Rows] = field(default_factory=list)


def _greet(connection: Connection, greeting: Greeting, now_ns: int) -> Welcome:
    values = {**greeting.device, "last_seen_at": now_ns}
    upsert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = (
        upsert(device)
        .values(**values, first_seen_at=now_ns)
        .on_conflict_do_update(index_elements=[device.c.fingerprint], set_=values)
        .returning(device.c.id)
    )
    device_id = connection.execute(statement).scalar_one()
    next_seqs = dict.fromkeys(greeting.run_ids, 0)
    for run_id in next_seqs:
        place = _find(connection, device_id, run_id)
        if place is not None:
            next_seqs[run_id] = place.next_seq
            resumed = {"stream": greeting.stream, "heard_at": now_ns}
            connection.execute(update(run).where(run.c.id == place.number).values(resumed))
    return Welcome(device_id, next_seqs)


def _beat(connection: Connection, beat: Beat, now_ns: int) -> None:
    live = {"done": beat.done, "planned": beat.planned, "current": beat.current}
    connection.execute(
        update(run)
        .where(run.c.device_id == beat.device_id, run.c.run_id == beat.run_id)
        .values(**live, stream=beat.stream, heard_at=now_ns)
    )


def _store(connection: Connection, batches: Sequence[Batch], now_ns: int) -> list[Receipt]:
    """Store the batches' new records; of a batch that begins beyond what its run has, nothing."""
    places: dict[tuple[int, str], _Place] = {}
    receipts: list[Receipt] = []
    for batch in batches:
        key = (batch.device_id, batch.run_id)
        if key not in places:
            places[key] = _find(connection, *key) or _create(connection, *key, now_ns)
        place = places[key]
        place.stream = batch.stream
        receipts.append(_take(connection, place, batch.rows, now_ns))
    _insert_rows(connection, list(places.values()), now_ns)
    _update_runs(connection, list(places.values()), now_ns)
    return receipts


def _take(connection: Connection, place: _Place, rows: Rows, now_ns: int) -> Receipt:
    """Take what is new of a batch."""
    if rows.first > place.next_seq:
        return Receipt(place.next_seq)
    if rows.end > place.next_seq:
        rows = rows if rows.first == place.next_seq else rows.between(place.next_seq, rows.end)
        spoiled = store_parts(connection, place.number, rows.parts, now_ns)
        # A copy: the same rows are stored anew where the transaction fails.
        rows = replace(rows, rejections=[*rows.rejections, *spoiled])
        place.fresh.append(rows)
        place.next_seq = rows.end
    return Receipt(place.next_seq, tuple(rows.rejections))


def _insert_rows(connection: Connection, places: Sequence[_Place], now_ns: int) -> None:
    stamped = [((place.number, now_ns), rows) for place in places for rows in place.fresh]
    numbered = [((place.number,), rows) for place in places for rows in place.fresh]
    insert_new(connection, measurement, _STAMP, [s + row for s, rows in stamped for row in rows.measurements])
    insert_new(connection, rejection, _STAMP, [s + row for s, rows in stamped for row in rows.rejections])
    insert_new(connection, network, _NUMBER, [n + row for n, rows in numbered for row in rows.networks])
    insert_new(connection, layer, _NUMBER, [n + row for n, rows in numbered for row in rows.layers])


def _update_runs(connection: Connection, places: Sequence[_Place], now_ns: int) -> None:
    if not places:
        return
    sign = mark(connection)
    connection.exec_driver_sql(
        f"UPDATE run SET next_seq = {sign}, heard_at = {sign}, stream = {sign} WHERE id = {sign}",  # noqa: S608
        [(place.next_seq, now_ns, place.stream, place.number) for place in places],
    )
    for place in places:
        own = update(run).where(run.c.id == place.number)
        for rows in place.fresh:
            if rows.start is not None:
                connection.execute(own.values(rows.start))
            if rows.finish is not None:
                connection.execute(own.values({**rows.finish, "ended_at": now_ns}))
                drop_parts(connection, place.number)


def _find(connection: Connection, device_id: int, run_id: str) -> _Place | None:
    """Return where a run is, locked until the transaction ends; None for one that isn't here."""
    sign = mark(connection)
    # An SQLite transaction that writes is alone anyway.
    lock = "" if connection.dialect.name == "sqlite" else " FOR UPDATE"
    row = connection.exec_driver_sql(
        f"SELECT id, next_seq FROM run WHERE device_id = {sign} AND run_id = {sign}{lock}",  # noqa: S608
        (device_id, run_id),
    ).first()
    return None if row is None else _Place(*row)


def _create(connection: Connection, device_id: int, run_id: str, now_ns: int) -> _Place:
    sign = mark(connection)
    number = connection.exec_driver_sql(
        "INSERT INTO run (device_id, run_id, received_at, heard_at, next_seq) "  # noqa: S608
        f"VALUES ({sign}, {sign}, {sign}, {sign}, 0) RETURNING id",
        (device_id, run_id, now_ns, now_ns),
    ).scalar_one()
    return _Place(number, 0)
