"""A roofline in text, and the same by matplotlib.

Both axes are logarithmic: intensity in FLOP/byte across, FLOP/s up. A point that nobody measured lies
on the roof, where the model puts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roof_agent.units import format_si
from roof_collector.analysis.roofline import Roofline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABEL_WIDTH = 13
# Letters for the points of a text drawing; what is past them, and points in one place, share a sign.
_MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MORE = "*"


@dataclass(frozen=True)
class Point:
    """Work with its intensity in FLOP/byte; `weight` is its share of the time, 0 to 1."""

    label: str
    intensity: float
    weight: float = 0.0


def text_roofline(
    points: Sequence[Point], roofline: Roofline, *, width: int = 72, height: int = 16, legend: bool = True
) -> str:
    """Return the roof with the points on it, each a letter, and a legend of the letters."""
    low, high = _decades([point.intensity for point in points] + [roofline.ridge])
    top = roofline.flops_per_s
    bottom = roofline.attainable(10.0**low)
    canvas = [[" "] * width for _ in range(height)]

    def column(intensity: float) -> int:
        return round((math.log10(intensity) - low) / (high - low) * (width - 1))

    def row(flops_per_s: float) -> int:
        return round((math.log10(top) - math.log10(flops_per_s)) / math.log10(top / bottom) * (height - 1))

    for at in range(width):
        intensity = 10 ** (low + at / (width - 1) * (high - low))
        slanted = intensity < roofline.ridge
        canvas[row(roofline.attainable(intensity))][at] = "/" if slanted else "-"
    for index, point in enumerate(points):
        mark = _MARKS[index] if index < len(_MARKS) else _MORE
        cells, at = canvas[row(roofline.attainable(point.intensity))], column(point.intensity)
        cells[at] = mark if cells[at] in "/- " else _MORE
    lines = []
    for number, cells in enumerate(canvas):
        value = top / (top / bottom) ** (number / (height - 1))
        label = format_si(value, "FLOP/s") if number % 5 == 0 or number == height - 1 else ""
        lines.append(f"{label:>{_LABEL_WIDTH}} |{''.join(cells).rstrip()}")
    lines.append(" " * (_LABEL_WIDTH + 1) + "+" + "-" * width)
    lines.append(" " * (_LABEL_WIDTH + 2) + _decade_labels(low, high, width))
    lines.append(
        f"{'':{_LABEL_WIDTH + 2}}FLOP/byte; ridge {roofline.ridge:.4g}, "
        f"peak {format_si(top, 'FLOP/s')}, memory {format_si(roofline.bytes_per_s, 'B/s')}"
    )
    if legend:
        lines += [
            f"{'':{_LABEL_WIDTH + 2}}{_MARKS[index]} {point.label} ({point.intensity:.4g})"
            for index, point in enumerate(points[: len(_MARKS)])
        ]
    return "\n".join(lines) + "\n"


def plot(points: Sequence[Point], roofline: Roofline, title: str) -> Figure:
    """Return a figure of the roof and the points; a dot's area follows its weight."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    low, high = _decades([point.intensity for point in points] + [roofline.ridge])
    corners = [10.0**low, roofline.ridge, 10.0**high]
    axes.plot(corners, [roofline.attainable(corner) for corner in corners], color="black", linewidth=1.5)
    axes.scatter(
        [point.intensity for point in points],
        [roofline.attainable(point.intensity) for point in points],
        s=[20 + 800 * point.weight for point in points],
        alpha=0.6,
    )
    for point in sorted(points, key=lambda point: -point.weight)[:12]:
        axes.annotate(
            point.label,
            (point.intensity, roofline.attainable(point.intensity)),
            fontsize=7,
            xytext=(4, -9),
            textcoords="offset points",
        )
    axes.axvline(roofline.ridge, linestyle=":", linewidth=1, color="grey")
    axes.set(
        xscale="log",
        yscale="log",
        title=title,
        xlabel=f"intensity, FLOP/byte (ridge {roofline.ridge:.4g})",
        ylabel=(
            f"FLOP/s (peak {format_si(roofline.flops_per_s, 'FLOP/s')}, "
            f"memory {format_si(roofline.bytes_per_s, 'B/s')})"
        ),
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    return figure


def save(points: Sequence[Point], roofline: Roofline, title: str, path: Path, kind: str) -> None:
    """Write the figure as `kind` ("svg" or "png"); the same points give the same bytes."""
    import matplotlib as mpl

    # Without these, every SVG has its date and random identifiers in it.
    with mpl.rc_context({"svg.hashsalt": "roofline"}):
        metadata = {"Date": None} if kind == "svg" else None
        plot(points, roofline, title).savefig(path, format=kind, metadata=metadata)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values) / 1.5))
    return low, max(low + 1, math.ceil(math.log10(max(values) * 1.5)))


def _decade_labels(low: int, high: int, width: int) -> str:
    cells = [" "] * (width + 8)
    for decade in range(low, high + 1):
        at = round((decade - low) / (high - low) * (width - 1))
        text = f"{10.0**decade:g}"
        cells[at : at + len(text)] = text
    return "".join(cells).rstrip()
