"""Bringing a database to this version's tables: checked first, then copied, then migrated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from roof_agent.errors import UsageError

MIGRATIONS = Path(__file__).parent / "migrations"

# A file up to this size is checked whole at start, which takes seconds at the most.
_CHECKED_BYTES = 256 << 20
# Any number that other programs don't take: of several collectors one migrates, the others wait.
_LOCK = 0x726F6F66


def upgrade(engine: Engine, name: str, note: Callable[[str], None]) -> None:
    """Migrate the database to the newest revision, making it where it is empty.

    `note` is told where the copy is of a file that was changed. Raises UsageError for a database
    that isn't ours, is damaged, or was written by a newer version: all stay as they are.
    """
    with engine.connect() as connection:
        _check_file(connection, name)
        found = revision(connection, name)
    if found == head():
        return
    if found is not None and engine.dialect.name == "sqlite":
        note(f"the database as it was is kept in {_copy(engine, found)}")
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        if engine.dialect.name == "sqlite" and raw is not None:
            # A migration rebuilds tables that others refer to; inside a transaction it can't be set.
            raw.execute("PRAGMA foreign_keys = OFF")
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            migrate(connection)
        # The next one has its settings afresh.
        connection.invalidate()


def require_current(engine: Engine, name: str) -> None:
    """Raise UsageError unless the database has this version's tables."""
    with engine.connect() as connection:
        found = revision(connection, name)
    if found is None:
        raise UsageError(f"{name} is empty; roof-collector serve fills it")
    if found != head():
        raise UsageError(f"{name} was written by an older version: run roof-collector db upgrade first")


def revision(connection: Connection, name: str) -> str | None:
    """Return the database's revision, None for an empty one.

    Raises UsageError for one that isn't ours or is newer.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise UsageError(f"{name} belongs to another program: it has tables, and none of them is ours")
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in _scripts().walk_revisions()}
    if found is not None and found not in known:
        raise UsageError(
            f"{name} was written by a newer version (its revision is {found}); it was left as it is: "
            "install that version of roofline, or name another database"
        )
    return found


def head() -> str:
    """Return the newest revision."""
    return str(_scripts().get_current_head())


def migrate(connection: Connection, target: str = "head") -> None:
    """Run the migrations up to `target` in the connection's transaction."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _check_file(connection: Connection, name: str) -> None:
    if connection.dialect.name != "sqlite":
        return
    pages, page_bytes = (
        connection.exec_driver_sql(f"PRAGMA {what}").scalar_one() for what in ("page_count", "page_size")
    )
    if pages * page_bytes > _CHECKED_BYTES:
        return
    verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if verdict != "ok":
        raise UsageError(
            f"{name} is damaged ({str(verdict).splitlines()[-1]}); it was left as it is: "
            "move it away, or put a copy back"
        )


def _copy(engine: Engine, found: str) -> Path:
    """Copy an SQLite file beside itself, as it was at `found`; return where it is."""
    connection = engine.raw_connection()
    try:
        file = Path(connection.cursor().execute("PRAGMA database_list").fetchall()[0][2])
        candidates = (file.with_name(f"{file.name}.{found}{end}.bak") for end in _endings())
        copy = next(path for path in candidates if not path.exists())
        connection.cursor().execute("VACUUM INTO ?", (str(copy),))
    finally:
        connection.close()
    return copy


def _endings() -> itertools.chain[str]:
    return itertools.chain([""], (f".{number}" for number in itertools.count(2)))
