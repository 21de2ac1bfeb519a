"""What may be stored. The engines differ in what they take, so nothing doubtful reaches them.

(SQLite stores NaN as NULL and takes infinity, NUL and names of a megabyte; PostgreSQL takes NaN and
refuses NUL; both break on whole numbers from 2^63.) Each function returns its value or raises
RejectedError, whose message goes to the agent.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence

from roof_agent.errors import RoofError

INT32 = (1 << 31) - 1
INT64 = (1 << 63) - 1

LABEL_CHARACTERS = 256
# Of nodes: exporters nest the names of modules.
NAME_CHARACTERS = 2048
PROSE_CHARACTERS = 4096
ENTRIES = 1024

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_IN_PROSE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_RUN_ID = re.compile(r"[0-9a-f-]{8,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class RejectedError(RoofError):
    """A record, or what else an agent says, can't be stored; the message says why."""


# Boards say the same few texts again and again.
@functools.lru_cache(4096)
def label(value: str, what: str, characters: int = LABEL_CHARACTERS) -> str:
    """Return a short text of one line, maybe empty."""
    # Nearly all are printable, which is quickly seen.
    if len(value) <= characters and (value.isprintable() or not _CONTROL.search(value)):
        return value
    if len(value) > characters:
        raise RejectedError(f"{what} has {len(value)} characters, more than {characters}")
    raise RejectedError(f"{what} has control characters")


def name(value: str, what: str, characters: int = LABEL_CHARACTERS) -> str:
    """Return a label that isn't empty."""
    if not value:
        raise RejectedError(f"{what} is missing")
    return label(value, what, characters)


def prose(value: str, what: str) -> str:
    """Return a text of lines."""
    if len(value) > PROSE_CHARACTERS:
        raise RejectedError(f"{what} has {len(value)} characters, more than {PROSE_CHARACTERS}")
    if not value.isprintable() and _CONTROL_IN_PROSE.search(value):
        raise RejectedError(f"{what} has control characters")
    return value


def number(value: float, what: str) -> float:
    """Return a finite number that isn't negative."""
    if 0 <= value < math.inf:
        return value
    raise RejectedError(f"{what} is {value}")


def numbers(values: Sequence[float], what: str) -> Sequence[float]:
    """Return finite numbers, none of them negative."""
    # A sum is finite only if all of it is.
    if values and not (math.isfinite(sum(values)) and min(values) >= 0):
        raise RejectedError(f"{what} has a value that is negative or not finite")
    return values


def whole(value: int, what: str, highest: int = INT64) -> int:
    """Return a whole number from 0 to `highest`."""
    if 0 <= value <= highest:
        return value
    raise RejectedError(f"{what} is {value}, beyond {highest}" if value > 0 else f"{what} is {value}")


def entries(count: int, what: str, most: int = ENTRIES) -> None:
    """Refuse a list or map of more than `most` entries."""
    if count > most:
        raise RejectedError(f"{what} has {count} entries, more than {most}")


def sha256(value: str, what: str) -> str:
    """Return a digest, 64 lower-case hex digits."""
    if not _SHA256.fullmatch(value):
        raise RejectedError(f"{what} is no SHA-256 in lower-case hex digits")
    return value


def run_id(value: str) -> str:
    """Return the name of a run: hex digits and dashes, 8 to 64 of them."""
    if not _RUN_ID.fullmatch(value):
        raise RejectedError("a run's name has 8 to 64 hex digits and dashes")
    return value
