"""How figures look to people; storage and JSON stay SI."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roof_agent.units import QUANTITIES, format_si
from roof_collector.web.documents import MeasurementRow

_TITLES = {
    "bandwidth": "Memory bandwidth",
    "ladder": "Bandwidth by working set",
    "peak": "Arithmetic peak",
    "sustained": "Sustained arithmetic",
    "sweep": "Arithmetic by intensity",
    "latency": "Memory latency",
    "network": "Networks",
    "clock": "Clock",
}
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "\N{MICRO SIGN}"))
# Parameters of a measurement that say what was measured; the others, how.
_DETAILS = ("store", "level", "fmas", "kernel")
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


def shown_unit(quantity: str, values: Iterable[float | None]) -> tuple[str, float]:
    """Return the unit in which figures of a quantity stand in one column, and its size in SI.

    Its prefix is such that most of them are 1 or more.
    """
    unit = QUANTITIES[quantity].unit if quantity in QUANTITIES else ""
    known = sorted(abs(value) for value in values if value)
    middle = known[len(known) // 2] if known else 1.0
    for scale, prefix in _SCALES:
        if middle >= scale:
            return prefix + unit, scale
    return f"n{unit}", 1e-9


@dataclass(frozen=True)
class Group:
    """Measurements of one probe: its title, the unit of its figures and the unit's size in SI."""

    title: str
    unit: str
    scale: float
    rows: Sequence[MeasurementRow]


def groups(rows: Iterable[MeasurementRow]) -> Iterator[Group]:
    """Yield neighbouring measurements of one probe and quantity together."""
    for (probe, quantity), found in itertools.groupby(rows, lambda row: (row.probe, row.quantity)):
        own = list(found)
        unit, scale = shown_unit(quantity, (row.median for row in own))
        yield Group(_TITLES.get(probe, probe), unit, scale, own)


def detail(row: MeasurementRow) -> str:
    """Return what else tells a measurement from others of its subject: stores, level, working set."""
    words = [str(row.parameters[name]) for name in _DETAILS if row.parameters.get(name)]
    if row.parameters.get("working_set_bytes") and row.working_set_bytes:
        words.append(size(row.working_set_bytes))
    return " ".join(words)


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
