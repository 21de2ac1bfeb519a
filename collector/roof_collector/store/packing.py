"""How repetitions lie in a column: little-endian IEEE 754 doubles, one after the other."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence


def pack_doubles(values: Sequence[float]) -> bytes:
    """Return the values' bytes."""
    packed = array("d", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_doubles(data: bytes | None) -> tuple[float, ...]:
    """Return the values; NULL is none. Raises ValueError for bytes that are no whole doubles."""
    unpacked = array("d")
    unpacked.frombytes(data or b"")
    if sys.byteorder == "big":
        unpacked.byteswap()
    return tuple(unpacked)
