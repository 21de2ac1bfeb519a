"""The roofline of a network as coordinates, for the SVG that a page shows without JavaScript.

Both axes are logarithmic: intensity in FLOP/byte across, FLOP/s up. The browser's own plot draws the
same layers from the page's JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roof_agent.units import format_si
from roof_collector.web.documents import LayerRow, RooflineRow

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 18, 24, 46
_SMALLEST, _LARGEST = 3.0, 15.0


@dataclass(frozen=True)
class Tick:
    """A decade on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Dot:
    """A layer: its area follows its share of the time."""

    x: float
    y: float
    radius: float
    index: int
    layer_class: str
    title: str


@dataclass(frozen=True)
class Plot:
    """A drawn roofline in user units of the SVG; `left_out` layers have no place on log axes."""

    dots: Sequence[Dot]
    roof: Sequence[tuple[float, float]]
    ridge: tuple[float, float] | None
    ridge_label: str
    peak_label: str
    bandwidth_label: str
    bandwidth_angle: float
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    left_out: int
    left_out_share: float
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class _Axis:
    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 2)

    @property
    def decades(self) -> range:
        return range(self.low, self.high + 1)


def draw(layers: Sequence[LayerRow], roof: RooflineRow | None) -> Plot | None:
    """Return the plot, None where no layer has both an intensity and a measured rate."""
    shown = [layer for layer in layers if layer.intensity and layer.achieved_flops_per_s]
    if not shown:
        return None
    across = [layer.intensity for layer in shown if layer.intensity]
    up = [layer.achieved_flops_per_s for layer in shown if layer.achieved_flops_per_s]
    if roof:
        across.append(roof.ridge)
        up.append(roof.flops_per_s)
    x = _axis(across, _LEFT, WIDTH - _RIGHT)
    y = _axis(up, HEIGHT - _BOTTOM, _TOP)
    largest = max((layer.share or 0.0) for layer in shown) or 1.0
    dots = [
        Dot(
            x=x.at(layer.intensity or 1.0),
            y=y.at(layer.achieved_flops_per_s or 1.0),
            radius=round(max(_SMALLEST, _LARGEST * math.sqrt((layer.share or 0.0) / largest)), 2),
            index=layer.index,
            layer_class=layer.layer_class,
            title=_title(layer),
        )
        # Small dots over large ones.
        for layer in sorted(shown, key=lambda layer: -(layer.share or 0.0))
    ]
    left_out = [layer for layer in layers if layer not in shown]
    line, angle = _roof_line(roof, x, y)
    return Plot(
        dots=dots,
        roof=line,
        ridge=(x.at(roof.ridge), y.at(roof.flops_per_s)) if roof else None,
        ridge_label=f"ridge {format_si(roof.ridge, 'FLOP/B')}" if roof else "",
        peak_label=f"peak {format_si(roof.flops_per_s, 'FLOP/s')}" if roof else "",
        bandwidth_label=f"DRAM {format_si(roof.bytes_per_s, 'B/s')}" if roof else "",
        bandwidth_angle=angle,
        x_ticks=[Tick(x.at(10.0**decade), _plain(10.0**decade)) for decade in x.decades],
        y_ticks=[Tick(y.at(10.0**decade), _short(10.0**decade)) for decade in y.decades],
        left_out=len(left_out),
        left_out_share=sum(layer.share or 0.0 for layer in left_out),
    )


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.3))
    return _Axis(low, max(high, low + 1), start, end)


def _roof_line(roof: RooflineRow | None, x: _Axis, y: _Axis) -> tuple[list[tuple[float, float]], float]:
    """Return the roof's corners from left to right, and the slope of its bandwidth in degrees."""
    if roof is None:
        return [], 0.0
    # The slanted part begins at the left edge, or where it comes up through the bottom.
    first = max(10.0**x.low, 10.0**y.low / roof.bytes_per_s)
    corners = [
        (x.at(first), y.at(first * roof.bytes_per_s)),
        (x.at(roof.ridge), y.at(roof.flops_per_s)),
        (x.end, y.at(roof.flops_per_s)),
    ]
    (x0, y0), (x1, y1), _ = corners
    return corners, round(math.degrees(math.atan2(y1 - y0, x1 - x0)), 2)


def _title(layer: LayerRow) -> str:
    part = f", {layer.roof_share:.0%} of the roof" if layer.roof_share is not None else ""
    return (
        f"{layer.index} {layer.op_type} {layer.name[:120]}: {layer.intensity:.4g} FLOP/B, "
        f"{format_si(layer.achieved_flops_per_s or 0.0, 'FLOP/s')}{part}"
    )


def _plain(value: float) -> str:
    return f"{value:g}"


def _short(value: float) -> str:
    """Return a decade with its prefix alone: 1e9 is "1 G"."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:g} {prefix}"
    return f"{value:g}"
