"""`roof-collector whatif conv | MODEL`: what would change a layer's, or a network's, cost."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from roof_agent.errors import UsageError
from roof_agent.units import format_si
from roof_collector.commands import Subparsers, add_json, options


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "ask what would change a layer's cost, in operations, in bytes, and as time on a device"
    parser = subparsers.add_parser("whatif", help=words, description=words)
    parser.add_argument("subject", metavar="conv", choices=("conv",), help="one convolution, by its sizes")
    layer = parser.add_argument_group("the convolution")
    layer.add_argument("--cin", type=int, metavar="N", help="input channels")
    layer.add_argument("--cout", type=int, metavar="N", help="output channels")
    layer.add_argument("--size", metavar="N|HxW", help="input rows and columns")
    layer.add_argument("--kernel", default="3", metavar="N|HxW", help="default: 3")
    layer.add_argument("--stride", type=int, default=1, metavar="N", help="default: 1")
    layer.add_argument("--pad", metavar="N|HxW", help="zeros on each side (default: half the kernel)")
    layer.add_argument("--batch", type=int, default=1, metavar="N", help="default: 1")
    layer.add_argument("--bias", action="store_true", help="count a bias too")
    questions = parser.add_argument_group("what to ask, beside bottleneck and depthwise separable")
    questions.add_argument(
        "--groups", type=options.numbers, default=[2, 4, 8], metavar="N,...", help="default: 2,4,8"
    )
    questions.add_argument(
        "--dtype", type=options.element_types, default=[], metavar="T,...", help="fp16, int8, int4, ..."
    )
    questions.add_argument(
        "--winograd",
        type=options.numbers,
        default=[],
        metavar="M,...",
        help="outputs a tile: 2, 4 or 6. Of 3x3 the limit is 9 times fewer multiplications; "
        "about 6 can be used, before transforms and rounding errors eat the rest",
    )
    questions.add_argument("--fft", action="store_true", help="by Fourier transform")
    questions.add_argument(
        "--sparsity", type=options.share, action="append", default=[], metavar="S",
        help="share of channels (structured) or of single weights (unstructured) that is zero: 0.5",
    )  # fmt: skip
    questions.add_argument(
        "--cache", type=options.byte_size, metavar="SIZE",
        help="tile the alternatives of several layers so that what is between them stays in a cache: 128KiB",
    )  # fmt: skip
    parser.add_argument(
        "--device", default="rpi3", metavar="NAME",
        help="data sheet for the times, each at the peak of its element type (default: %(default)s)",
    )  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, and print the answers."""
    from roof_collector.analysis.convolution import Convolution
    from roof_collector.analysis.devices import datasheet
    from roof_collector.analysis.whatif import Questions, Row, alternatives

    if arguments.cin is None or arguments.cout is None or arguments.size is None:
        raise UsageError("whatif conv needs --cin, --cout and --size")
    height, width = _pair(arguments.size, "--size")
    conv = Convolution(
        cin=arguments.cin,
        cout=arguments.cout,
        height=height,
        width=width,
        kernel=_pair(arguments.kernel, "--kernel"),
        stride=arguments.stride,
        pad=None if arguments.pad is None else _pair(arguments.pad, "--pad"),
        batch=arguments.batch,
        bias=arguments.bias,
    )
    device = datasheet(arguments.device)
    questions = Questions(
        groups=arguments.groups,
        element_types=arguments.dtype,
        winograd=arguments.winograd,
        fft=arguments.fft,
        sparsity=arguments.sparsity,
        cache_bytes=arguments.cache,
    )
    rows = alternatives(conv, questions, device)
    if arguments.json:
        options.print_json(
            {
                "schema": 1,
                "layer": dataclasses.asdict(conv),
                "device": device.name,
                "alternatives": [dataclasses.asdict(row) for row in rows],
            }
        )
        return 0

    def cells(row: Row) -> list[str]:
        return [
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
        ]

    sys.stdout.write(f"on {device.title}\n\n")
    heading = [
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
    ]
    options.print_table(heading, [cells(row) for row in rows], text=("bound",))
    remarks = [f"{row.name}: {row.note}" for row in rows if row.note]
    remarks += [
        f"{row.name}: the data sheet states no peak for {row.element_type}; {row.peak_type}'s is supposed"
        for row in rows
        if row.peak_type != row.element_type
    ]
    sys.stdout.write("\n" + "\n".join(remarks) + "\n")
    return 0


def _pair(text: str, flag: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise UsageError(f"{flag} {text!r} is neither a number nor two like 56x28")
    first, second = int(parts[0]), int(parts[-1])
    return first, second
