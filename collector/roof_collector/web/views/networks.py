"""One network as it ran: its layers beside the roofline of the run's own ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from roof_collector.analysis.roofline import Roofline, layers_seconds, model_seconds
from roof_collector.fit.networks import LayerComparison, compare
from roof_collector.store import queries
from roof_collector.web.documents import (
    SCHEMA,
    LayerRow,
    LayerTotals,
    NetworkDocument,
    NetworkRow,
    RooflineRow,
)
from roof_collector.web.errors import PageError
from roof_collector.web.plot import draw
from roof_collector.web.reading import Counted
from roof_collector.web.tables import Column, Table
from roof_collector.web.views import NameDep, QueryDep, SeqDep, StoreDep, View
from roof_collector.web.views.common import device_brief, found_run, roofline_for, roofline_rows, run_row

LAYERS = Table(
    "layers",
    (
        Column("index", "#", "", 1, "count"),
        Column("name", "Layer", kind="layer"),
        Column("op_type", "Operator"),
        Column("layer_class", "Class", kind="class"),
        Column("macc", "macc", "M", 1e6, "number"),
        Column("flops", "flops", "M", 1e6, "number", "2 macc + other operations"),
        Column("memory_bytes", "Traffic", "MB", 1e6, "number", "every tensor once, caches ignored"),
        Column("intensity", "Intensity", "FLOP/B", 1, "number"),
        Column("achieved_flops_per_s", "Achieved", "GFLOP/s", 1e9, "number"),
        Column("roofline_seconds", "Predicted", "\N{MICRO SIGN}s", 1e-6, "number", "roofline"),
        Column("measured_seconds", "Measured", "\N{MICRO SIGN}s", 1e-6, "number", "median, profiled"),
        Column("ratio", "Ratio", "", 1, "ratio", "measured by predicted"),
        Column("share", "Share", "%", 0.01, "share", "of the layers' measured time"),
        Column("bound", "Bound by", kind="bound"),
    ),
    searchable=("name", "op_type", "layer_class", "bound", "index"),
    size=500,
)


def network_page(store: StoreDep, query: QueryDep, run_id: NameDep, measurement: SeqDep) -> View:
    """Show one measured network: each executed layer counted, predicted and measured."""
    with store.connect() as connection:
        run = found_run(connection, run_id)
        row = queries.network_by_seq(connection, run.id, measurement)
        if row is None:
            raise PageError(404, "this run has no network of that number")
        nodes = queries.network_nodes(connection, run.id, row.seq)
        rooflines = roofline_rows(store.ceilings_of(connection, [run])[run.id])
        graph = store.graphs(connection, [row.executed_sha256])[row.executed_sha256]
    chosen = _roof_row(row, rooflines)
    roof = _roofline(chosen)
    found = compare(queries.measurement_record(row, nodes), graph.layers, roof)
    rows = [
        _layer_row(layer, counted.uncounted, roof)
        for layer, counted in zip(found.layers, graph.layers, strict=True)
    ]
    layers = query.apply(LAYERS, rows)
    totals = LayerTotals(
        layers=len(rows),
        uncounted=sum(bool(layer.uncounted) for layer in rows),
        macc=found.macc,
        flops=sum(layer.flops for layer in rows),
        memory_bytes=found.memory_bytes,
        roofline_seconds=found.roofline_seconds,
        measured_seconds=found.layers_seconds,
        unjoined_seconds=found.unjoined_seconds,
        unmatched=found.unmatched,
    )
    network = network_row(row, graph, rooflines)
    document = NetworkDocument(SCHEMA, run_row(run), device_brief(run), network, chosen, totals, layers)
    return View(
        "network.html",
        f"{row.model_name} on {run.model or run.hostname}",
        document,
        {"layers": (LAYERS, layers)},
        query,
        {"plot": draw(rows, chosen)},
    )


def network_row(row: Row[Any], graph: Counted, rooflines: Sequence[RooflineRow]) -> NetworkRow:
    """Return a measured network beside what the ceilings of its run allow it."""
    chosen = _roof_row(row, rooflines)
    roof = _roofline(chosen)
    counted = bool(graph.layers)
    predicted = layers_seconds(graph.layers, roof) if roof and counted else None
    flops = sum(layer.flops for layer in graph.layers)
    memory = sum(layer.memory_bytes for layer in graph.layers)
    return NetworkRow(
        seq=row.seq,
        name=row.model_name,
        element_type=row.element_type,
        threads=row.threads,
        backend=row.backend,
        backend_version=row.backend_version,
        provider=row.provider,
        optimization=row.optimization,
        model_sha256=row.model_sha256,
        executed_sha256=row.executed_sha256,
        outcome=row.outcome,
        grade=row.grade or "",
        grade_reasons=list(row.grade_reasons),
        measured_seconds=row.median,
        best_seconds=row.min,
        ci_low_seconds=row.ci_low,
        ci_high_seconds=row.ci_high,
        n=row.n,
        roofline_seconds=predicted,
        roofline_model_seconds=model_seconds(graph.layers, roof) if roof and counted else None,
        ratio=row.median / predicted if row.median is not None and predicted else None,
        ceilings_backend=chosen.backend if chosen else "",
        layers=len(graph.layers),
        macc=sum(layer.macc for layer in graph.layers) if counted else None,
        flops=flops if counted else None,
        memory_bytes=memory if counted else None,
        intensity=flops / memory if memory else None,
        problem=graph.problem or ("" if roof else _missing_roof(row)),
    )


def _roof_row(row: Row[Any], rooflines: Sequence[RooflineRow]) -> RooflineRow | None:
    return roofline_for(rooflines, element_type=row.element_type or "float32", threads=row.threads)


def _roofline(row: RooflineRow | None) -> Roofline | None:
    return Roofline(row.flops_per_s, row.bytes_per_s) if row else None


def _missing_roof(row: Row[Any]) -> str:
    threads = f"{row.threads} thread{'s' * (row.threads != 1)}"
    return f"the run has no ceilings of {row.element_type or 'float32'} with {threads} to predict by"


def _layer_row(layer: LayerComparison, uncounted: str, roof: Roofline | None) -> LayerRow:
    counted = not uncounted
    achieved = layer.flops / layer.measured_seconds if counted and layer.measured_seconds else None
    allowed = roof.attainable(layer.intensity) if roof and layer.intensity else None
    return LayerRow(
        **vars(layer),
        uncounted=uncounted,
        achieved_flops_per_s=achieved,
        roof_share=achieved / allowed if achieved is not None and allowed else None,
    )
