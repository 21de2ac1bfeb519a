"""Rows of the store as rows of the documents."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row

from roof_agent.records import Grade
from roof_collector.fit.ceilings import Ceiling, roofline
from roof_collector.store import queries
from roof_collector.web.documents import MeasurementRow, RooflineRow, RunRow
from roof_collector.web.errors import PageError

# An agent is quiet while it measures, and the longest measurement takes minutes. A session that died with
# its collector leaves no trace but its silence.
_SILENCE_NS = 600 * 10**9

_MEASUREMENT_FIELDS = tuple(field.name for field in dataclasses.fields(MeasurementRow))


def moment(at_ns: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601, in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def state(run: Row[Any]) -> tuple[str, str]:
    """Return a run's state and what there is to say about it."""
    if run.ended_at is not None:
        if run.complete:
            return "complete", run.reason or ""
        return "partial", run.reason or "some measurement failed"
    if run.stream is None:
        return "interrupted", "its agent went away before the run ended"
    if time.time_ns() - run.heard_at > _SILENCE_NS:
        return "interrupted", "nothing was heard of its agent for ten minutes"
    return "running", run.current or ""


def run_row(run: Row[Any]) -> RunRow:
    """Return a run for people."""
    its_state, reason = state(run)
    return RunRow(
        run_id=run.run_id,
        state=its_state,
        state_reason=reason,
        preset=run.preset or "",
        agent_version=run.agent_version or "",
        received_at=moment(run.received_at),
        heard_at=moment(run.heard_at),
        ended_at=moment(run.ended_at) if run.ended_at is not None else None,
        planned=run.planned,
        done=run.done,
        current=run.current or "",
        ok=run.ok,
        unavailable=run.unavailable,
        failed=run.failed,
        dropped=run.dropped,
    )


def found_run(connection: Connection, run_id: str) -> Row[Any]:
    """Return a run with its board. Raises PageError where there is none."""
    found = queries.run_by_id(connection, run_id)
    if found is None:
        raise PageError(404, "this collector has no run of that identifier")
    return found


def device_brief(run: Row[Any]) -> dict[str, str]:
    """Return what a run's page says of its board."""
    return {"fingerprint": run.fingerprint, "hostname": run.hostname, "model": run.model}


def measurement_row(row: Row[Any]) -> MeasurementRow:
    """Return a measurement for people: figures, what they were measured with, and their grade."""
    fields = row._mapping
    after = row.conditions_after or {}
    temperatures = (after.get("temperature_celsius") or {}).values()
    return MeasurementRow(
        **{name: fields[name] for name in _MEASUREMENT_FIELDS if name in fields}
        | {
            "store": row.parameters.get("store", ""),
            "grade": row.grade or "",
            "grade_reasons": list(row.grade_reasons),
            "clock_hz": after.get("clock_hz"),
            "temperature_celsius": max(temperatures, default=None),
            "is_network": row.quantity == "seconds" and row.probe == "network",
        }
    )


def roofline_rows(found: Sequence[Ceiling]) -> list[RooflineRow]:
    """Return every roofline that the ceilings support: native before numpy, few threads before many."""
    rows = []
    keys = {(c.backend, c.element_type, c.threads) for c in found if c.quantity == "flops_per_s"}
    for backend, element_type, threads in sorted(keys):
        own = [ceiling for ceiling in found if ceiling.backend == backend]
        roof = roofline(own, element_type=element_type, threads=threads)
        if roof:
            chosen = [c.grade for c in own if c.value in {roof.flops_per_s, roof.bytes_per_s}]
            grade = next((grade for grade in chosen if grade != Grade.CLEAN.value), Grade.CLEAN.value)
            rows.append(
                RooflineRow(
                    element_type, threads, backend, roof.flops_per_s, roof.bytes_per_s, roof.ridge, grade
                )
            )
    return sorted(rows, key=lambda row: (row.backend != "native", row.element_type, row.threads))


def roofline_for(
    rows: Sequence[RooflineRow], *, element_type: str = "float32", threads: int | None = None
) -> RooflineRow | None:
    """Return the roofline of an element type and thread count (None: the most threads there are).

    A native one goes before a numpy one; the two are never mixed.
    """
    own = [row for row in rows if row.element_type == element_type and threads in {None, row.threads}]
    return max(own, key=lambda row: (row.backend == "native", row.threads), default=None)
