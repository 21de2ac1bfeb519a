"""What the pages ask of the store. Every listing is bounded: it takes a page of rows, never all.

Sort keys and filter keys are looked up in the whitelists below; what isn't there never reaches SQL,
and values are bound parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, and_, case, cast, func, or_, select

from roof_agent.records import Grade, Measurement, NetworkDetail, NodeTime, Outcome, Statistics, Work
from roof_collector.store.packing import unpack_doubles
from roof_collector.store.schema import device, layer, measurement, model, network, run

_CEILING_PROBES = ("bandwidth", "peak")


@dataclass(frozen=True)
class Term:
    """A word of a filter: `text` in the column `key`, or in any text column where `key` is empty."""

    key: str
    text: str


@dataclass(frozen=True)
class Selection:
    """Which rows of a listing, and in which order."""

    sort: str = ""
    descending: bool = False
    terms: tuple[Term, ...] = ()
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True)
class Listing:
    """A page of rows, and how many rows there are in all."""

    rows: Sequence[Row[Any]]
    total: int


Columns = Mapping[str, ColumnElement[Any]]

DEVICE_TEXTS: Columns = {
    "hostname": device.c.hostname,
    "model": device.c.model,
    "soc": device.c.soc,
    "architecture": device.c.architecture,
    "fingerprint": device.c.fingerprint,
}
DEVICE_SORTS: Columns = {
    **DEVICE_TEXTS,
    "memory_bytes": device.c.memory_bytes,
    "last_seen_at": device.c.last_seen_at,
    "first_seen_at": device.c.first_seen_at,
}
RUN_TEXTS: Columns = {"run_id": run.c.run_id, "preset": run.c.preset, "agent_version": run.c.agent_version}
RUN_SORTS: Columns = {
    **RUN_TEXTS,
    "received_at": run.c.received_at,
    "heard_at": run.c.heard_at,
    "planned": run.c.planned,
    "ok": run.c.ok,
    "unavailable": run.c.unavailable,
    "failed": run.c.failed,
}
# The best repetition: the highest rate or the shortest time, as the registry of quantities says.
BEST = case((measurement.c.quantity == "seconds", measurement.c.min), else_=measurement.c.max)
MEASUREMENT_TEXTS: Columns = {
    "probe": measurement.c.probe,
    "subject": measurement.c.subject,
    "quantity": measurement.c.quantity,
    "element_type": measurement.c.element_type,
    "backend": measurement.c.backend,
    "isa": measurement.c.isa,
    "outcome": measurement.c.outcome,
    "grade": measurement.c.grade,
    "reason": measurement.c.reason,
}
MEASUREMENT_SORTS: Columns = {
    **MEASUREMENT_TEXTS,
    "seq": measurement.c.seq,
    "threads": measurement.c.threads,
    "best": BEST,
    "median": measurement.c.median,
    "ci_low": measurement.c.ci_low,
    "mad": measurement.c.mad,
    "n": measurement.c.n,
    "elapsed_seconds": measurement.c.elapsed_seconds,
}
_MEASUREMENT_NUMBERS: Columns = {"threads": measurement.c.threads, "seq": measurement.c.seq}


def devices(connection: Connection, selection: Selection) -> Listing:
    """Return boards, those last heard first."""
    return _page(
        connection,
        select(device),
        DEVICE_TEXTS,
        {},
        DEVICE_SORTS,
        selection,
        [device.c.last_seen_at.desc(), device.c.id],
    )


def device_by_fingerprint(connection: Connection, fingerprint: str) -> Row[Any] | None:
    """Return one board, None where there is none."""
    return connection.execute(select(device).where(device.c.fingerprint == fingerprint)).first()


def latest_runs(connection: Connection, device_ids: Iterable[int]) -> dict[int, tuple[Row[Any], int]]:
    """Return each board's newest run and how many it has."""
    newest = (
        select(func.max(run.c.id).label("newest"), func.count().label("runs"))
        .where(run.c.device_id.in_(list(device_ids)))
        .group_by(run.c.device_id)
        .subquery()
    )
    rows = connection.execute(select(run, newest.c.runs).join(newest, run.c.id == newest.c.newest))
    return {row.device_id: (row, row.runs) for row in rows}


