"""A run as text: the figures of its pages, in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import Engine

from roof_agent.table import columns
from roof_agent.units import format_si, quantity
from roof_collector.web.documents import LayerRow, MeasurementRow, NetworkDocument, NetworkRow, RunDocument
from roof_collector.web.reading import PageStore
from roof_collector.web.tables import MAX_SIZE, TableQuery
from roof_collector.web.views.networks import network_page
from roof_collector.web.views.run import run_page

_WHOLE = TableQuery(size=MAX_SIZE)


def read(engine: Engine, run_id: str) -> tuple[RunDocument, list[NetworkDocument]]:
    """Return a run's document and those of its networks, as the pages' `.json` gives them.

    Raises PageError where there is no such run.
    """
    store = PageStore(engine)
    run = run_page(store, _WHOLE, run_id).document
    assert isinstance(run, RunDocument)
    networks = [network_page(store, _WHOLE, run_id, row.seq).document for row in run.networks.rows]
    return run, [document for document in networks if isinstance(document, NetworkDocument)]


def render(run: RunDocument, networks: Sequence[NetworkDocument]) -> str:
    """Return the tables: bandwidth, peak, ridge, networks, and each network's layers."""
    blocks = [
        _rates(run.measurements.rows, "bandwidth"),
        _rates(run.measurements.rows, "peak"),
        _ridges(run),
        _networks(run.networks.rows),
        *(_layers(document) for document in networks),
        _missing(run.measurements.rows),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _rates(measurements: Sequence[MeasurementRow], probe: str) -> str:
    rows = [("", "type", "threads", "best", "median", "measured by", "grade")]
    for row in measurements:
        if row.probe == probe and row.best is not None and row.median is not None:
            unit = quantity(row.quantity)
            rows.append(
                (
                    f"{row.subject} {row.store}".rstrip(),
                    row.element_type,
                    str(row.threads),
                    unit.format(row.best),
                    unit.format(row.median),
                    _backend(row),
                    row.grade,
                )
            )
    return "\n".join([probe, *columns(rows)]) if len(rows) > 1 else ""


def _backend(row: MeasurementRow) -> str:
    return row.backend if row.isa in {"", row.backend} else f"{row.backend} {row.isa}"


def _ridges(run: RunDocument) -> str:
    rows = [("ridge", "threads", "peak", "bandwidth", "peak / bandwidth", "measured by")]
    rows += [
        (
            row.element_type,
            str(row.threads),
            format_si(row.flops_per_s, "FLOP/s"),
            format_si(row.bytes_per_s, "B/s"),
            f"{row.ridge:.2f} FLOP/B",
            row.backend,
        )
        for row in run.rooflines
    ]
    return "\n".join(columns(rows)) if len(rows) > 1 else ""


def _networks(networks: Sequence[NetworkRow]) -> str:
    rows = [
        ("network", "threads", "macc", "predicted", "measured", "measured / predicted", "ceilings", "grade")
    ]
    rows += [
        (
            row.name,
            str(row.threads),
            f"{row.macc:,}" if row.macc is not None else row.problem,
            _seconds(row.roofline_seconds),
            _seconds(row.measured_seconds),
            _ratio(row.ratio),
            row.ceilings_backend,
            row.grade,
        )
        for row in networks
    ]
    return "\n".join(columns(rows)) if len(rows) > 1 else ""


def _layers(document: NetworkDocument) -> str:
    network, totals = document.network, document.totals
    if not document.layers.rows:
        return f"{network.name}, {network.threads} threads: {network.problem}"
    rows: list[tuple[str, ...]] = [
        ("layer", "operator", "macc", "bytes", "FLOP/B", "bound", "predicted", "measured", "ratio")
    ]
    rows += [_layer(row) for row in document.layers.rows]
    rows.append(
        (
            "sum",
            "",
            f"{totals.macc:,}",
            f"{totals.memory_bytes:,}",
            "",
            "",
            _seconds(totals.roofline_seconds),
            _seconds(totals.measured_seconds),
            _ratio(_divided(totals.measured_seconds, totals.roofline_seconds)),
        )
    )
    threads = f"{network.threads} thread{'s' * (network.threads != 1)}"
    lines = [f"{network.name}, {threads}: {network.layers} executed layers", *columns(rows)]
    lines += _remarks(document)
    return "\n".join(lines)


def _layer(row: LayerRow) -> tuple[str, ...]:
    return (
        row.name or f"#{row.index}",
        row.op_type,
        f"{row.macc:,}",
        f"{row.memory_bytes:,}",
        f"{row.intensity:.2f}" if row.intensity is not None else "",
        row.bound,
        _seconds(row.roofline_seconds),
        _seconds(row.measured_seconds),
        _ratio(row.ratio),
    )


def _remarks(document: NetworkDocument) -> Iterator[str]:
    network, totals = document.network, document.totals
    if network.problem:
        yield network.problem
    if totals.uncounted:
        yield f"{totals.uncounted} operators aren't counted: there is no rule for them"
    if totals.unjoined_seconds:
        yield f"{_seconds(totals.unjoined_seconds)} of the profile belong to no layer"


def _missing(measurements: Sequence[MeasurementRow]) -> str:
    """Return what gave no result, once a reason."""
    lines: dict[str, None] = {}
    for row in measurements:
        if row.outcome != "ok":
            what = " ".join(word for word in (row.probe, row.subject, row.store) if word)
            lines[f"{what} {row.outcome}: {row.reason}"] = None
    return "\n".join(lines)


def _optional(show: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: "" if value is None else show(value)


_seconds = _optional(lambda value: format_si(value, "s"))
_ratio = _optional(lambda value: f"{value:.2f}")


def _divided(numerator: float, denominator: float | None) -> float | None:
    return numerator / denominator if denominator else None
