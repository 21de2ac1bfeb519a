"""One board: what it is, what it can do, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from roof_collector.store import queries
from roof_collector.web.documents import SCHEMA, DeviceDocument
from roof_collector.web.errors import PageError
from roof_collector.web.tables import Column, Table, TablePage
from roof_collector.web.views import NameDep, QueryDep, StoreDep, View
from roof_collector.web.views.common import (
    measurement_row,
    moment,
    roofline_rows,
    run_row,
    state,
)
from roof_collector.web.views.devices import core_kinds

RUNS = Table(
    "runs",
    (
        Column("run_id", "Run", kind="run"),
        Column("state", "State", kind="state", sortable=False),
        Column("preset", "Preset"),
        Column("ok", "Measured", "", 1, "count"),
        Column("unavailable", "Not available", "", 1, "count"),
        Column("failed", "Failed", "", 1, "count"),
        Column("agent_version", "Agent"),
        Column("received_at", "Began", kind="time"),
        Column("heard_at", "Last heard", kind="time"),
    ),
    searchable=tuple(queries.RUN_TEXTS),
    size=25,
)
CEILINGS = Table(
    "ceilings",
    (
        Column("quantity", "Ceiling", kind="quantity", sortable=False),
        Column("element_type", "Type", sortable=False),
        Column("threads", "Threads", "", 1, "count", sortable=False),
        Column("value", "Value", "G/s", 1e9, "number", "95th percentile of achieved rates", sortable=False),
        Column("low", "Low", "G/s", 1e9, "number", "95 % interval", sortable=False),
        Column("high", "High", "G/s", 1e9, "number", "95 % interval", sortable=False),
        Column("n", "Repetitions", "", 1, "count", sortable=False),
        Column("subject", "Kernel", sortable=False),
        Column("store", "Stores", sortable=False),
        Column("backend", "Measured by", kind="backend", sortable=False),
        Column("grade", "Grade", kind="grade", sortable=False),
    ),
)
BANDWIDTH = Table(
    "bandwidth",
    (
        Column("subject", "Kernel", sortable=False),
        Column("store", "Stores", sortable=False),
        Column("element_type", "Type", sortable=False),
        Column("threads", "Threads", "", 1, "count", sortable=False),
        Column("best", "Best", "GB/s", 1e9, "number", "STREAM's figure", sortable=False),
        Column("median", "Median", "GB/s", 1e9, "number", sortable=False),
        Column("mad", "MAD", "GB/s", 1e9, "number", "median absolute deviation", sortable=False),
        Column("n", "Repetitions", "", 1, "count", sortable=False),
        Column("backend", "Measured by", kind="backend", sortable=False),
        Column("grade", "Grade", kind="grade", sortable=False),
    ),
)

_IDENTITY = (
    "fingerprint",
    "hostname",
    "model",
    "soc",
    "architecture",
    "os",
    "kernel",
    "memory_bytes",
    "page_bytes",
    "clusters",
    "caches",
    "isa_features",
    "virtualization",
    "container",
    "labels",
    "agent_version",
)
# Thread counts times kernels times stores times types: a run has some dozens at the most.
_BANDWIDTH_ROWS = 200


def device_page(store: StoreDep, query: QueryDep, fingerprint: NameDep) -> View:
    """Show one board: identity, caches, ceilings, bandwidths and its runs."""
    with store.connect() as connection:
        device = queries.device_by_fingerprint(connection, fingerprint)
        if device is None:
            raise PageError(404, "this collector knows no device of that fingerprint")
        listing = queries.runs(connection, device.id, query.selection(RUNS))
        latest = queries.latest_runs(connection, [device.id]).get(device.id)
        source = queries.ceiling_runs(connection, [device.id]).get(device.id)
        found = store.ceilings_of(connection, [source])[source.id] if source else ()
        bandwidth = (
            queries.measurements(
                connection,
                source.id,
                queries.Selection(terms=(queries.Term("probe", "bandwidth"),), limit=_BANDWIDTH_ROWS),
            ).rows
            if source
            else ()
        )
    kernels = TablePage([measurement_row(row) for row in bandwidth], len(bandwidth))
    runs = query.page_of(RUNS, [run_row(row) for row in listing.rows], listing.total)
    ceilings = list(found)
    document = DeviceDocument(
        schema=SCHEMA,
        device=_identity(device),
        state=state(latest[0])[0] if latest else "known",
        first_seen_at=moment(device.first_seen_at),
        last_seen_at=moment(device.last_seen_at),
        ceilings_run_id=source.run_id if source else None,
        ceilings=ceilings,
        rooflines=roofline_rows(found),
        bandwidth=kernels,
        runs=runs,
    )
    tables: dict[str, tuple[Table, TablePage[Any]]] = {
        "runs": (RUNS, runs),
        "ceilings": (CEILINGS, TablePage(ceilings, len(ceilings))),
        "bandwidth": (BANDWIDTH, kernels),
    }
    return View(
        "device.html",
        device.model or device.hostname or "Device",
        document,
        tables,
        query,
        {"caches": _alike(device.caches)},
    )


def _identity(device: Row[Any]) -> dict[str, Any]:
    fields = device._mapping
    return {name: fields[name] for name in _IDENTITY} | {"core_kinds": core_kinds(device.clusters)}


def _alike(caches: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int, list[int]]]:
    """Return one of each kind of cache, how many there are, and the CPUs that have one."""
    kinds: dict[tuple[Any, ...], tuple[dict[str, Any], int, list[int]]] = {}
    for cache in caches:
        key = tuple(cache.get(name) for name in ("level", "kind", "size_bytes", "line_bytes", "provenance"))
        first, count, cpus = kinds.get(key, (cache, 0, []))
        kinds[key] = (first, count + 1, cpus + list(cache.get("shared_cpus") or ()))
    return list(kinds.values())
