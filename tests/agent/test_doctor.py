"""What doctor finds on each board and in each state, and what --strict makes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from roof_agent.doctor import DISTURBS, MISSING, NOTE, examine
from roof_agent.errors import Exit, UnfitEnvironmentError
from roof_agent.platform import conditions
from roof_agent.platform.discovery import discover
from roof_agent.records import Cluster, Conditions, Device
from roof_agent.runner import Tally
from roof_agent.stop import Stop
from roof_agent.uplink import Uplink
from roof_agent.verbs import run

BOARDS = Path(__file__).parents[1] / "data" / "boards"
DEVICE = replace(discover(BOARDS / "pi3"), clusters=(Cluster("cortex-a53", (0, 1, 2, 3), 1.2e9),))
QUIET = Conditions(0, governor="performance", load_1m=0.1, throttled_bits=0, memory_available_bytes=1 << 30)


@pytest.fixture(autouse=True)
def networks_can_be_measured(monkeypatch):
    monkeypatch.setattr("roof_agent.doctor.missing_for_networks", tuple)


def found(state=QUIET, device=DEVICE, root=BOARDS / "pi3", **more):
    return [(finding.kind, finding.what) for finding in examine(device, state, root=root, **more)]


def test_a_quiet_board_has_nothing():
    assert found() == []


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"governor": "ondemand"}, DISTURBS, "governor is ondemand"),
        ({"load_1m": 1.5}, DISTURBS, "load 1.50"),
        ({"throttled_bits": 0b1}, DISTURBS, "reports under-voltage"),
        ({"throttled_bits": 0x40000}, DISTURBS, "throttled has occurred since boot"),
        ({"throttled_bits": None}, MISSING, "throttling can't be seen"),
        ({"temperature_celsius": {"cpu-thermal": 78.0}}, DISTURBS, "cpu-thermal is at 78 C"),
        ({"cgroup_cpus": 0.5}, DISTURBS, "0.5 of 4 CPUs"),
        ({"pressure_memory_some_avg10": 20.0}, DISTURBS, "waited for memory 20 %"),
        ({"memory_available_bytes": 32 << 20}, DISTURBS, "32 MiB of memory"),
    ],
)
def test_each_state(change, kind, words):
    ((is_kind, what),) = found(replace(QUIET, **change))
    assert is_kind == kind
    assert words in what


def test_each_lack(monkeypatch):
    assert found(native_problem="it was built for another processor")[0] == (
        MISSING,
        "no compiled kernels: it was built for another processor; figures are numpy's and lower",
    )
    assert "no cache sizes" in found(device=replace(DEVICE, caches=()))[0][1]
    monkeypatch.setattr("roof_agent.doctor.missing_for_networks", lambda: ("onnxruntime", "onnx"))
    assert found() == [(MISSING, "networks can't be measured: onnxruntime and onnx not installed")]


def test_a_virtual_machine_is_noted_and_not_refused():
    assert [kind for kind, _ in found(device=replace(DEVICE, virtualization="kvm"))] == [NOTE]


def test_a_capped_clock(tmp_path):
    folder = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True)
    (folder / "cpuinfo_max_freq").write_text("1200000\n")
    (folder / "scaling_max_freq").write_text("600000\n")
    assert found(root=tmp_path) == [(DISTURBS, "cortex-a53 is capped to 600 of 1200 MHz")]


def test_a_hot_board_under_low_voltage():
    """The tree of a Pi 3 in trouble: all of it is said, each with what to do."""
    root = BOARDS / "pi3-nocache"
    findings = examine(discover(root), conditions.sample(root, ask=lambda: None), root=root)
    words = "; ".join(finding.what for finding in findings)
    for part in ("governor is ondemand", "under-voltage", "throttled", "81 C"):
        assert part in words
    assert all(finding.advice for finding in findings)


def test_strict_refuses_what_can_be_mended(monkeypatch):
    monkeypatch.setattr("roof_agent.platform.conditions.sample", lambda: replace(QUIET, load_1m=3.0))
    with pytest.raises(UnfitEnvironmentError, match=r"load 3\.00") as refused:
        run._refuse_disturbance(DEVICE)
    assert refused.value.exit_code == Exit.ENVIRONMENT
    monkeypatch.setattr("roof_agent.platform.conditions.sample", lambda: QUIET)
    run._refuse_disturbance(replace(Device("f" * 64, "h", "x86_64"), virtualization="kvm"))


@pytest.mark.parametrize(
    ("tally", "strict", "code"),
    [
        (Tally(ok=3), True, Exit.OK),
        (Tally(ok=3, graded=1), False, Exit.OK),
        (Tally(ok=3, graded=1), True, Exit.THRESHOLD),
        (Tally(ok=3, unavailable=1), True, Exit.OK),
        (Tally(ok=3, failed=1), False, Exit.PARTIAL),
    ],
)
def test_exit_codes(tally, strict, code):
    from roof_agent.config import resolve

    settings = replace(resolve({}, {}), strict=strict)
    command = run._Command(settings, DEVICE, progress=None, stop=Stop())
    assert command._conclude(tally, Uplink()) == code
