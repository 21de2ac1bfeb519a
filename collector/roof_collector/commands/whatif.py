"""`roof-collector whatif conv | MODEL`: what would change a layer's, or a network's, cost."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from roof_agent.errors import UsageError
from roof_agent.units import format_si
from roof_collector.commands import Subparsers, add_json, counting, options

if TYPE_CHECKING:
    from onnx import ModelProto

    from roof_collector.analysis import Analysis
    from roof_collector.analysis.devices import Datasheet
    from roof_collector.analysis.guidelines import Finding
    from roof_collector.analysis.whatif import Questions, Row

CONV = "conv"


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "ask what would change a cost, in operations, in bytes, and as time on a device"
    parser = subparsers.add_parser("whatif", help=words, description=words)
    parser.add_argument(
        "model",
        metavar="conv|MODEL",
        help="conv: one convolution, by its sizes; or an ONNX file or zoo:NAME: the question goes to every "
        "layer that it fits",
    )
    _add_convolution(parser)
    _add_questions(parser)
    parser.add_argument(
        "--device",
        default="rpi3",
        metavar="NAME",
        help="data sheet for the times, each at the peak of its element type (default: %(default)s)",
    )
    counting.add_counting(parser, fusion="basic")
    add_json(parser)
    parser.set_defaults(run=run)


def _add_convolution(parser: argparse.ArgumentParser) -> None:
    layer = parser.add_argument_group("the convolution (--batch is among those of counting)")
    layer.add_argument("--cin", type=options.positive, metavar="N", help="input channels")
    layer.add_argument("--cout", type=options.positive, metavar="N", help="output channels")
    layer.add_argument("--size", metavar="N|HxW", help="input rows and columns")
    layer.add_argument("--kernel", default="3", metavar="N|HxW", help="default: 3")
    layer.add_argument("--stride", type=options.positive, default=1, metavar="N", help="default: 1")
    layer.add_argument("--pad", metavar="N|HxW", help="zeros on each side (default: half the kernel)")
    layer.add_argument("--bias", action="store_true", help="count a bias too")


def _add_questions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to ask, beside bottleneck and depthwise separable")
    group.add_argument(
        "--groups", type=options.numbers, default=[2, 4, 8], metavar="N,...", help="default: 2,4,8"
    )
    group.add_argument(
        "--dtype", type=options.element_types, default=[], metavar="T,...", help="fp16, int8, int4, ..."
    )
    group.add_argument(
        "--winograd",
        type=options.numbers,
        default=[],
        metavar="M,...",
        help="outputs a tile: 2, 4 or 6. Of 3x3 the limit is 9 times fewer multiplications; "
        "about 6 can be used, before transforms and rounding errors eat the rest",
    )
    group.add_argument("--fft", action="store_true", help="by Fourier transform")
    group.add_argument(
        "--sparsity",
        type=options.share,
        action="append",
        default=[],
        metavar="S",
        help="share of channels (structured) or of single weights (unstructured) that is zero: 0.5",
    )
    group.add_argument(
        "--cache",
        type=options.byte_size,
        metavar="SIZE",
        help="tile chains of layers so that what is between them stays in a cache of that size: 128KiB",
    )
    group.add_argument(
        "--guidelines",
        action="store_true",
        help="of a network: which layers break which of ShuffleNet v2's guidelines, and what it costs",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask, and print the answers."""
    from roof_collector.analysis.devices import datasheet
    from roof_collector.analysis.whatif import Questions

    device = datasheet(arguments.device)
    questions = Questions(
        groups=arguments.groups,
        element_types=arguments.dtype,
        winograd=arguments.winograd,
        fft=arguments.fft,
        sparsity=arguments.sparsity,
        cache_bytes=arguments.cache,
    )
    if arguments.model == CONV:
        return _convolution(arguments, questions, device)
    return _network(arguments, questions, device)


def _convolution(arguments: argparse.Namespace, questions: Questions, device: Datasheet) -> int:
    from roof_collector.analysis.convolution import Convolution
    from roof_collector.analysis.whatif import alternatives

    if arguments.cin is None or arguments.cout is None or arguments.size is None:
        raise UsageError("whatif conv needs --cin, --cout and --size")
    if arguments.guidelines:
        raise UsageError("--guidelines are for a network, not for one convolution")
    height, width = _pair(arguments.size, "--size")
    conv = Convolution(
        cin=arguments.cin,
        cout=arguments.cout,
        height=height,
        width=width,
        kernel=_pair(arguments.kernel, "--kernel"),
        stride=arguments.stride,
        pad=None if arguments.pad is None else _pair(arguments.pad, "--pad"),
        batch=arguments.batch or 1,
        bias=arguments.bias,
    )
    rows = alternatives(conv, questions, device)
    if arguments.json:
        layer = dataclasses.asdict(conv)
        options.print_json({"schema": 1, "layer": layer, "device": device.name, "alternatives": _dicts(rows)})
    else:
        sys.stdout.write(f"on {device.title}\n\n")
        _print_rows(rows)
    return 0


