"""How figures look to people; storage and JSON stay SI."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from roof_agent.units import QUANTITIES, format_si

# The unit in which a quantity's figures stand in one column, and its size in SI.
SHOWN_UNITS: dict[str, tuple[str, float]] = {
    "bytes_per_s": ("GB/s", 1e9),
    "flops_per_s": ("GFLOP/s", 1e9),
    "seconds": ("ms", 1e-3),
    "hertz": ("GHz", 1e9),
}
QUANTITY_TITLES = {
    "bytes_per_s": "Memory bandwidth",
    "flops_per_s": "Arithmetic",
    "seconds": "Latency",
    "hertz": "Clock",
}
_MISSING = "\N{EN DASH}"


def number(value: float | None, scale: float = 1.0) -> str:
    """Return `value / scale` with four significant digits, without an exponent where that reads well."""
    if value is None:
        return _MISSING
    shown = value / scale
    if shown == 0:
        return "0"
    if not 1e-4 <= abs(shown) < 1e7:
        return f"{shown:.3e}"
    text = f"{shown:#.4g}"
    if "e" in text:
        return f"{shown:,.0f}"
    return text.rstrip(".")


def in_unit(value: float | None, quantity: str) -> str:
    """Return a figure in the unit that its quantity's column is headed with."""
    return number(value, SHOWN_UNITS.get(quantity, ("", 1.0))[1])


def unit_of(quantity: str) -> str:
    """Return the unit that a quantity's column is headed with."""
    return SHOWN_UNITS.get(quantity, ("", 1.0))[0]


def measured(value: float | None, quantity: str) -> str:
    """Return a figure with its unit, as the terminal shows it."""
    if value is None:
        return _MISSING
    known = QUANTITIES.get(quantity)
    return known.format(value) if known else number(value)


def si(value: float | None, unit: str) -> str:
    """Return a figure with an SI prefix and `unit`."""
    return _MISSING if value is None else format_si(value, unit)


def size(value: int | None) -> str:
    """Return bytes as KiB, MiB or GiB: memories and caches come in powers of two."""
    if value is None:
        return _MISSING
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value} B"


def heat(share: float | None) -> int:
    """Return the step of the heat scale, 0 to 9, for a share of the whole."""
    # Twenty layers of a twentieth each are all lukewarm; a fifth of the whole is hot.
    return 0 if share is None else min(9, int(share * 45))


def slug(text: str) -> str:
    """Return what a CSS class may be named after: lower-case letters, digits and hyphens."""
    return re.sub("[^a-z0-9]+", "-", text.lower())


def cpu_list(cpus: Sequence[int]) -> str:
    """Return CPUs as Linux writes them: 0-3,6."""
    parts = []
    for _, group in itertools.groupby(enumerate(sorted(cpus)), lambda pair: pair[1] - pair[0]):
        run = [cpu for _, cpu in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ",".join(parts)


def groupby_in_order(rows: Iterable[Any], key: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield neighbouring rows of equal `key` together (Jinja's groupby would sort)."""
    for value, group in itertools.groupby(rows, lambda row: getattr(row, key)):
        yield value, list(group)
