"""The session against a small but real gRPC server: everything arrives once, whatever breaks."""

import dataclasses
import itertools
import logging
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from roof_agent import records
from roof_agent.errors import UsageError
from roof_agent.session import Session
from roof_agent.session_state import Timing
from roof_agent.spool import DiskSpool, MemorySpool, Spool
from roof_agent.stream import PROTOCOL_VERSION
from roof_agent.wire import parse_record, plan_message
from roofline.v1 import run_pb2, session_pb2, session_pb2_grpc

RUN = "0123abcd-0000"
DEVICE = records.Device("f" * 64, "board", "aarch64")
PLAN = records.Plan(("peak",), (), (1, 0))
# As the real ones, a tenth and less as long.
TIMING = Timing(connect=2.0, ack=0.5, backoff=(0.05, 0.2), settle=0.3, farewell=1.0)


class Collector(session_pb2_grpc.CollectorServiceServicer):
    """Keeps what it gets in a dictionary that outlives its server, as a database would."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], bytes] = {}
        self.received: Counter[tuple[str, int]] = Counter()
        self.batches: list[tuple[float, int, int]] = []
        self.hellos: list[session_pb2.Hello] = []
        self.heartbeats: list[session_pb2.Heartbeat] = []
        self.version = PROTOCOL_VERSION
        self.limits = session_pb2.Limits(batch_records=1000, batch_bytes=256 << 10, window_batches=8)
        self.acknowledges = True
        self.rejects: set[int] = set()
        # Called with each batch before it is stored; what it returns goes out first.
        self.before: Callable[[session_pb2.Batch], session_pb2.SessionResponse | None] = lambda batch: None

    def Session(self, requests: Any, context: grpc.ServicerContext) -> Iterator[session_pb2.SessionResponse]:  # noqa: N802
        hello = next(requests).hello
        self.hellos.append(hello)
        yield session_pb2.SessionResponse(
            hello_ack=session_pb2.HelloAck(
                protocol_version=self.version,
                limits=self.limits,
                resume=[
                    session_pb2.RunPosition(run_id=run.run_id, seq=self.lacks(run.run_id))
                    for run in hello.runs
                ],
                plan=plan_message(PLAN),
            )
        )
        for request in requests:
            if request.HasField("heartbeat"):
                self.heartbeats.append(request.heartbeat)
                continue
            batch = request.batch
            self.batches.append((time.monotonic(), len(batch.records), batch.ByteSize()))
            response = self.before(batch)
            if response is not None:
                yield response
                if response.HasField("close"):
                    return
            for record in batch.records:
                self.received[batch.run_id, record.seq] += 1
                self.stored.setdefault((batch.run_id, record.seq), record.SerializeToString())
            if self.acknowledges:
                yield session_pb2.SessionResponse(
                    ack=session_pb2.Ack(
                        run_id=batch.run_id,
                        next_seq=self.lacks(batch.run_id),
                        rejected=[
                            session_pb2.Rejection(seq=record.seq, reason="too\nodd")
                            for record in batch.records
                            if record.seq in self.rejects
                        ],
                    )
                )

    def lacks(self, run_id: str) -> int:
        return next(seq for seq in itertools.count() if (run_id, seq) not in self.stored)

    def subjects(self, run_id: str = RUN) -> list[str]:
        contents = [
            parse_record(run_pb2.Record.FromString(self.stored[key])).content
            for key in sorted(self.stored)
            if key[0] == run_id
        ]
        return [content.subject for content in contents if isinstance(content, records.Measurement)]


class Served:
    """A collector's server, which can be killed and started again on its port."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._server: grpc.Server | None = None

    def up(self) -> None:
        server = grpc.server(futures.ThreadPoolExecutor(4))
        session_pb2_grpc.add_CollectorServiceServicer_to_server(self.collector, server)
        assert server.add_insecure_port(self.address) == self.port
        server.start()
        self._server = server

    def down(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()
            self._server = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(Collector())
    served.up()
    yield served
    served.down()


@pytest.fixture(params=["disk", "memory"])
def spool(request: pytest.FixtureRequest, tmp_path: Path) -> Spool:
    return DiskSpool(tmp_path / "spool") if request.param == "disk" else MemorySpool()


@contextmanager
def opened(address: str, spool: Spool, timing: Timing = TIMING) -> Iterator[Session]:
    session = Session(address, spool, DEVICE, "boot", timing=timing)
    session.start()
    try:
        yield session
    finally:
        session.close()


def content(number: int, repetitions: int = 3) -> records.Measurement:
    return records.Measurement(
        "p",
        f"s{number:05}",
        "seconds",
        records.Outcome.OK,
        repetitions=(float(number),) * repetitions,
    )


def fill(spool: Spool, count: int, run_id: str = RUN) -> list[str]:
    for number in range(count):
        spool.append(run_id, content(number))
    spool.append(run_id, records.RunEnd(True, 0, count, 0, 0))
    return [f"s{number:05}" for number in range(count)]


def soon(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_everything_arrives_once_and_the_spool_is_empty(served: Served, spool: Spool) -> None:
    expected = fill(spool, 50)
    with opened(served.address, spool) as session:
        assert session.plan(5) == PLAN
        assert session.state == "connected"
        assert session.drain(5)
        assert session.delivered == 51
    assert served.collector.subjects() == expected
    assert set(served.collector.received.values()) == {1}
    assert spool.positions() == {}
    hello = served.collector.hellos[0]
    assert (hello.device.fingerprint, hello.boot_id, hello.wants_plan) == (DEVICE.fingerprint, "boot", True)
    assert [(run.run_id, run.seq) for run in hello.runs] == [(RUN, 51)]


def test_records_appended_later_go_without_being_asked_for(served: Served, spool: Spool) -> None:
    with opened(served.address, spool) as session:
        session.plan(5)
        spool.append(RUN, content(0))
        assert soon(lambda: not spool.unacknowledged(), 2)
    assert served.collector.subjects() == ["s00000"]


def test_f1_a_collector_killed_again_and_again_ends_with_each_record_once(
    served: Served, spool: Spool
) -> None:
    served.collector.limits.batch_records = 7
    seen: queue.Queue[int] = queue.Queue()
    served.collector.before = lambda batch: seen.put(len(batch.records)) or time.sleep(0.002)  # type: ignore[func-returns-value]
    expected = fill(spool, 300)
    with opened(served.address, spool) as session:
        for _ in range(4):
            for _ in range(5):
                seen.get(timeout=5)
            served.down()
            served.up()
        assert session.drain(10)
    assert served.collector.subjects() == expected
    assert len(served.collector.hellos) >= 4


def test_a_collector_that_comes_late_gets_everything(spool: Spool, caplog: pytest.LogCaptureFixture) -> None:
    served = Served(Collector())
    expected = fill(spool, 3)
    with opened(served.address, spool) as session:
        assert session.plan(5) is None
        assert soon(lambda: "connection refused" in session.state)
        assert not session.drain(0.3)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        served.up()
        assert session.drain(5)
    served.down()
    assert served.collector.subjects() == expected


def test_a_collector_that_lost_records_gets_them_again(served: Served, tmp_path: Path) -> None:
    spool = DiskSpool(tmp_path)
    spool.append(RUN, content(0))
    spool.append(RUN, content(1))
    with opened(served.address, spool) as session:
        assert session.drain(5)
        # An older backup of its database was put back.
        served.down()
        served.collector.stored.clear()
        served.up()
        spool.append(RUN, content(2))
        assert soon(lambda: served.collector.subjects() == ["s00000", "s00001", "s00002"])


def test_a_collector_that_claims_what_it_cant_have_loses_nothing(served: Served, spool: Spool) -> None:
    spool.append(RUN, content(0))
    served.collector.lacks = lambda run_id: 1 << 62  # type: ignore[method-assign]
    with opened(served.address, spool) as session:
        session.plan(5)
        assert soon(lambda: not spool.unacknowledged())
        for number in range(1, 300):
            spool.append(RUN, content(number))
        assert soon(lambda: not spool.unacknowledged())
    assert served.collector.subjects() == [f"s{number:05}" for number in range(1, 300)]


def test_what_wasnt_sent_cant_be_acknowledged(served: Served, spool: Spool) -> None:
    served.collector.limits.batch_records = 1
    served.collector.limits.window_batches = 1
    expected = fill(spool, 5)
    with opened(served.address, spool) as session:
        session.plan(5)
        served.collector.lacks = lambda run_id: 1 << 62  # type: ignore[method-assign]
        assert session.drain(5)
    assert served.collector.subjects() == expected


def test_batches_keep_to_the_collectors_limits(served: Served) -> None:
    spool = MemorySpool()
    served.collector.limits.CopyFrom(session_pb2.Limits(batch_records=10, batch_bytes=1000, window_batches=2))
    for number in range(30):
        spool.append(RUN, content(number, repetitions=30 if number < 15 else 0))
    spool.append(RUN, content(30, repetitions=1000))
    with opened(served.address, spool) as session:
        assert session.drain(5)
    counts = [count for _, count, _ in served.collector.batches]
    assert sum(counts) == 31
    assert max(counts) == 10
    # A record that is larger than a batch goes alone.
    assert counts[-1] == 1
    assert all(size < 1100 for _, _, size in served.collector.batches[:-1])


def test_no_more_batches_are_under_way_than_the_window(served: Served) -> None:
    spool = MemorySpool()
    served.collector.limits.batch_records = 1
    served.collector.limits.window_batches = 3
    served.collector.acknowledges = False
    fill(spool, 20)
    with opened(served.address, spool, dataclasses.replace(TIMING, ack=30)) as session:
        session.plan(5)
        assert soon(lambda: len(served.collector.batches) == 3)
        time.sleep(0.1)
        assert len(served.collector.batches) == 3


def test_without_an_acknowledgement_the_connection_is_made_anew(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    spool = MemorySpool()
    served.collector.acknowledges = False
    expected = fill(spool, 3)
    with opened(served.address, spool) as session:
        assert soon(lambda: len(served.collector.hellos) == 2)
        served.collector.acknowledges = True
        assert session.drain(5)
    assert served.collector.subjects() == expected
    assert "nothing was acknowledged" in caplog.text


def test_a_rejected_record_is_counted_said_and_not_sent_again(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    spool = MemorySpool()
    served.collector.rejects = {1}
    fill(spool, 3)
    with opened(served.address, spool) as session:
        assert session.drain(5)
        assert session.rejections == [(RUN, 1, "too?odd")]
    assert "record 1: too?odd" in caplog.text
    assert served.collector.received[RUN, 1] == 1
    assert spool.positions() == {}


def test_slow_holds_records_back(served: Served) -> None:
    spool = MemorySpool()
    served.collector.limits.batch_records = 1
    served.collector.limits.window_batches = 1
    slow = session_pb2.SessionResponse(slow=session_pb2.Slow(retry_after_seconds=0.4))
    served.collector.before = lambda batch: slow if len(served.collector.batches) == 1 else None
    fill(spool, 1)
    with opened(served.address, spool) as session:
        assert session.drain(5)
    (first, *_), (second, *_) = served.collector.batches
    assert second - first >= 0.39


@pytest.mark.parametrize("final", [True, False])
def test_close_ends_it_for_good_only_when_it_says_so(served: Served, *, final: bool) -> None:
    spool = MemorySpool()
    close = session_pb2.SessionResponse(close=session_pb2.Close(reason="not\nyou", final=final))
    served.collector.before = lambda batch: close if len(served.collector.batches) == 1 else None
    fill(spool, 1)
    with opened(served.address, spool) as session:
        begin = time.monotonic()
        assert session.drain(3) is not final
        assert time.monotonic() - begin < 2
        if final:
            assert session.failure == "not?you"
            assert len(spool.positions()) == 1
            time.sleep(0.3)
            assert len(served.collector.hellos) == 1


def test_f19_a_collector_of_another_protocol_is_refused_in_words(served: Served) -> None:
    served.collector.version = PROTOCOL_VERSION + 1
    spool = MemorySpool()
    fill(spool, 1)
    with opened(served.address, spool) as session:
        assert not session.drain(3)
        assert "speaks protocol 2" in session.failure
    assert len(served.collector.hellos) == 1


def test_more_runs_than_a_hello_names_arrive_all(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roof_agent.stream._HELLO_RUNS", 2)
    spool = MemorySpool()
    runs = [f"0000000{n}" for n in range(5)]
    for run in runs:
        fill(spool, 3, run)
    with opened(served.address, spool) as session:
        assert session.drain(5)
    assert len(served.collector.hellos[0].runs) == 2
    assert all(len(served.collector.subjects(run)) == 3 for run in runs)


def test_a_heartbeat_arrives(served: Served) -> None:
    with opened(served.address, MemorySpool()) as session:
        session.plan(5)
        session.heartbeat(RUN, 3, 7, "triad\n" + "x" * 300)
        assert soon(lambda: len(served.collector.heartbeats) == 1)
    beat = served.collector.heartbeats[0]
    assert (beat.run_id, beat.done, beat.planned, beat.current) == (RUN, 3, 7, ("triad?" + "x" * 300)[:200])


def test_nothing_is_sent_while_it_is_quiet(served: Served) -> None:
    spool = MemorySpool()
    with opened(served.address, spool) as session:
        session.plan(5)
        spool.append(RUN, content(0))
        with session.quiet():
            # What was there before has arrived.
            assert served.collector.subjects() == ["s00000"]
            spool.append(RUN, content(1))
            session.heartbeat(RUN, 1, 2, "triad")
            time.sleep(0.2)
            assert len(served.collector.batches) == 1
            assert not served.collector.heartbeats
        assert session.drain(5)
    assert served.collector.subjects() == ["s00000", "s00001"]
    assert len(served.collector.hellos) == 1


def test_nothing_is_dialed_while_it_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    served = Served(Collector())
    with opened(served.address, MemorySpool()) as session:
        session.plan(5)
        with session.quiet():
            served.up()
            caplog.clear()
            time.sleep(0.5)
            assert not served.collector.hellos
            assert not caplog.records
        assert soon(lambda: len(served.collector.hellos) == 1)
    served.down()


def test_a_connection_that_wont_settle_is_broken_off_before_it_is_quiet() -> None:
    """Somebody listens and never answers: the dial under way must not go on into a measurement."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with opened(address, MemorySpool(), dataclasses.replace(TIMING, connect=20)) as session:
            assert soon(lambda: session._stream is not None)
            begin = time.monotonic()
            with session.quiet():
                assert 0.25 < time.monotonic() - begin < 1
                assert session._stream is None


def test_an_unacknowledged_window_is_no_reason_to_wait_long_for_quiet(served: Served) -> None:
    spool = MemorySpool()
    served.collector.acknowledges = False
    fill(spool, 3)
    with opened(served.address, spool, dataclasses.replace(TIMING, ack=30)) as session:
        assert soon(lambda: len(served.collector.batches) == 1)
        begin = time.monotonic()
        with session.quiet():
            assert 0.25 < time.monotonic() - begin < 0.6
    assert len(served.collector.hellos) == 1


def test_quiet_time_doesnt_count_against_the_collector(served: Served) -> None:
    spool = MemorySpool()
    wait = threading.Event()
    served.collector.before = lambda batch: wait.wait(5) and None  # type: ignore[func-returns-value]
    fill(spool, 3)
    with opened(served.address, spool, dataclasses.replace(TIMING, settle=0.1)) as session:
        assert soon(lambda: len(served.collector.batches) == 1)
        with session.quiet():
            time.sleep(TIMING.ack * 1.5)
        wait.set()
        assert session.drain(5)
    assert len(served.collector.hellos) == 1


def test_the_waits_between_attempts_grow_with_full_jitter() -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return 0.0

    timing = dataclasses.replace(TIMING, backoff=(1.0, 60.0))
    session = Session(f"127.0.0.1:{free_port()}", MemorySpool(), DEVICE, "b", timing=timing, uniform=uniform)
    session.start()
    assert soon(lambda: len(asked) >= 8)
    session.close()
    assert asked[:8] == [(0, high) for high in (2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)]


def test_a_connection_in_the_clear_is_said(caplog: pytest.LogCaptureFixture) -> None:
    # 192.0.2.0/24 is for documentation: nobody is there.
    session = Session("192.0.2.1:1", MemorySpool(), DEVICE, "boot", insecure=True, timing=TIMING)
    session.start()
    session.close()
    assert "neither encrypted nor authenticated" in caplog.text


def test_close_ends_its_threads(served: Served) -> None:
    before = set(threading.enumerate())
    session = Session(served.address, MemorySpool(), DEVICE, "boot", timing=TIMING)
    session.start()
    session.plan(5)
    session.close()
    left = {thread.name for thread in set(threading.enumerate()) - before if "session" in thread.name}
    assert not left


@pytest.mark.parametrize("address", ["somewhere", "host:", ":1", "host:0", "host:65536", "host:http"])
def test_an_address_that_isnt_one_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="host:port"):
        Session(address, MemorySpool(), DEVICE, "boot", insecure=True)


@pytest.mark.parametrize("address", ["192.0.2.1:1", "collector.example:1", "[2001:db8::1]:1"])
def test_no_other_machine_is_spoken_to_in_the_clear_unless_asked_for(address: str) -> None:
    with pytest.raises(UsageError, match="--insecure"):
        Session(address, MemorySpool(), DEVICE, "boot")
    Session(address, MemorySpool(), DEVICE, "boot", insecure=True)
    Session(address, MemorySpool(), DEVICE, "boot", credentials=grpc.ssl_channel_credentials())
    for own in ("localhost:1", "127.0.0.1:1", "[::1]:1"):
        Session(own, MemorySpool(), DEVICE, "boot")
