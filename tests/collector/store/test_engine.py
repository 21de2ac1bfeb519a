"""What is opened, made, upgraded, and refused."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import DBAPIError

from roof_agent.errors import UnfitEnvironmentError, UsageError
from roof_collector.store import upgrade
from roof_collector.store.engine import open_database
from roof_collector.store.schema import metadata


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An SQLite database that is up to date and closed."""
    path = tmp_path / "store.sqlite"
    open_database(f"sqlite:///{path}").dispose()
    return path


@pytest.fixture
def longer_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of the program that has one migration more."""
    folder = tmp_path / "migrations"
    shutil.copytree(upgrade.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_next.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision = '9999'\ndown_revision = {upgrade.head()!r}\n"
        "def upgrade():\n"
        "    with op.batch_alter_table('device') as batch:\n"
        "        batch.alter_column('hostname', new_column_name='host')\n"
    )
    monkeypatch.setattr(upgrade, "MIGRATIONS", folder)


def test_the_migrations_make_the_tables_of_the_schema(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_database_is_opened_again_as_it_is(database: str) -> None:
    open_database(database).dispose()
    open_database(database).dispose()
    open_database(database, read_only=True).dispose()


def test_sqlite_loses_nothing_in_a_power_cut_and_waits_for_others(path: Path) -> None:
    engine = open_database(f"sqlite:///{path}")
    with engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "journal_size_limit")
        }
    engine.dispose()
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 10_000,
        "journal_size_limit": 64 << 20,
    }


def test_read_only_cannot_write(database: str) -> None:
    open_database(database).dispose()
    engine = open_database(database, read_only=True)
    with engine.connect() as connection, pytest.raises(DBAPIError, match=r"read.?only"):
        connection.exec_driver_sql("DELETE FROM device")
    engine.dispose()


def test_a_newer_database_is_refused_and_kept(database: str, longer_history: None) -> None:
    open_database(database).dispose()
    before = digest(Path(database.removeprefix("sqlite:///"))) if database.startswith("sqlite") else ""
    shutil.rmtree(upgrade.MIGRATIONS / "versions" / "__pycache__", ignore_errors=True)
    (upgrade.MIGRATIONS / "versions" / "9999_next.py").unlink()
    for read_only in (False, True):
        with pytest.raises(UsageError, match=r"newer version.*9999.*left as it is"):
            open_database(database, read_only=read_only)
    if before:
        assert digest(Path(database.removeprefix("sqlite:///"))) == before


def test_an_older_database_is_copied_and_upgraded(database: str, request: pytest.FixtureRequest) -> None:
    open_database(database).dispose()
    request.getfixturevalue("longer_history")
    with pytest.raises(UsageError, match="older version: run roof-collector db upgrade"):
        open_database(database, read_only=True)
    notes: list[str] = []
    engine = open_database(database, note=notes.append)
    assert "host" in {column["name"] for column in inspect(engine).get_columns("device")}
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
        copy = Path(notes[0].rpartition(" ")[2])
        with sqlite3.connect(copy) as old:
            assert old.execute("SELECT hostname FROM device").fetchall() == []
        old.close()
    else:
        assert notes == []
    engine.dispose()


def test_a_copy_never_takes_another_ones_place(path: Path, request: pytest.FixtureRequest) -> None:
    taken = path.with_name(f"{path.name}.{upgrade.head()}.bak")
    taken.write_text("mine")
    request.getfixturevalue("longer_history")
    open_database(f"sqlite:///{path}").dispose()
    assert taken.read_text() == "mine"
    assert taken.with_name(taken.name.replace(".bak", ".2.bak")).stat().st_size > 0


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100)
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(UsageError, match=r"letter\.txt.*left as it is"):
            open_database(f"sqlite:///{path}", read_only=read_only)
    assert digest(path) == before


def test_a_damaged_database_is_refused_and_kept(path: Path) -> None:
    data = bytearray(path.read_bytes())
    # The last page only, which opening alone never reads.
    data[-4096:-3000] = b"\xa5" * 1096
    path.write_bytes(data)
    before = digest(path)
    with pytest.raises(UsageError, match=r"damaged.*left as it"):
        open_database(f"sqlite:///{path}")
    assert digest(path) == before


def test_another_programs_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE photo (id INTEGER)")
    other.close()
    with pytest.raises(UsageError, match="belongs to another program"):
        open_database(f"sqlite:///{path}")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("roofline.sqlite", "is no database: give sqlite:///FILE"),
        ("mysql://root@localhost/roof", "is no database|isn't supported"),
        ("sqlite://", "needs a file"),
        ("sqlite:////nowhere/at/all.sqlite", "folder is missing"),
        ("oracle://x", "is no database|isn't supported"),
    ],
)
def test_what_cannot_be_a_database_is_said_in_one_line(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        open_database(url)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no database"):
        open_database(f"sqlite:///{tmp_path / 'none.sqlite'}", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_said_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(UnfitEnvironmentError, match="can't be used") as caught:
        open_database(f"postgresql+psycopg://roof:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
