"""A store with boards, runs, kernels and a counted network in it, and the pages served over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import uvicorn
from sqlalchemy import Connection, Engine, event, insert

from roof_agent.statistics import summarize
from roof_collector.models.zoo import build
from roof_collector.store.engine import open_database
from roof_collector.store.packing import pack_doubles
from roof_collector.store.schema import device, layer, measurement, model, network, run
from roof_collector.web.app import create_app

FINGERPRINT = "ab" * 32
RUN_ID = "6f1c9a52b7d94e0f8a3e5d7c1b2a4f60"
SECOND = 10**9
NETWORK_SEQ = 40


def board(connection: Connection, fingerprint: str = FINGERPRINT, **other: Any) -> int:
    """Add a board and return its number."""
    now = time.time_ns()
    row = {
        "fingerprint": fingerprint,
        "hostname": "pi4",
        "model": "Raspberry Pi 4 Model B Rev 1.4",
        "soc": "bcm2711",
        "architecture": "aarch64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "kernel": "6.1.21-v8+",
        "memory_bytes": 4 << 30,
        "page_bytes": 4096,
        "clusters": [{"core": "cortex-a72", "cpus": [0, 1, 2, 3], "max_hz": 1.5e9}],
        "caches": [
            {
                "level": 1,
                "kind": "data",
                "size_bytes": 32 << 10,
                "line_bytes": 64,
                "shared_cpus": [0],
                "provenance": "sysfs",
            },
            {
                "level": 1,
                "kind": "data",
                "size_bytes": 32 << 10,
                "line_bytes": 64,
                "shared_cpus": [1],
                "provenance": "sysfs",
            },
            {
                "level": 2,
                "kind": "unified",
                "size_bytes": 1 << 20,
                "shared_cpus": [0, 1, 2, 3],
                "provenance": "core-table",
            },
        ],
        "isa_features": ["asimd", "crc32"],
        "virtualization": "none",
        "container": "none",
        "labels": {"cooling": "fan"},
        "agent_version": "0.1.0",
        "first_seen_at": now - 86400 * SECOND,
        "last_seen_at": now - 90 * SECOND,
    }
    return int(connection.execute(insert(device).values(row | other).returning(device.c.id)).scalar_one())


def a_run(connection: Connection, device_id: int, run_id: str = RUN_ID, **other: Any) -> int:
    """Add a run and return its number."""
    now = time.time_ns()
    row = {
        "device_id": device_id,
        "run_id": run_id,
        "received_at": now - 300 * SECOND,
        "next_seq": 50,
        "agent_version": "0.1.0",
        "preset": "quick",
        "planned": 16,
        "heard_at": now - 90 * SECOND,
        "ended_at": now - 90 * SECOND,
        "complete": True,
        "reason": "",
        "ok": 15,
        "unavailable": 1,
        "failed": 0,
        "dropped": 0,
    }
    return int(connection.execute(insert(run).values(row | other).returning(run.c.id)).scalar_one())


def measured(
    connection: Connection,
    run_number: int,
    seq: int,
    probe: str,
    subject: str,
    quantity: str,
    centre: float,
    **other: Any,
) -> None:
    """Add a measurement of 20 repetitions within two percent of `centre`."""
    generator = random.Random(seq)
    repetitions = [centre * generator.uniform(0.98, 1.0) for _ in range(20)]
    row = {
        "run": run_number,
        "seq": seq,
        "received_at": time.time_ns(),
        "probe": probe,
        "subject": subject,
        "quantity": quantity,
        "element_type": "float32",
        "threads": 1,
        "cpus": [0],
        "backend": "native",
        "backend_version": "1",
        "isa": "neon",
        "compiler": "gcc 12.2",
        "parameters": {},
        "outcome": "ok",
        "reason": "",
        "grade": "clean",
        "grade_reasons": [],
        "repetitions": pack_doubles(repetitions),
        **asdict(summarize(repetitions)),
        "stream_bytes": 1.0,
        "bus_bytes": 1.0,
        "flops": 0.0,
        "working_set_bytes": 96 << 20,
        "conditions_before": {"monotonic_ns": 1},
        "conditions_after": {
            "monotonic_ns": 2,
            "load_1m": 0.4,
            "governor": "performance",
            "temperature_celsius": {"cpu": 51.2},
        },
        "started_monotonic_ns": seq * SECOND,
        "elapsed_seconds": 0.7,
        "cpu_share": 0.99,
        "involuntary_switches": 1,
    }
    connection.execute(insert(measurement).values(row | other))


def a_network(
    connection: Connection,
    run_number: int,
    seq: int,
    name: str,
    nodes: Sequence[tuple[str, str]],
    digest: str,
    **other: Any,
) -> None:
    """Add a network's measurement with times for its nodes (name, operator)."""
    generator = random.Random(seq)
    seconds = [generator.lognormvariate(-8, 1) for _ in nodes]
    total = sum(seconds)
    runtime = {"backend": "onnxruntime", "backend_version": "1.32.0", "isa": "", "compiler": ""}
    measured(connection, run_number, seq, "network", name, "seconds", total, **(runtime | other))
    connection.execute(
        insert(network).values(
            run=run_number, seq=seq, model_name=name, model_sha256=digest, executed_sha256=digest,
            provider="CPUExecutionProvider", optimization="all", unjoined_seconds=0.0,
            profiled_seconds=total * 1.05,
        )
    )  # fmt: skip
    rows: list[Mapping[str, Any]] = [
        {"run": run_number, "seq": seq, "position": position, "name": node, "op_type": operator,
         **asdict(summarize([second * factor for factor in (1.0, 1.01, 1.02)]))}
        for position, ((node, operator), second) in enumerate(zip(nodes, seconds, strict=True))
    ]  # fmt: skip
    connection.execute(insert(layer), rows)


