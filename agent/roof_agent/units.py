"""The quantities that are measured, each with its unit, and how they are shown to people.

Storage and transport are SI; prefixes exist only in `Quantity.format`.
"""

from __future__ import annotations

from dataclasses import dataclass

_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
)


@dataclass(frozen=True)
class Quantity:
    """A measured quantity; `higher_is_better` says which end of its statistics is the best."""

    key: str
    unit: str
    higher_is_better: bool
    help: str

    def format(self, value: float) -> str:
        """Return `value` with four significant digits, an SI prefix and the unit."""
        return format_si(value, self.unit)


def format_si(value: float, unit: str) -> str:
    """Return `value` with four significant digits, an SI prefix and `unit` ("20.31 GB/s")."""
    for scale, prefix in _PREFIXES:
        # Compare what would be printed, so that 999.96 becomes 1.000 k and not 1000.
        if abs(float(f"{value:.4g}")) >= scale:
            return f"{_significant(value / scale)} {prefix}{unit}"
    return f"{_significant(value / 1e-9)} n{unit}" if value else f"0 {unit}"


def _significant(value: float) -> str:
    text = f"{value:#.4g}"
    return text.rstrip(".")


QUANTITIES: dict[str, Quantity] = {
    quantity.key: quantity
    for quantity in (
        Quantity("bytes_per_s", "B/s", True, "memory traffic as STREAM counts it"),
        Quantity("flops_per_s", "FLOP/s", True, "arithmetic throughput; a multiply-add is two"),
        Quantity("seconds", "s", False, "time of one repetition"),
        Quantity("hertz", "Hz", True, "clock rate measured with a dependent-add loop"),
    )
}


def quantity(key: str) -> Quantity:
    """Return the quantity `key`; a key that isn't registered raises KeyError."""
    return QUANTITIES[key]
