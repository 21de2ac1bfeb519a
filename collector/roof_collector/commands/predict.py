"""`roof-collector predict MODEL --profile P`: how long a network takes on a device, layer by layer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roof_agent.errors import UsageError
from roof_agent.units import format_si
from roof_collector.commands import Subparsers, add_json, analyze, counting, options

if TYPE_CHECKING:
    from roof_collector.analysis import Analysis, Layer
    from roof_collector.analysis.devices import Datasheet, Peak
    from roof_collector.analysis.roofline import Roofline

DATASHEET = "datasheet:"
SORTS = ("index", "seconds", "macc", "flops", "memory_bytes", "intensity")


@dataclass(frozen=True)
class Predicted:
    """A layer and its time: `bound` says what binds it, compute or memory."""

    layer: Layer
    seconds: float
    bound: str

    def __getattr__(self, name: str) -> Any:
        """Return the layer's own counts, so that one list is sorted by either."""
        return getattr(self.layer, name)


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "predict how long a network takes on a device, layer by layer"
    parser = subparsers.add_parser("predict", help=words, description=words)
    counting.add_model(parser, fusion="basic")
    group = parser.add_argument_group("the device")
    group.add_argument(
        "--profile", required=True, metavar="P",
        help="datasheet:NAME (v100, xavier, rpi3, ...). A data sheet gives the roofline's time, which is a "
        "limit: low_seconds and high_seconds are null, because no error was ever measured for it",
    )  # fmt: skip
    group.add_argument(
        "--peak", type=options.one_element_type, metavar="T",
        help="the peak at this element type (default: that of --dtype, else the data sheet's headline)",
    )  # fmt: skip
    counting.add_listing(parser, SORTS)
    counting.add_drawing(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Predict and print."""
    device = _device(arguments.profile)
    peak = _peak(device, arguments)
    roofline = device.roofline(peak.element_type)
    analysis = counting.analysis_of(arguments).require_numbers()
    layers = predicted(analysis, roofline)
    if arguments.json:
        options.print_json(_document(analysis, counting.listed(arguments, layers), layers, device, peak))
    else:
        shown = [found for found in layers if arguments.all or analyze.costs(found.layer)]
        _print(analysis, counting.listed(arguments, shown), layers, device, peak)
    _draw(arguments, layers, roofline, f"{analysis.model.name} on {device.title}")
    return counting.exit_code(arguments, analysis)


def predicted(analysis: Analysis, roofline: Roofline) -> list[Predicted]:
    """Return each layer's roofline time."""
    from roof_collector.analysis.roofline import layer_time

    times = [(layer, layer_time(layer, roofline)) for layer in analysis.layers]
    return [Predicted(layer, time.seconds, time.bound) for layer, time in times]


def _device(profile: str) -> Datasheet:
    from roof_collector.analysis.devices import datasheet, datasheet_names

    if not profile.startswith(DATASHEET):
        names = ", ".join(datasheet_names())
        raise UsageError(f"no profile {profile!r}: give {DATASHEET}NAME, of {names}")
    return datasheet(profile.removeprefix(DATASHEET))


def _peak(device: Datasheet, arguments: argparse.Namespace) -> Peak:
    """Return the peak that was asked for; for a mere --dtype that isn't stated the headline's, and say so."""
    if arguments.peak is not None:
        return device.peak(arguments.peak)
    if arguments.dtype is None or device.states(arguments.dtype):
        return device.peak(arguments.dtype)
    sys.stderr.write(
        f"roof-collector: the data sheet of {device.name} states no peak for {arguments.dtype}; "
        f"{device.headline}'s is supposed\n"
    )
    return device.peak()


def _document(
    analysis: Analysis, shown: Sequence[Predicted], layers: Sequence[Predicted], device: Datasheet, peak: Peak
) -> dict[str, Any]:
    from roof_collector.analysis.roofline import model_seconds

    roofline = device.roofline(peak.element_type)
    document = analysis.to_json()
    document["profile"] = {
        "name": DATASHEET + device.name,
        "title": device.title,
        "element_type": peak.element_type,
        "flops_per_s": roofline.flops_per_s,
        "bytes_per_s": roofline.bytes_per_s,
        "ridge": roofline.ridge,
        "sources": [peak.source, device.bandwidth().source],
    }
    document["totals"] |= _times(sum(found.seconds for found in layers))
    document["totals"]["roofline_model_seconds"] = model_seconds(analysis.layers, roofline)
    document["layers"] = [
        found.layer.to_json() | _times(found.seconds) | {"bound": found.bound} for found in shown
    ]
    return document


def _times(seconds: float) -> dict[str, float | None]:
    return {"seconds": seconds, "low_seconds": None, "high_seconds": None, "roofline_seconds": seconds}


def _print(
    analysis: Analysis, shown: Sequence[Predicted], layers: Sequence[Predicted], device: Datasheet, peak: Peak
) -> None:
    from roof_collector.analysis.roofline import model_seconds

    roofline = device.roofline(peak.element_type)
    total = sum(found.seconds for found in layers)
    sys.stdout.write(
        f"{analyze.title(analysis)}\n"
        f"on {device.title}, by its data sheet: {format_si(roofline.flops_per_s, 'FLOP/s')} "
        f"({peak.element_type}), {format_si(roofline.bytes_per_s, 'B/s')}, "
        f"ridge {roofline.ridge:.4g} FLOP/B\n\n"
    )
    heading = ("", "operator", "class", "output", "macc", "memory", "FLOP/B", "time", "share", "bound")
    rows = [
        (
            analyze.name(found.layer),
            found.layer.op_type,
            found.layer.layer_class,
            analyze.shape(found.layer),
            analyze.quantity(found.layer.macc),
            analyze.quantity(found.layer.memory_bytes, "B"),
            options.ratio(found.layer.intensity),
            format_si(found.seconds, "s"),
            f"{found.seconds / total:.1%}" if total else "-",
            found.bound if found.seconds else "",
        )
        for found in shown
    ]
    options.print_table(heading, rows, text=("operator", "class", "output", "bound"))
    by_memory = sum(found.seconds for found in layers if found.bound == "memory")
    whole = model_seconds(analysis.layers, roofline)
    sys.stdout.write(
        f"\nsum of the layers  {format_si(total, 's')}, {by_memory / total if total else 0:.0%} of it bound "
        f"by memory\nas one layer       {format_si(whole, 's')} (for comparison: too low near the ridge)\n"
        "A data sheet is a limit, not a forecast: small boards take two to three times as long.\n"
    )


def _draw(arguments: argparse.Namespace, layers: Sequence[Predicted], roofline: Roofline, title: str) -> None:
    from roof_collector.analysis.drawing import Point

    total = sum(found.seconds for found in layers)
    points = [
        Point(analyze.name(found.layer), found.layer.intensity, found.seconds / total)
        for found in sorted(layers, key=lambda found: -found.seconds)
        if found.layer.intensity and found.seconds
    ]
    counting.draw(arguments, points, roofline, title)
