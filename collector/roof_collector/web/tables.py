"""Tables whose whole state is in the address: `?sort=-seconds&filter=conv&page=2&size=100`.

`filter` is words that must all be there; `key:word` looks in one column. A table is described once,
by its columns; HTML and CSV are made from the same description.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Query

from roof_collector.store.queries import Selection, Term
from roof_collector.web.errors import PageError

Row = TypeVar("Row")

MAX_SIZE = 5000


@dataclass(frozen=True)
class Column:
    """A column: its field in the document, how it is headed, and the unit it is shown in.

    A shown number is the field's SI value by `scale`. `kind` chooses the cell: text, number, time,
    percent or the name of a macro in the templates.
    """

    key: str
    label: str
    unit: str = ""
    scale: float = 1.0
    kind: str = "text"
    help: str = ""
    sortable: bool = True


@dataclass(frozen=True)
class Table:
    """A table of a page: its columns, and the keys that `key:word` may name."""

    name: str
    columns: tuple[Column, ...]
    searchable: tuple[str, ...] = ()
    size: int = 100

    @property
    def sortable(self) -> tuple[str, ...]:
        """The keys that `sort` may name."""
        return tuple(column.key for column in self.columns if column.sortable)


@dataclass(frozen=True)
class TablePage(Generic[Row]):
    """One page of a table: `rows` of `total`, and the address' own words."""

    rows: Sequence[Row]
    total: int
    page: int = 1
    size: int = MAX_SIZE
    sort: str = ""
    filter: str = ""

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.total // self.size))


@dataclass(frozen=True)
class TableQuery:
    """A table's state as the address gives it; `size` 0 is the table's own."""

    sort: str = ""
    filter: str = ""
    page: int = 1
    size: int = 0

    def selection(self, table: Table) -> Selection:
        """Return the state in the table's terms. Raises PageError for a key that isn't sortable."""
        key = self.sort.removeprefix("-")
        if key and key not in table.sortable:
            raise PageError(400, f"no column to sort by has that name; there are {', '.join(table.sortable)}")
        if "\0" in self.filter:
            raise PageError(400, "a filter can't hold a NUL character")
        size = self.size or table.size
        return Selection(
            sort=key,
            descending=self.sort.startswith("-"),
            terms=tuple(_term(word, table.searchable) for word in self.filter.split()),
            limit=size,
            offset=(self.page - 1) * size,
        )

    def page_of(self, table: Table, rows: Sequence[Row], total: int) -> TablePage[Row]:
        """Return rows that the store has already selected, as a page."""
        return TablePage(rows, total, self.page, self.size or table.size, self.sort, self.filter)

    def apply(self, table: Table, rows: Iterable[Row]) -> TablePage[Row]:
        """Return the page of rows that are in memory; None sorts last either way."""
        selection = self.selection(table)
        kept = [row for row in rows if all(_holds(row, term, table.searchable) for term in selection.terms)]
        if selection.sort:
            known = [row for row in kept if getattr(row, selection.sort) is not None]
            known.sort(key=lambda row: _order(getattr(row, selection.sort)), reverse=selection.descending)
            kept = known + [row for row in kept if getattr(row, selection.sort) is None]
        shown = kept[selection.offset : selection.offset + selection.limit]
        return self.page_of(table, shown, len(kept))

    def address(self, **changes: str | int) -> str:
        """Return the query string with changes; what is at its default is left out."""
        default = asdict(TableQuery())
        state = {**asdict(self), **changes}
        return "?" + urlencode({key: value for key, value in state.items() if value != default[key]})


def table_query(
    sort: Annotated[str, Query(max_length=100, description="a column's field; - before it sorts down")] = "",
    filter: Annotated[str, Query(max_length=1000, description="words, or field:word")] = "",  # noqa: A002
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    size: Annotated[int, Query(ge=0, le=MAX_SIZE, description="rows a page; 0 is the table's own")] = 0,
) -> TableQuery:
    """Read a table's state from the address."""
    return TableQuery(sort, filter, page, size)


def _term(word: str, searchable: Sequence[str]) -> Term:
    key, colon, text = word.partition(":")
    # A layer's name may hold a colon: only known keys make a term of one column.
    return Term(key, text) if colon and text and key in searchable else Term("", word)


def _holds(row: object, term: Term, searchable: Sequence[str]) -> bool:
    wanted = term.text.casefold()
    values = [getattr(row, key) for key in ([term.key] if term.key else searchable)]
    return any(
        wanted == str(value) if isinstance(value, int | float) else wanted in str(value or "").casefold()
        for value in values
    )


def _order(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
