"""Databases of both engines, and a run's records to put into them."""

from __future__ import annotations

import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url

from roof_agent import records
from roof_collector.store.engine import open_database

FINGERPRINT = "f" * 64
_POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[..., str]]:
    """A PostgreSQL server of its own; gives URLs of fresh databases."""
    if not _POSTGRESQL:
        pytest.skip("there is no PostgreSQL server in /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="roof-pg-"))
    # The server refuses to run as root.
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    shutil.chown(folder, user)
    data = folder / "data"
    program = _POSTGRESQL[-1]

    def call(*arguments: str | Path) -> None:
        identity = {"user": user, "group": pwd.getpwnam(user).pw_gid} if os.getuid() == 0 else {}
        # Without a pipe that the server would keep open.
        with (folder.parent / f"{folder.name}.log").open("ab") as log:
            subprocess.run(arguments, check=True, cwd=folder, stdout=log, stderr=log, **identity)  # type: ignore[call-overload]

    call(program.with_name("initdb"), "-D", data, "-U", "roof", "-A", "trust", "-N", "-E", "UTF8")
    settings = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=50"
    call(program, "-D", data, "-w", "-o", settings, "-l", folder / "server.log", "start")
    server = f"postgresql+psycopg://roof@/{{}}?host={folder}"
    numbers = itertools.count()

    def fresh(template: str = "template0") -> str:
        name = f"test{next(numbers)}"
        engine = create_engine(server.format("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        engine.dispose()
        return server.format(name)

    yield fresh
    call(program, "-D", data, "-w", "-m", "immediate", "stop")
    shutil.rmtree(folder)
    (folder.parent / f"{folder.name}.log").unlink()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    url: str = request.getfixturevalue("postgresql")()
    return url


@pytest.fixture(scope="session")
def migrated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Gives a database of an engine that has its tables; migrating once is enough."""

    @functools.cache
    def original(kind: str) -> str:
        if kind == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('migrated') / 'store.sqlite'}"
        else:
            url = request.getfixturevalue("postgresql")()
        open_database(url).dispose()
        return url

    def copy(kind: str) -> str:
        url = original(kind)
        if kind == "sqlite":
            place = tmp_path_factory.mktemp("store") / "store.sqlite"
            shutil.copyfile(url.removeprefix("sqlite:///"), place)
            return f"sqlite:///{place}"
        found: str = request.getfixturevalue("postgresql")(make_url(url).database)
        return found

    return copy


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, migrated: Callable[[str], str]) -> str:
    """The URL of a database of either engine that has its tables and no rows."""
    return migrated(request.param)


@pytest.fixture
def engine(store_url: str) -> Iterator[Engine]:
    """An open database of either engine."""
    opened = open_database(store_url)
    yield opened
    opened.dispose()


@pytest.fixture
def device() -> records.Device:
    return records.Device(
        FINGERPRINT,
        "board",
        "aarch64",
        model="Raspberry Pi 4",
        soc="bcm2711",
        os="Debian 12",
        kernel="6.1",
        memory_bytes=4 << 30,
        page_bytes=4096,
        clusters=(records.Cluster("cortex-a72", (0, 1, 2, 3), 1.8e9),),
        caches=(records.Cache(1, "data", 32768, 64, (0,), "sysfs"), records.Cache(2, "unified", 1 << 20)),
        isa_features=("asimd",),
        labels={"room": "kitchen"},
    )


@pytest.fixture
def measurement() -> records.Measurement:
    """A measurement in which every field is set."""
    statistics = records.Statistics(5, 1.0, 1.1, 2.0, 3.0, 4.0, 2.2, 0.5, 1.5, 2.5)
    conditions = records.Conditions(
        monotonic_ns=11,
        frequency_hz={0: 1.8e9, 3: 1.5e9},
        governor="ondemand",
        temperature_celsius={"soc": 61.5, "outside": -3.0},
        throttled_bits=0x50000,
        load_1m=0.25,
        steal_ticks=0,
        memory_available_bytes=1 << 31,
        clock_hz=1.79e9,
    )
    node = replace(statistics, n=3)
    return records.Measurement(
        probe="network",
        subject="mobilenet_v1",
        quantity="seconds",
        outcome=records.Outcome.OK,
        element_type="float32",
        threads=4,
        cpus=(0, 1, 2, 3),
        backend="onnxruntime",
        backend_version="1.22",
        isa="neon",
        compiler="gcc 12",
        parameters={"batch": "1", "mode": "größer"},
        reason="",
        grade=records.Grade.NOISY,
        grade_reasons=("load 0.25",),
        statistics=statistics,
        repetitions=(1.0, 1.25, 2.0, 3.0, 4.0),
        work=records.Work(24.0, 32.0, 16.0, 1 << 26),
        before=conditions,
        after=replace(conditions, monotonic_ns=99),
        started_monotonic_ns=12,
        elapsed_seconds=1.5,
        cpu_share=0.98,
        involuntary_switches=7,
        network=records.NetworkDetail(
            "mobilenet_v1",
            "a" * 64,
            "b" * 64,
            "CPUExecutionProvider",
            "all",
            (records.NodeTime(0, "conv1", "Conv", node), records.NodeTime(1, "", "Relu", node)),
            0.001,
            2.5,
        ),
    )


@pytest.fixture
def run_of(device: records.Device) -> Callable[..., list[records.Record]]:
    """Makes the records of a whole run from its measurements (or pieces of models)."""

    def make(*content: records.Measurement | records.ModelPart) -> list[records.Record]:
        start = records.RunStart(device, "0.1.0", "quick", "boot", 10, 20, len(content), {"why": "test"})
        end = records.RunEnd(True, 100, ok=len(content), unavailable=0, failed=0)
        return [records.Record(seq, one) for seq, one in enumerate((start, *content, end))]

    return make
