"""One run: how far it is, the networks it measured, and everything it measured."""

from __future__ import annotations

from roof_collector.store import queries
from roof_collector.web.documents import SCHEMA, RunDocument
from roof_collector.web.tables import Column, Table, TablePage
from roof_collector.web.views import NameDep, QueryDep, StoreDep, View
from roof_collector.web.views.common import device_brief, found_run, measurement_row, roofline_rows, run_row
from roof_collector.web.views.networks import network_row

MEASUREMENTS = Table(
    "measurements",
    (
        Column("seq", "#", "", 1, "count"),
        Column("probe", "Probe"),
        Column("subject", "Subject", kind="subject"),
        Column("element_type", "Type"),
        Column("threads", "Threads", "", 1, "count"),
        Column("best", "Best", kind="figure", help="the highest rate, the shortest time"),
        Column("median", "Median", kind="figure"),
        Column("ci_low", "95 % interval", kind="interval", help="of the median"),
        Column("mad", "MAD", kind="figure", help="median absolute deviation"),
        Column("n", "n", "", 1, "count"),
        Column("backend", "Measured by", kind="backend"),
        Column("grade", "Grade", kind="grade"),
        Column("conditions_after", "Conditions", kind="conditions", sortable=False),
    ),
    searchable=(*queries.MEASUREMENT_TEXTS, "threads", "seq"),
    size=100,
)
NETWORKS = Table(
    "networks",
    (
        Column("name", "Network", kind="network", sortable=False),
        Column("element_type", "Type", sortable=False),
        Column("threads", "Threads", "", 1, "count", sortable=False),
        Column("measured_seconds", "Measured", "ms", 1e-3, "number", "median, not profiled", sortable=False),
        Column(
            "roofline_seconds",
            "Predicted",
            "ms",
            1e-3,
            "number",
            "sum of the layers' rooflines",
            sortable=False,
        ),
        Column("ratio", "Ratio", "", 1, "ratio", "measured by predicted", sortable=False),
        Column("macc", "macc", "M", 1e6, "number", sortable=False),
        Column("memory_bytes", "Traffic", "MB", 1e6, "number", sortable=False),
        Column("layers", "Layers", "", 1, "count", sortable=False),
        Column("backend", "Runtime", kind="backend", sortable=False),
        Column("grade", "Grade", kind="grade", sortable=False),
    ),
)

# A zoo at two thread counts is some dozens; what a person wants to see at once.
_NETWORK_ROWS = 200


def run_page(store: StoreDep, query: QueryDep, run_id: NameDep) -> View:
    """Show one run: state, networks with measured and predicted latency, measurements."""
    with store.connect() as connection:
        run = found_run(connection, run_id)
        listing = queries.measurements(connection, run.id, query.selection(MEASUREMENTS))
        counts = queries.outcome_counts(connection, run.id)
        found = store.ceilings_of(connection, [run])[run.id]
        measured = queries.networks(connection, run.id, _NETWORK_ROWS)
        graphs = store.graphs(connection, {row.executed_sha256 for row in measured})
    rooflines = roofline_rows(found)
    rows = [network_row(row, graphs[row.executed_sha256], rooflines) for row in measured]
    networks = TablePage(rows, len(rows))
    measurements = query.page_of(MEASUREMENTS, [measurement_row(row) for row in listing.rows], listing.total)
    document = RunDocument(SCHEMA, run_row(run), device_brief(run), rooflines, networks, measurements)
    return View(
        "run.html",
        f"Run {run.run_id}",
        document,
        {"measurements": (MEASUREMENTS, measurements), "networks": (NETWORKS, networks)},
        query,
        {"counts": counts},
    )
