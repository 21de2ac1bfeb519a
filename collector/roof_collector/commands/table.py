"""`roof-collector table`: the whole zoo side by side, both views and the latencies on devices."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roof_agent.units import format_si
from roof_collector.commands import Subparsers, counting, options

if TYPE_CHECKING:
    from roof_collector.analysis.devices import Datasheet

FORMATS = ("text", "csv", "json", "markdown")
DEVICES = ("v100", "xavier", "rpi3", "rpi3_1core")
# What the bytes are counted under: column's name, preset, shortcut read.
CONVENTIONS = (
    ("none", "none", False),
    ("basic", "basic", False),
    ("ideal", "ideal", False),
    ("ideal_read", "ideal", True),
)

Row = Mapping[str, Any]


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "the zoo side by side: work, traffic under each fusion preset, roofline latencies on devices"
    parser = subparsers.add_parser("table", help=words, description=words)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="zoo:NAME or a file (default: the zoo)")
    parser.add_argument(
        "--device", action="append", metavar="NAME", help=f"a data sheet (default: {', '.join(DEVICES)})"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: %(default)s")
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )
    counting.add_drawing(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count each network and print."""
    from roof_collector.analysis.devices import datasheet
    from roof_collector.analysis.drawing import Point
    from roof_collector.models import zoo

    devices = [datasheet(name) for name in arguments.device or DEVICES]
    models = arguments.models or [f"zoo:{name}" for name in zoo.names()]
    rows = [table_row(model, devices) for model in models]
    {"text": _text, "csv": _csv, "json": _json, "markdown": _markdown}[arguments.format](rows, devices)
    points = [Point(row["model"], row["ideal_intensity"]) for row in rows if row["ideal_intensity"]]
    arguments.json = arguments.format != "text"
    counting.draw(arguments, points, devices[0].roofline(), f"the zoo on {devices[0].title}")
    return 0


def table_row(name: str, devices: Sequence[Datasheet]) -> dict[str, Any]:
    """Return a network's row: bytes and FLOP/byte under each convention, seconds under `ideal`.

    `*_seconds` is the sum of the layers, `*_model_seconds` the network taken as one layer, both at the
    headline's peak of the device.
    """
    from roof_collector.analysis import analyze
    from roof_collector.analysis.roofline import layers_seconds, model_seconds
    from roof_collector.models.library import ZOO, load

    model = load(name)
    row: dict[str, Any] = {"model": name.removeprefix(ZOO)}
    for label, preset, read in CONVENTIONS:
        analysis = analyze(model, fusion=preset, residual_read=read).require_numbers()
        totals = analysis.totals
        if label == "none":
            row |= {"params": totals.params, "macc": totals.macc, "uncounted": totals.uncounted}
        row |= {
            f"{label}_flops": totals.flops,
            f"{label}_memory_bytes": totals.memory_bytes,
            f"{label}_intensity": totals.intensity,
        }
        if label == "ideal":
            for device in devices:
                roofline = device.roofline()
                row[f"{device.name}_seconds"] = layers_seconds(analysis.layers, roofline)
                row[f"{device.name}_model_seconds"] = model_seconds(analysis.layers, roofline)
    return row


def _cells(rows: Sequence[Row], devices: Sequence[Datasheet]) -> tuple[list[str], list[list[str]]]:
    """Return heading and cells of the table for people: bytes and intensity of each convention, times."""
    heading = ["", "params", "macc"]
    for label, _, read in CONVENTIONS:
        heading += ["ideal+read" if read else label, "FLOP/B"]
    heading += [device.name for device in devices]
    cells = [
        [
            row["model"],
            options.count(row["params"]),
            options.count(row["macc"]),
            *(
                text
                for label, _, _ in CONVENTIONS
                for text in (
                    format_si(row[f"{label}_memory_bytes"], "B"),
                    options.ratio(row[f"{label}_intensity"]),
                )
            ),
            *(format_si(row[f"{device.name}_seconds"], "s") for device in devices),
        ]
        for row in rows
    ]
    return heading, cells


def _text(rows: Sequence[Row], devices: Sequence[Datasheet]) -> None:
    options.print_table(*_cells(rows, devices))
    sys.stdout.write(
        "\nmemory and intensity under each fusion preset; times are the sums of the layers under ideal, "
        "at the peak that each device's maker quotes\n"
    )


def _markdown(rows: Sequence[Row], devices: Sequence[Datasheet]) -> None:
    heading, cells = _cells(rows, devices)
    heading[0] = "network"
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *cells]
    sys.stdout.write("".join(f"| {' | '.join(line)} |\n" for line in lines))


def _csv(rows: Sequence[Row], _devices: Sequence[Datasheet]) -> None:
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _json(rows: Sequence[Row], devices: Sequence[Datasheet]) -> None:
    options.print_json(
        {
            "schema": 1,
            "devices": [
                {
                    "name": device.name,
                    "title": device.title,
                    "flops_per_s": device.roofline().flops_per_s,
                    "bytes_per_s": device.roofline().bytes_per_s,
                    "ridge": device.roofline().ridge,
                }
                for device in devices
            ],
            "networks": list(rows),
        }
    )
