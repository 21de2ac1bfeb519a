"""One module a page: what it reads and the document it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from roof_collector.web.reading import PageStore
from roof_collector.web.tables import Table, TablePage, TableQuery, table_query


@dataclass(frozen=True)
class View:
    """A page before it is HTML, JSON or CSV.

    `document` is what JSON gives; `tables` names its tables (the first is the one that the address
    sorts and filters, and CSV's own); `context` is what only the template needs.
    """

    template: str
    title: str
    document: Any
    tables: Mapping[str, tuple[Table, TablePage[Any]]]
    query: TableQuery
    context: Mapping[str, Any] = field(default_factory=dict)


def _page_store(request: Request) -> PageStore:
    store: PageStore = request.app.state.page_store
    return store


# PostgreSQL has no NUL in a text, and SQLite no integer of 64 bits or more.
NameDep = Annotated[str, Path(max_length=500, pattern="^[^\\x00]+$")]
SeqDep = Annotated[int, Path(ge=0, lt=2**63)]
StoreDep = Annotated[PageStore, Depends(_page_store)]
QueryDep = Annotated[TableQuery, Depends(table_query)]
