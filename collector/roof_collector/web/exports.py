"""Tables as CSV: the documents' fields in SI, one row a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

# What a spreadsheet takes for a formula (OWASP, CSV injection); full-width forms count in some.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_lines(fields: Iterable[str], rows: Iterable[Any]) -> Iterator[str]:
    """Yield the header and each row (a dataclass) as a line of CSV."""
    names = list(fields)
    yield _line(names)
    for row in rows:
        values = asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)
        yield _line([_cell(values[name]) for name in names])


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        # A number is a number: only texts come from elsewhere.
        return repr(value)
    if isinstance(value, list | tuple):
        return _guarded("; ".join(str(item) for item in value))
    if isinstance(value, dict):
        return _guarded("; ".join(f"{key}={item}" for key, item in value.items()))
    return _guarded(str(value))


def _guarded(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
