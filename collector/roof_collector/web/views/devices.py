"""The boards that the collector knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from roof_collector.fit.ceilings import Ceiling
from roof_collector.store import queries
from roof_collector.web.documents import SCHEMA, DeviceRow, DevicesDocument
from roof_collector.web.tables import Column, Table
from roof_collector.web.views import QueryDep, StoreDep, View
from roof_collector.web.views.common import moment, roofline_for, roofline_rows, state

TABLE = Table(
    "devices",
    (
        Column("model", "Device", kind="device"),
        Column("state", "Newest run", kind="state", sortable=False),
        Column("architecture", "Architecture"),
        Column("core_kinds", "Cores", sortable=False),
        Column("memory_bytes", "Memory", kind="size"),
        Column(
            "bytes_per_s", "Bandwidth", "GB/s", 1e9, "number", "DRAM, all measured threads", sortable=False
        ),
        Column(
            "flops_per_s", "Peak", "GFLOP/s", 1e9, "number", "float32, all measured threads", sortable=False
        ),
        Column("ridge", "Ridge", "FLOP/B", 1, "number", "from here on arithmetic binds", sortable=False),
        Column("backend", "Kernels", kind="backend", sortable=False),
        Column("runs", "Runs", "", 1, "count", sortable=False),
        Column("last_seen_at", "Last seen", kind="time"),
    ),
    searchable=tuple(queries.DEVICE_TEXTS),
    size=50,
)


def devices_page(store: StoreDep, query: QueryDep) -> View:
    """List the boards, those last heard first."""
    with store.connect() as connection:
        listing = queries.devices(connection, query.selection(TABLE))
        numbers = [row.id for row in listing.rows]
        latest = queries.latest_runs(connection, numbers)
        sources = queries.ceiling_runs(connection, numbers)
        found = store.ceilings_of(connection, list(sources.values()))
    rows = [
        _row(row, latest.get(row.id), found[sources[row.id].id] if row.id in sources else ())
        for row in listing.rows
    ]
    page = query.page_of(TABLE, rows, listing.total)
    return View("devices.html", "Devices", DevicesDocument(SCHEMA, page), {"devices": (TABLE, page)}, query)


def core_kinds(clusters: Sequence[dict[str, Any]]) -> str:
    """Return "4 x cortex-a72 + 4 x cortex-a53"."""
    kinds: Counter[str] = Counter()
    for cluster in clusters:
        kinds[str(cluster.get("core") or "unknown")] += len(cluster.get("cpus") or ())
    return " + ".join(f"{count} x {core}" for core, count in kinds.items())


def _row(device: Row[Any], latest: tuple[Row[Any], int] | None, found: Sequence[Ceiling]) -> DeviceRow:
    roof = roofline_for(roofline_rows(found))
    return DeviceRow(
        fingerprint=device.fingerprint,
        hostname=device.hostname,
        model=device.model,
        soc=device.soc,
        architecture=device.architecture,
        cores=sum(len(cluster.get("cpus") or ()) for cluster in device.clusters),
        core_kinds=core_kinds(device.clusters),
        memory_bytes=device.memory_bytes,
        state=state(latest[0])[0] if latest else "known",
        last_seen_at=moment(device.last_seen_at),
        runs=latest[1] if latest else 0,
        last_run_id=latest[0].run_id if latest else None,
        backend=roof.backend if roof else "",
        threads=roof.threads if roof else None,
        bytes_per_s=roof.bytes_per_s if roof else None,
        flops_per_s=roof.flops_per_s if roof else None,
        ridge=roof.ridge if roof else None,
    )
