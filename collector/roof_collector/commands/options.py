"""Options and output that the counting verbs share."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roof_agent.errors import Exit, UsageError
from roof_agent.units import format_si

if TYPE_CHECKING:
    from roof_collector.analysis import Analysis
    from roof_collector.analysis.drawing import Point
    from roof_collector.analysis.roofline import Roofline

_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "kib": 1 << 10, "mib": 1 << 20, "k": 1 << 10, "m": 1 << 20}


FUSIONS = ("none", "basic", "ideal")
# What --strict answers to an operator that has no counting rule.
UNCOUNTED = Exit.UNREACHABLE


def add_model(parser: argparse.ArgumentParser, *, fusion: str) -> None:
    """Add MODEL and what says how to count it; `fusion` is the default preset."""
    parser.add_argument("model", metavar="MODEL", help="an ONNX file, or zoo:NAME")
    group = parser.add_argument_group("how to count it")
    group.add_argument(
        "--fusion", choices=FUSIONS, default=fusion,
        help="what runs as one: none, basic (bias, normalisation, activation), ideal (and residual "
        "additions, concatenations, shuffles) (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--residual-read", action="store_true", help="under ideal, count the read of the shortcut"
    )
    group.add_argument(
        "--bind", type=_assignment, action="append", default=[], metavar="NAME=N", help="set a named dim"
    )
    group.add_argument(
        "--shape", type=_assignment, action="append", default=[], metavar="INPUT=1x3x320x320",
        help="set all dims of an input; ? leaves one open",
    )  # fmt: skip
    group.add_argument(
        "--value", type=_assignment, action="append", default=[], metavar="INPUT=N[,N...]",
        help="set a small input that a branch or a shape depends on",
    )  # fmt: skip
    group.add_argument("--batch", type=_positive, metavar="N", help="set the first dim of every input")
    group.add_argument(
        "--dtype", type=one_element_type, metavar="T",
        help="count as if every floating-point tensor were fp16, bf16, int8, int4, ...",
    )  # fmt: skip
    group.add_argument(
        "--strict", action="store_true",
        help=f"exit with code {int(UNCOUNTED)} where an operator has no counting rule",
    )  # fmt: skip


def add_listing(parser: argparse.ArgumentParser, sorts: Sequence[str]) -> None:
    """Add --sort and --limit of the layers."""
    parser.add_argument(
        "--sort", choices=sorts, default="index", help="order of the layers, largest first but for the index"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="show so many layers at most")
    parser.add_argument(
        "--all",
        action="store_true",
        help="in the table, show layers that cost nothing too: views, fused ones",
    )


def add_drawing(parser: argparse.ArgumentParser) -> None:
    """Add --draw, --svg and --png."""
    group = parser.add_argument_group("the roofline")
    group.add_argument("--draw", action="store_true", help="draw it in the terminal")
    group.add_argument("--svg", type=Path, metavar="FILE", help="plot it as SVG")
    group.add_argument("--png", type=Path, metavar="FILE", help="plot it as PNG")


def draw(arguments: argparse.Namespace, points: Sequence[Point], roofline: Roofline, title: str) -> None:
    """Draw the points where the command line asks for it."""
    from roof_collector.analysis.drawing import save, text_roofline

    if not (arguments.draw or arguments.svg or arguments.png):
        return
    if not points:
        raise UsageError("there is nothing to draw: no layer has an intensity")
    if arguments.draw and not arguments.json:
        sys.stdout.write(f"\n{text_roofline(points, roofline)}")
    for kind, path in (("svg", arguments.svg), ("png", arguments.png)):
        if path is not None:
            try:
                save(points, roofline, title, path, kind)
            except OSError as error:
                raise UsageError(f"can't write {path}: {error.strerror or error}") from error


def listed(arguments: argparse.Namespace, layers: Sequence[Any]) -> list[Any]:
    """Return the layers in the order and number that were asked for; what has no value comes last."""
    shown = list(layers)
    if arguments.sort != "index":

        def rank(layer: Any) -> tuple[bool, float]:
            value = getattr(layer, arguments.sort)
            known = isinstance(value, (int, float))
            return known, value if known else 0.0

        shown.sort(key=rank, reverse=True)
    return shown[: arguments.limit]


def analysis_of(arguments: argparse.Namespace) -> Analysis:
    """Return the counted MODEL; what has no counting rule is told on standard error."""
    from roof_collector.analysis import analyze
    from roof_collector.models.library import load

    model = load(arguments.model, batch=arguments.batch)
    if arguments.dtype is not None:
        from roof_collector.models.retype import retyped

        model = retyped(model, arguments.dtype)
    analysis = analyze(
        model,
        bind={name: _integer(text, "--bind", name) for name, text in arguments.bind},
        shapes={name: _dims(text) for name, text in arguments.shape},
        values={name: _value(text, name) for name, text in arguments.value},
        batch=arguments.batch,
        fusion=arguments.fusion,
        residual_read=arguments.residual_read,
    )
    if analysis.totals.uncounted:
        missing = sorted({layer.op_type for layer in analysis.layers if layer.uncounted})
        sys.stderr.write(
            f"roof-collector: {analysis.totals.uncounted} of {analysis.totals.layers} layers are not "
            f"counted ({', '.join(missing)}); the totals leave them out\n"
        )
    return analysis


def exit_code(arguments: argparse.Namespace, analysis: Analysis) -> int:
    """Return 0, or under --strict the code for layers that aren't counted."""
    return int(UNCOUNTED) if arguments.strict and analysis.totals.uncounted else 0


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NAME=VALUE")
    return name, value


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _integer(text: str, flag: str, name: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{flag} {name}={text}: not a whole number") from error


def _dims(text: str) -> list[int | str]:
    # "1x3x320x320", and a scalar's shape is "".
    return [int(part) if part.lstrip("-").isdigit() else part for part in text.split("x")]


def _value(text: str, name: str) -> object:
    try:
        found = [
            float(part) if re.search(r"[.einf]", part) else int(part) for part in text.lower().split(",")
        ]
    except ValueError as error:
        raise UsageError(f"--value {name}={text}: not a number, or numbers with commas between") from error
    return found if "," in text else found[0]


def byte_size(text: str) -> int:
    """Return the bytes that "128KiB", "1.5MB" or "4096" say."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in _SIZES:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 128KiB, 1MB or 4096")
    return int(float(found[1]) * _SIZES[found[2]])


def share(text: str) -> float:
    """Return the number from 0 up to 1 that "0.5" or "50%" say."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write 0.5 or 50%")
    return value


