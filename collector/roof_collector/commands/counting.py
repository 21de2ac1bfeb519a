"""MODEL, how to count it, and how to show its layers: what the counting verbs share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roof_agent.errors import Exit, UsageError
from roof_collector.commands import options

if TYPE_CHECKING:
    from onnx import ModelProto

    from roof_collector.analysis import Analysis
    from roof_collector.analysis.drawing import Point
    from roof_collector.analysis.roofline import Roofline

FUSIONS = ("none", "basic", "ideal")
# What --strict answers to an operator that has no counting rule.
UNCOUNTED = Exit.UNREACHABLE


def add_model(parser: argparse.ArgumentParser, *, fusion: str) -> None:
    """Add MODEL and what says how to count it; `fusion` is the default preset."""
    parser.add_argument("model", metavar="MODEL", help="an ONNX file, or zoo:NAME")
    group = add_counting(parser, fusion=fusion)
    group.add_argument(
        "--dtype", type=options.one_element_type, metavar="T",
        help="count as if every floating-point tensor were fp16, bf16, int8, int4, ...",
    )  # fmt: skip


def add_counting(parser: argparse.ArgumentParser, *, fusion: str) -> argparse._ArgumentGroup:
    """Add what says how to count a network, and return the group in which it stands."""
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
    group.add_argument("--batch", type=options.positive, metavar="N", help="set the first dim of every input")
    group.add_argument(
        "--strict", action="store_true",
        help=f"exit with code {int(UNCOUNTED)} where an operator has no counting rule",
    )  # fmt: skip
    return group


def add_listing(parser: argparse.ArgumentParser, sorts: Sequence[str]) -> None:
    """Add --sort and --limit of the layers."""
    parser.add_argument(
        "--sort", choices=sorts, default="index", help="order of the layers, largest first but for the index"
    )
    parser.add_argument("--limit", type=options.positive, metavar="N", help="show so many layers at most")
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
    _, analysis = counted(arguments, arguments.dtype)
    warn_uncounted(analysis)
    return analysis


def warn_uncounted(analysis: Analysis) -> None:
    """Say on standard error what the totals leave out."""
    if analysis.totals.uncounted:
        missing = sorted({layer.op_type for layer in analysis.layers if layer.uncounted})
        sys.stderr.write(
            f"roof-collector: {analysis.totals.uncounted} of {analysis.totals.layers} layers are not "
            f"counted ({', '.join(missing)}); the totals leave them out\n"
        )


def counted(arguments: argparse.Namespace, element_type: str | None) -> tuple[ModelProto, Analysis]:
    """Return MODEL, as if of an element type where one is given, and its count."""
    from roof_collector.analysis import analyze
    from roof_collector.models.library import load

    model = load(arguments.model, batch=arguments.batch)
    if element_type is not None:
        from roof_collector.models.retype import retyped

        model = retyped(model, element_type)
    analysis = analyze(
        model,
        bind={name: _integer(text, "--bind", name) for name, text in arguments.bind},
        shapes={name: _dims(text) for name, text in arguments.shape},
        values={name: _value(text, name) for name, text in arguments.value},
        batch=arguments.batch,
        fusion=arguments.fusion,
        residual_read=arguments.residual_read,
    )
    return model, analysis


def exit_code(arguments: argparse.Namespace, analysis: Analysis) -> int:
    """Return 0, or under --strict the code for layers that aren't counted."""
    return int(UNCOUNTED) if arguments.strict and analysis.totals.uncounted else 0


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} isn't NAME=VALUE")
    return name, value


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
        found = [_number(part.strip().lower()) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--value {name}={text}: not a number, or numbers with commas between") from error
    return found if "," in text else found[0]


def _number(text: str) -> float | int:
    if text in {"true", "false"}:
        return int(text == "true")
    return float(text) if re.search(r"[.einf]", text) else int(text)
