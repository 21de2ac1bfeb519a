"""Opening a database: what it is, its engine's settings, and having it brought up to date."""

from __future__ import annotations

import sqlite3
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import URL, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from roof_agent.errors import UnfitEnvironmentError, UsageError, UserError
from roof_collector.store import upgrade

# How long a writer waits for another process's transaction.
_BUSY_MS = 10_000
# After a checkpoint the write-ahead log is cut back to this.
_JOURNAL_BYTES = 64 << 20


def open_database(
    url: str, *, read_only: bool = False, note: Callable[[str], None] = lambda text: None
) -> Engine:
    """Return an engine for the database, made or upgraded first unless `read_only`.

    `note` is told where the copy is that was made before an upgrade. Raises UsageError for a URL, file
    or database that isn't ours or can't be used, UnfitEnvironmentError where a server doesn't answer.
    """
    address = _parse(url)
    name = address.render_as_string(hide_password=True)
    sqlite = address.get_backend_name() == "sqlite"
    engine = _sqlite(address, read_only=read_only) if sqlite else _postgresql(address, read_only=read_only)
    try:
        if read_only:
            upgrade.require_current(engine, name)
        else:
            upgrade.upgrade(engine, name, note)
    except DBAPIError as error:
        engine.dispose()
        raise _explained(error, name, sqlite=sqlite) from error
    except UserError:
        engine.dispose()
        raise
    return engine


def _parse(url: str) -> URL:
    try:
        address = make_url(url)
        address.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(
            f"{url!r} is no database: give sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
        ) from error
    if address.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise UsageError(f"{address.drivername} isn't supported: use sqlite or postgresql+psycopg")
    if address.drivername == "sqlite" and address.database in {None, "", ":memory:"}:
        raise UsageError("an SQLite database needs a file: sqlite:///FILE")
    return address


def _sqlite(address: URL, *, read_only: bool) -> Engine:
    path = Path(str(address.database))
    if read_only and not path.exists():
        raise UsageError(f"there is no database {path}; roof-collector serve makes one")
    location = f"file:{urllib.parse.quote(str(path.absolute()))}?mode={'ro' if read_only else 'rwc'}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(location, uri=True, check_same_thread=False)
        # SQLAlchemy, not the driver, says when a transaction begins.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            # Under NORMAL a power cut loses rows that were acknowledged.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    # One that reads first and writes then could be refused half way; so it says at once what it is.
    start = "BEGIN" if read_only else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(start))
    return engine


def _postgresql(address: URL, *, read_only: bool) -> Engine:
    options = {"postgresql_readonly": True} if read_only else {}
    return create_engine(address, pool_pre_ping=True, execution_options=options)


def _explained(error: DBAPIError, name: str, *, sqlite: bool) -> UserError:
    cause = str(error.orig).strip().splitlines()[0] if error.orig else str(error)
    if not sqlite:
        return UnfitEnvironmentError(f"the database {name} can't be used: {cause}")
    if "unable to open" in cause:
        return UsageError(f"{name} can't be opened: its folder is missing or may not be written")
    if "not a database" in cause or "malformed" in cause:
        return UsageError(
            f"{name} is no SQLite database or is damaged ({cause}); it was left as it is: "
            "move it away, or put a copy back"
        )
    return UsageError(f"{name} can't be used: {cause}")
