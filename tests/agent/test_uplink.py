"""The way to the collector where none answers: everything is kept, and the user is told what to do."""

import os
import signal
import socket
import threading

import pytest

from roof_agent import uplink
from roof_agent.config import resolve
from roof_agent.errors import Exit, UnreachableError, UsageError
from roof_agent.records import Device, Measurement, Outcome, Plan, RunEnd, RunStart
from roof_agent.stop import Stop, Stopped

DEVICE = Device("f" * 64, "h", "x86_64")
RUN = "12345678-1234-1234-1234-123456789abc"
CONTENTS = (
    RunStart(DEVICE, "0", "quick", "b", 1, 2, 1),
    Measurement("peak", "fma", "flops_per_s", Outcome.FAILED, reason="why"),
    RunEnd(False, 3, 0, 0, 1),
)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(uplink, "_PLAN_SECONDS", 0.2)
    monkeypatch.setattr(uplink, "_DRAIN_SECONDS", 0.2)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return resolve({"collector": [f"127.0.0.1:{port}"], "spool": [str(tmp_path / "spool")]}, {})


def fill(link):
    link.begin(RUN)
    for content in CONTENTS:
        link.emit(content)


def test_nothing_is_lost_and_the_way_to_send_it_is_said(settings, caplog):
    with uplink.connect(settings, DEVICE) as link:
        assert link.plan() is None
        assert "hasn't answered" in caplog.text
        fill(link)
        with pytest.raises(
            UnreachableError, match=f"roof-agent send --collector {settings.collector}"
        ) as error:
            link.deliver(Stop())
        assert error.value.exit_code == Exit.UNREACHABLE
        assert link._spool.positions() == {RUN: len(CONTENTS)}
    assert list(settings.spool.glob(f"runs/{RUN}/*.segment"))


def test_a_network_that_can_t_be_fetched_is_left_out(settings, monkeypatch, caplog):
    from roof_agent.records import ModelRef

    with uplink.connect(settings, DEVICE) as link:

        def fetch(ref, folder):
            raise UnreachableError("it broke off")

        monkeypatch.setattr(link._session, "fetch_model", fetch)
        assert link.models(Plan(models=(ModelRef("net", "ab" * 32, 3),))) == []
    assert "network net can't be fetched: it broke off" in caplog.text


def test_waiting_for_acknowledgements_can_be_stopped(settings, monkeypatch):
    monkeypatch.setattr(uplink, "_DRAIN_SECONDS", 60.0)
    with uplink.connect(settings, DEVICE) as link, Stop().listening() as stop:
        fill(link)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(Stopped):
            link.deliver(stop)


def test_alone_there_is_nothing_to_wait_for():
    with uplink.connect(resolve({}, {}), DEVICE) as link:
        assert link.plan() is None
        fill(link)
        link.deliver(Stop())
    with pytest.raises(UsageError, match="--collector"), uplink.session_to(resolve({}, {}), DEVICE, None):
        pass
