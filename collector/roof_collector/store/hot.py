"""Inserting many rows as the driver's tuples: through Core's dictionaries it takes three times as long."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.engine.interfaces import Dialect


def insert_new(
    connection: Connection, table: Table, stamp: Sequence[str], rows: list[tuple[Any, ...]]
) -> None:
    """Insert the rows that aren't there yet.

    A row has the values of the columns `stamp`, then those of the table's other columns in order.
    """
    if rows:
        statement = insert_text(table, tuple(stamp), connection.dialect)
        connection.exec_driver_sql(statement, rows)


def mark(connection: Connection) -> str:
    """Return what stands for a value in the driver's SQL."""
    return "?" if connection.dialect.name == "sqlite" else "%s"


@functools.cache
def insert_text(table: Table, stamp: tuple[str, ...], dialect: Dialect) -> str:
    """Return the driver's SQL for rows as `insert_new` takes them."""
    names = (*stamp, *(column.name for column in table.c if column.name not in stamp))
    quoted = ", ".join(dialect.identifier_preparer.quote(name) for name in names)
    marks = ", ".join(["?" if dialect.name == "sqlite" else "%s"] * len(names))
    return f"INSERT INTO {table.name} ({quoted}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