def ceiling_runs(connection: Connection, device_ids: Iterable[int]) -> dict[int, Row[Any]]:
    """Return each board's newest run that measured a peak: it measured the bandwidth before."""
    has_peak = (
        select(measurement.c.seq)
        .where(measurement.c.run == run.c.id, measurement.c.probe == "peak", measurement.c.outcome == "ok")
        .exists()
    )
    newest = (
        select(func.max(run.c.id))
        .where(run.c.device_id.in_(list(device_ids)), has_peak)
        .group_by(run.c.device_id)
    )
    return {row.device_id: row for row in connection.execute(select(run).where(run.c.id.in_(newest)))}


def ceiling_measurements(connection: Connection, run_ids: Iterable[int]) -> dict[int, list[Measurement]]:
    """Return the measurements of each run that ceilings are made of."""
    found: dict[int, list[Measurement]] = {run_id: [] for run_id in run_ids}
    rows = connection.execute(
        select(measurement)
        .where(
            measurement.c.run.in_(list(found)),
            measurement.c.probe.in_(_CEILING_PROBES),
            measurement.c.outcome == Outcome.OK.value,
        )
        .order_by(measurement.c.run, measurement.c.seq)
    )
    for row in rows:
        found[row.run].append(measurement_record(row))
    return found


def runs(connection: Connection, device_id: int, selection: Selection) -> Listing:
    """Return a board's runs, the newest first."""
    chosen = select(run).where(run.c.device_id == device_id)
    return _page(connection, chosen, RUN_TEXTS, {}, RUN_SORTS, selection, [run.c.id.desc()])


def run_by_id(connection: Connection, run_id: str) -> Row[Any] | None:
    """Return a run and its board's name. Where two boards used the same identifier, the first run."""
    return connection.execute(
        select(run, device.c.fingerprint, device.c.hostname, device.c.model)
        .join(device, device.c.id == run.c.device_id)
        .where(run.c.run_id == run_id)
        .order_by(run.c.id)
        .limit(1)
    ).first()


def measurements(connection: Connection, run_number: int, selection: Selection) -> Listing:
    """Return a run's measurements without their repetitions, one probe after the other."""
    wanted = [column for column in measurement.c if column.name != "repetitions"]
    # Figures of one probe, and so of one unit, stay together whatever they are sorted by.
    quantities = {"bytes_per_s": 0, "flops_per_s": 1, "seconds": 2}
    order = [case(quantities, value=measurement.c.quantity, else_=3), measurement.c.probe]
    chosen = select(*wanted, BEST.label("best")).where(measurement.c.run == run_number)
    return _page(
        connection,
        chosen,
        MEASUREMENT_TEXTS,
        _MEASUREMENT_NUMBERS,
        MEASUREMENT_SORTS,
        selection,
        [measurement.c.seq],
        first=order,
    )


def outcome_counts(connection: Connection, run_number: int) -> dict[str, int]:
    """Return how many measurements of a run ended how."""
    rows = connection.execute(
        select(measurement.c.outcome, func.count().label("measured"))
        .where(measurement.c.run == run_number)
        .group_by(measurement.c.outcome)
    )
    return {row.outcome: row.measured for row in rows}


def networks(connection: Connection, run_number: int, limit: int) -> Sequence[Row[Any]]:
    """Return the first `limit` networks that a run measured, each with its statistics."""
    return connection.execute(_network_select().where(measurement.c.run == run_number).limit(limit)).all()


def network_by_seq(connection: Connection, run_number: int, seq: int) -> Row[Any] | None:
    """Return one measured network of a run, None where `seq` is none."""
    return connection.execute(
        _network_select().where(and_(measurement.c.run == run_number, measurement.c.seq == seq))
    ).first()


