"""Values that options take, and tables: what several verbs share."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from roof_agent.units import format_si

_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "kib": 1 << 10, "mib": 1 << 20, "k": 1 << 10, "m": 1 << 20}


def positive(text: str) -> int:
    """Return the number of 1 or more that a text says."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


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