def element_types(text: str) -> list[str]:
    """Return the element types of "fp16,int8"."""
    from roof_collector.analysis.convolution import ELEMENT_BITS
    from roof_collector.analysis.devices import element_type

    found = [element_type(part.strip()) for part in text.split(",")]
    for name in found:
        if name not in ELEMENT_BITS:
            raise argparse.ArgumentTypeError(f"no element type {name!r}; there are {', '.join(ELEMENT_BITS)}")
    return found


def one_element_type(text: str) -> str:
    """Return the element type that "fp16" says."""
    (found,) = element_types(text.replace(",", " "))
    return found


def numbers(text: str) -> list[int]:
    """Return the numbers of "2,4,8"."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} are no numbers of 1 or more; write 2,4,8")
    return found


def print_json(document: Mapping[str, Any]) -> None:
    """Write one JSON document; what has no value is null, never NaN."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def table_lines(
    heading: Sequence[str], rows: Sequence[Sequence[str]], *, text: Sequence[str] = ()
) -> list[str]:
    """Return aligned columns: the first and those headed as in `text` to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    left = {0} | {index for index, head in enumerate(heading) if head in text}
    return [
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heading, *rows)
    ]


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, text: Sequence[str] = ()) -> None:
    """Write aligned columns."""
    sys.stdout.write("\n".join(table_lines(heading, rows, text=text)) + "\n")


def count(value: float) -> str:
    """Return a count with an SI prefix ("1.850 G")."""
    return format_si(value, "").strip()


def ratio(value: float | None) -> str:
    """Return a ratio or an intensity with four digits, a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"