def network_nodes(connection: Connection, run_number: int, seq: int) -> tuple[NodeTime, ...]:
    """Return the times of a network's executed nodes, by their position."""
    rows = connection.execute(
        select(layer).where(layer.c.run == run_number, layer.c.seq == seq).order_by(layer.c.position)
    )
    return tuple(NodeTime(row.position, row.name, row.op_type, _statistics(row)) for row in rows)


def models(connection: Connection, digests: Iterable[str]) -> dict[str, bytes]:
    """Return the serialized weightless models that are there, by digest."""
    wanted = list(digests)
    if not wanted:
        return {}
    rows = connection.execute(select(model.c.sha256, model.c.data).where(model.c.sha256.in_(wanted)))
    return {row.sha256: row.data for row in rows}


def measurement_record(row: Row[Any], nodes: tuple[NodeTime, ...] = ()) -> Measurement:
    """Return a row of `measurement` (joined with `network` or not) as the fit reads it.

    Conditions stay behind: they are for people, and shown from the row.
    """
    fields = row._mapping
    return Measurement(
        probe=row.probe,
        subject=row.subject,
        quantity=row.quantity,
        outcome=Outcome(row.outcome),
        element_type=row.element_type,
        threads=row.threads,
        cpus=tuple(row.cpus),
        backend=row.backend,
        backend_version=row.backend_version,
        isa=row.isa,
        compiler=row.compiler,
        parameters=dict(row.parameters),
        reason=row.reason,
        grade=Grade(row.grade) if row.grade else None,
        grade_reasons=tuple(row.grade_reasons),
        statistics=_statistics(row) if row.n is not None else None,
        repetitions=unpack_doubles(fields.get("repetitions")),
        work=Work(row.stream_bytes, row.bus_bytes, row.flops, row.working_set_bytes or 0)
        if row.stream_bytes is not None
        else None,
        elapsed_seconds=row.elapsed_seconds,
        network=NetworkDetail(
            model_name=row.model_name,
            model_sha256=row.model_sha256,
            executed_sha256=row.executed_sha256,
            provider=row.provider,
            optimization=row.optimization,
            nodes=nodes,
            unjoined_seconds=row.unjoined_seconds,
            profiled_seconds=row.profiled_seconds,
        )
        if "model_name" in fields
        else None,
    )


def _network_select() -> Select[Any]:
    joined = and_(network.c.run == measurement.c.run, network.c.seq == measurement.c.seq)
    detail = [column for column in network.c if column.name not in {"run", "seq"}]
    return select(measurement, *detail).join(network, joined).order_by(measurement.c.seq)


def _statistics(row: Row[Any]) -> Statistics:
    return Statistics(
        row.n,
        row.min,
        row.q10,
        row.median,
        row.q90,
        row.max,
        row.mean,
        row.mad,
        row.ci_low,
        row.ci_high,
    )


def _page(
    connection: Connection,
    chosen: Select[Any],
    texts: Columns,
    numbers: Columns,
    sorts: Columns,
    selection: Selection,
    tie: Sequence[ColumnElement[Any]],
    first: Sequence[ColumnElement[Any]] = (),
) -> Listing:
    """Return the selected page; `first` orders before the wish, `tie` after it."""
    for term in selection.terms:
        chosen = chosen.where(_matches(term, texts, numbers))
    total = connection.scalar(select(func.count()).select_from(chosen.order_by(None).subquery())) or 0
    order = list(first)
    if selection.sort:
        key = sorts[selection.sort]
        order.append((key.desc() if selection.descending else key.asc()).nulls_last())
    page = chosen.order_by(*order, *tie).limit(selection.limit).offset(selection.offset)
    return Listing(connection.execute(page).all(), total)


def _matches(term: Term, texts: Columns, numbers: Columns) -> ColumnElement[bool]:
    if term.key in numbers:
        return cast(numbers[term.key], Text) == term.text
    searched = [texts[term.key]] if term.key else list(texts.values())
    return or_(*(column.icontains(term.text, autoescape=True) for column in searched))