def a_model(
    connection: Connection, name: str, node_names: Sequence[str] = ()
) -> tuple[str, list[tuple[str, str]]]:
    """Add a network of the zoo, its first nodes renamed, and return its digest and nodes."""
    built = build(name)
    for node, other in zip(built.graph.node, node_names, strict=False):
        node.name = other
    data = built.SerializeToString(deterministic=True)
    digest = hashlib.sha256(data).hexdigest()
    connection.execute(
        insert(model).values(
            sha256=digest,
            name=name,
            origin="agent",
            size_bytes=len(data),
            data=data,
            received_at=time.time_ns(),
        )
    )
    return digest, [(node.name, node.op_type) for node in built.graph.node]


def fill(engine: Engine) -> None:
    """Add a board with a complete run: kernels, peaks, a network, a noisy and a failed measurement."""
    with engine.begin() as connection:
        number = a_run(connection, board(connection))
        seq = 1
        for threads in (1, 4):
            for store in ("plain", "nontemporal"):
                for kernel in ("copy", "scale", "add", "triad"):
                    rate = 3.1e9 * (1 + 0.3 * (threads > 1)) * (0.8 if store == "plain" else 1.0)
                    measured(
                        connection, number, seq, "bandwidth", kernel, "bytes_per_s", rate,
                        parameters={"store": store}, element_type="float64", threads=threads,
                    )  # fmt: skip
                    seq += 1
            for element_type, peak in (("float32", 11.5e9), ("float64", 5.8e9)):
                measured(
                    connection, number, seq, "peak", "fma", "flops_per_s", peak * threads,
                    element_type=element_type, threads=threads,
                )  # fmt: skip
                seq += 1
        measured(
            connection, number, 30, "bandwidth", "copy", "bytes_per_s", 1.9e9,
            grade="throttled", grade_reasons=["under-voltage during the measurement"],
        )  # fmt: skip
        measured(
            connection, number, 31, "network", "vgg16", "seconds", 1.0,
            outcome="failed", reason="the measuring child was killed: out of memory",
            **dict.fromkeys(asdict(summarize([1.0])) | {"grade": None}),
        )  # fmt: skip
        digest, nodes = a_model(connection, "mobilenet_v1")
        a_network(connection, number, NETWORK_SEQ, "mobilenet_v1", nodes, digest)
        a_network(connection, number, NETWORK_SEQ + 1, "mobilenet_v1", nodes, digest, threads=4)


@dataclass
class Site:
    """Pages that are being served, the store behind them, and what they asked of it."""

    url: str
    engine: Engine
    client: httpx.Client
    statements: list[str]

    def json(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def page(self, path: str) -> Page:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return Page.of(answer.text)


class Page(HTMLParser):
    """What a person reads on a page: its text, and its tables' cells."""

    @classmethod
    def of(cls, text: str) -> Page:
        page = cls()
        page.feed(text)
        return page

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._cell = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self.tables[-1][-1][-1] += data


@contextlib.contextmanager
def served(place: Path | str, *, hosts: Sequence[str] = ()) -> Iterator[Site]:
    """Serve the pages of a database on a free port: a new SQLite file in a folder, or a URL."""
    url = place if isinstance(place, str) else f"sqlite:///{place / 'roofline.sqlite'}"
    engine, reading = open_database(url), open_database(url, read_only=True)
    statements: list[str] = []
    event.listen(reading, "before_cursor_execute", lambda *values: statements.append(values[2]))
    server = uvicorn.Server(
        uvicorn.Config(create_app(reading, hosts=hosts), log_level="warning", lifespan="off", ws="none")
    )
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        while not server.started:
            time.sleep(0.01)
        with httpx.Client(base_url=address, timeout=30) as client:
            yield Site(address, engine, client, statements)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        engine.dispose()
        reading.dispose()


@pytest.fixture(scope="session")
def seed() -> ModuleType:
    """The functions above that add rows."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pages of one measured board; tests only read it."""
    with served(tmp_path_factory.mktemp("site")) as running:
        fill(running.engine)
        yield running


@pytest.fixture
def empty_site(tmp_path: Path) -> Iterator[Site]:
    """The pages of a store without anything in it, for tests that add to it."""
    with served(tmp_path) as running:
        yield running