def _network(arguments: argparse.Namespace, questions: Questions, device: Datasheet) -> int:
    from roof_collector.analysis.guidelines import advise
    from roof_collector.analysis.network import Network
    from roof_collector.analysis.whatif import BASE_TYPE, describe, roofline_at
    from roof_collector.analysis.whatif_network import network_alternatives

    if arguments.cin or arguments.cout or arguments.size:
        raise UsageError("--cin, --cout and --size describe a convolution: whatif conv")
    answered: dict[str | None, tuple[ModelProto, Analysis]] = {}

    def analyzed(element_type: str | None) -> tuple[ModelProto, Analysis]:
        if element_type not in answered:
            answered[element_type] = counting.counted(arguments, element_type)
        return answered[element_type]

    model, analysis = analyzed(None)
    counting.warn_uncounted(analysis)
    answers = network_alternatives(analyzed, questions, device)
    findings: list[Finding] = []
    if arguments.guidelines:
        findings = advise(Network(model, analysis), roofline_at(device, BASE_TYPE)[0])
    if arguments.json:
        options.print_json(
            {
                "schema": 1,
                "model": analysis.to_json()["model"],
                "device": device.name,
                "alternatives": _dicts(answers.rows),
                "chains": [
                    dataclasses.asdict(chain)
                    | {"saved_bytes": chain.saved_bytes, "halo_macc": chain.halo_macc}
                    for chain in answers.chains
                ],
                "guidelines": [dataclasses.asdict(found) for found in findings],
            }
        )
        return counting.exit_code(arguments, analysis)
    sys.stdout.write(f"{analysis.model.name or arguments.model}, fusion {analysis.model.fusion}\n")
    sys.stdout.write(f"on {device.title}\n\n")
    _print_rows(answers.rows)
    if answers.chains:
        sys.stdout.write("\nchains\n" + "".join(f"  {describe(chain)}\n" for chain in answers.chains))
    if arguments.guidelines:
        _print_findings(findings, answers.rows[0])
    return counting.exit_code(arguments, analysis)


def _dicts(rows: Iterable[Row]) -> list[dict[str, object]]:
    return [dataclasses.asdict(row) for row in rows]


def _print_rows(rows: Sequence[Row]) -> None:
    heading = (
        "",
        "params",
        "macc",
        "FLOP",
        "memory",
        "FLOP/B",
        "time",
        "bound",
        "FLOP x",
        "memory x",
        "time x",
    )
    cells = [
        (
            row.name,
            options.count(row.params),
            options.count(row.macc),
            options.count(row.flops),
            format_si(row.memory_bytes, "B"),
            options.ratio(row.intensity),
            format_si(row.seconds, "s"),
            row.bound,
            f"{row.flops_ratio:.3f}",
            f"{row.bytes_ratio:.3f}",
            f"{row.seconds_ratio:.3f}",
        )
        for row in rows
    ]
    options.print_table(heading, cells, text=("bound",))
    remarks = [f"{row.name}: {row.note}" for row in rows if row.note]
    remarks += [
        f"{row.name}: the data sheet states no peak for {row.element_type}; {row.peak_type}'s is supposed"
        for row in rows
        if row.peak_type != row.element_type
    ]
    if remarks:
        sys.stdout.write("\n" + "\n".join(remarks) + "\n")


def _print_findings(findings: Sequence[Finding], whole: Row) -> None:
    from roof_collector.analysis.guidelines import GUIDELINES

    for guideline, words in GUIDELINES.items():
        own = [found for found in findings if found.guideline == guideline]
        moved, seconds = sum(found.cost_bytes for found in own), sum(found.cost_seconds for found in own)
        sys.stdout.write(
            f"\n{guideline}, {words}: {len(own)} layers, {format_si(moved, 'B')} "
            f"({moved / whole.memory_bytes:.1%}), {format_si(seconds, 's')} ({seconds / whole.seconds:.1%})\n"
        )
        if own:
            rows = [
                (f"  {one.layer}", format_si(one.cost_bytes, "B"), format_si(one.cost_seconds, "s"), one.what)
                for one in own[:10]
            ]
            options.print_table(("", "memory", "time", "what"), rows, text=("what",))
        if len(own) > 10:
            sys.stdout.write(f"  and {len(own) - 10} more; --json has them all\n")


def _pair(text: str, flag: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise UsageError(f"{flag} {text!r} is neither a number nor two like 56x28")
    return int(parts[0]), int(parts[-1])
