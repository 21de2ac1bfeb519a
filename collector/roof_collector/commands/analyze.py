"""`roof-collector analyze MODEL`: a network's params, operations, bytes and intensity, layer by layer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from roof_agent.units import format_si
from roof_collector.commands import Subparsers, add_json, counting, options

if TYPE_CHECKING:
    from roof_collector.analysis import Analysis, Layer

SORTS = ("index", "params", "macc", "flops", "memory_bytes", "intensity")


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "count a network: params, operations, bytes and intensity, layer by layer"
    parser = subparsers.add_parser("analyze", help=words, description=words)
    counting.add_model(parser, fusion="none")
    counting.add_listing(parser, SORTS)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count and print."""
    analysis = counting.analysis_of(arguments)
    if arguments.json:
        document = analysis.to_json()
        document["layers"] = [layer.to_json() for layer in counting.listed(arguments, analysis.layers)]
        options.print_json(document)
    else:
        shown = [layer for layer in analysis.layers if arguments.all or costs(layer)]
        _print(analysis, counting.listed(arguments, shown))
    return counting.exit_code(arguments, analysis)


def _print(analysis: Analysis, layers: Sequence[Layer]) -> None:
    sys.stdout.write(f"{title(analysis)}\n\n")
    heading = ("", "operator", "class", "output", "params", "macc", "FLOP", "memory", "FLOP/B", "with")
    rows = [
        (
            name(layer),
            layer.op_type,
            layer.layer_class,
            shape(layer),
            quantity(layer.params),
            quantity(layer.macc),
            quantity(layer.flops),
            quantity(layer.memory_bytes, "B"),
            options.ratio(layer.intensity),
            "uncounted" if layer.uncounted else ", ".join(dict.fromkeys(layer.rewrites)),
        )
        for layer in layers
    ]
    options.print_table(heading, rows, text=("operator", "class", "output", "with"))
    totals = analysis.totals
    left_out = len(analysis.layers) - len(layers)
    facts = [
        ("layers", f"{totals.layers}" + (f" ({left_out} not shown)" if left_out else "")),
        ("uncounted", f"{totals.uncounted}"),
        ("params", exact(totals.params)),
        ("macc", exact(totals.macc)),
        ("FLOP", exact(totals.flops)),
        ("memory", exact(totals.memory_bytes, "B")),
        ("intensity", f"{options.ratio(totals.intensity)} FLOP/B"),
        ("peak activations", exact(totals.peak_activation_bytes, "B")),
        ("with depthwise in place", exact(totals.peak_activation_inplace_bytes, "B")),
    ]
    width = max(len(label) for label, _ in facts)
    sys.stdout.write("\n" + "".join(f"{label.ljust(width)}  {value}\n" for label, value in facts))
    if analysis.symbols:
        sys.stdout.write(f"\nopen dims: {', '.join(analysis.symbols)}; --bind NAME=N makes them numbers\n")


def costs(layer: Layer) -> bool:
    """Return whether a layer works or moves bytes, or isn't counted: views and fused ones do neither."""
    return layer.flops != 0 or layer.memory_bytes != 0 or bool(layer.uncounted)


def title(analysis: Analysis) -> str:
    """Return what was counted and under which preset, in one line."""
    read = ", shortcuts read" if analysis.model.residual_read else ""
    return f"{analysis.model.name or 'a network without a name'}, fusion {analysis.model.fusion}{read}"


def name(layer: Layer) -> str:
    """Return a layer's name as a table has it: never without one, never too long."""
    text = layer.name or f"#{layer.index}"
    return text if len(text) <= 40 else f"{text[:18]}...{text[-19:]}"


def shape(layer: Layer) -> str:
    """Return the first output's dims ("1x64x112x112")."""
    if not layer.outputs:
        return ""
    dims = layer.outputs[0][1]
    return "?" if dims is None else "x".join(map(str, dims)) or "scalar"


def quantity(value: object, unit: str = "") -> str:
    """Return a count with a prefix; a polynomial as it is."""
    return format_si(value, unit).strip() if isinstance(value, int) else str(value)


def exact(value: object, unit: str = "") -> str:
    """Return a count to the last digit, and with a prefix beside it."""
    if not isinstance(value, int):
        return str(value)
    return f"{value:,} {unit}".strip() + (f" ({quantity(value, unit)})" if value >= 1000 else "")
