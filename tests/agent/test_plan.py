"""Plans: what is measured on which CPUs, within which memory, for how long."""

from dataclasses import replace
from pathlib import Path

import pytest

from roof_agent import plan as planning
from roof_agent.errors import MeasurementError, UsageError
from roof_agent.platform.discovery import discover
from roof_agent.probes import Probe, all_probes, choose, register
from roof_agent.probes.levels import array_bytes
from roof_agent.records import Cluster, Device, Plan

BOARDS = Path(__file__).parents[1] / "data" / "boards"
MIB = 1 << 20
DEVICE = Device("f" * 64, "h", "x86_64", clusters=(Cluster("core", (0, 1, 2, 3)),))


def context(device=DEVICE, preset="quick", root=Path("/none"), allowed=range(4), **settings):
    return planning.context(device, preset, root=root, allowed_cpus=allowed, **settings)


@pytest.mark.parametrize("board", sorted(path.name for path in BOARDS.iterdir()))
def test_every_board_s_plan_stays_under_a_quarter_of_its_memory(board):
    device = discover(BOARDS / board)
    within = context(device, "default", BOARDS / board, device.clusters[0].cpus)
    plan = planning.make(planning.probes(None, ["bandwidth", "peak"], ()), within)
    assert not plan.refused
    largest = max(task.settings["working_set_bytes"] for task in plan.tasks)
    assert 0 < largest <= within.memory_bytes / 4
    caches = [cache.size_bytes for cache in device.caches if cache.kind != "instruction"]
    if within.memory_bytes > 4 * 3 * 4 * max(caches):
        assert largest >= 3 * 4 * max(caches)


def test_array_size_is_stream_s_rule_within_a_quarter():
    assert array_bytes(None, 4096 * MIB) == 32 * MIB
    assert array_bytes(32 * MIB, 4096 * MIB) == 128 * MIB
    # 256 MiB as in a small control group: a third of 64 MiB each.
    assert array_bytes(32 * MIB, 256 * MIB) == 64 * MIB // 3 // 4096 * 4096
    with pytest.raises(MeasurementError, match="too few"):
        array_bytes(None, 16 * MIB)


def test_a_control_group_s_limit_counts(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 8000000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(str(256 * MIB))
    within = context(root=tmp_path)
    assert within.memory_bytes == 256 * MIB
    plan = planning.make(choose(["bandwidth"], []), within)
    assert plan.memory_bytes < 128 * MIB


def test_too_little_memory_refuses_the_probe_and_keeps_the_others():
    within = replace(context(), memory_bytes=8 * MIB)
    plan = planning.make(choose(["bandwidth", "peak"], []), within)
    ((probe, error),) = plan.refused
    assert probe.name == "bandwidth"
    assert "too few" in str(error)
    assert {task.probe for task in plan.tasks} == {"peak"}
    assert plan.measurements == len(plan.tasks) + 1


def test_cpus_and_threads():
    assert context().thread_counts == (1, 4)
    assert context(thread_counts=(2, 0, 4)).thread_counts == (2, 4)
    assert context(cpus=(3, 1)).cpus == (3, 1)
    assert context(cpus=(3, 1), thread_counts=(0,)).thread_counts == (2,)
    with pytest.raises(UsageError, match="cpu 9"):
        context(cpus=(9,))
    with pytest.raises(UsageError, match="5 threads"):
        context(thread_counts=(5,))


def test_mixed_cores_are_measured_by_kind_and_together():
    mixed = replace(DEVICE, clusters=(Cluster("cortex-a53", (0, 1)), Cluster("cortex-a72", (2, 3))))
    assert context(DEVICE).placements == ((0,), (0, 1, 2, 3))
    assert context(mixed).placements == ((0,), (2,), (0, 1), (2, 3), (0, 1, 2, 3))
    assert context(mixed, thread_counts=(2,)).placements == ((0, 1),)
    # Bound to one kind of core, there is nothing mixed.
    assert context(mixed, cpus=(2, 3)).placements == ((2,), (2, 3))
    assert context(mixed, allowed=(0, 2)).placements == ((0,), (2,), (0, 2))


def test_probes_asked_for_go_before_the_collector_s_plan(caplog):
    def names(plan, wanted=(), unwanted=()):
        return [probe.name for probe in planning.probes(plan, wanted, unwanted)]

    assert names(Plan(probes=("peak",))) == ["peak"]
    assert names(Plan(probes=("peak",)), ["bandwidth"]) == ["bandwidth"]
    assert names(Plan(probes=("peak", "bandwidth")), (), ["peak"]) == ["bandwidth"]
    assert names(Plan(probes=("peak", "teleport"))) == ["peak"]
    assert "teleport" in caplog.text
    assert names(Plan()) == names(None) == [name for name, probe in all_probes().items() if probe.default]
    with pytest.raises(UsageError, match="no probe 'teleport'"):
        names(None, ["teleport"])
    with pytest.raises(UsageError, match="no probe 'teleport'"):
        names(None, (), ["teleport"])


def test_a_duration_stretches_and_shrinks_budgets():
    chosen = choose(["peak"], [])
    usual = planning.make(chosen, context())
    for wanted in (0.8 * usual.seconds, 3 * usual.seconds):
        plan = planning.make(chosen, context(), wanted)
        assert plan.seconds == pytest.approx(wanted)
        budgets = sum(task.settings["budget_seconds"] for task in plan.tasks)
        fixed = usual.seconds - sum(task.settings["budget_seconds"] for task in usual.tasks)
        assert budgets == pytest.approx(wanted - fixed)
    with pytest.raises(UsageError, match="at the least"):
        planning.make(chosen, context(), 0.1)


def test_a_name_is_taken_once():
    class Again(Probe):
        name = "peak"

        def plan(self, context):
            return []

        def measure(self, task):
            raise NotImplementedError

    with pytest.raises(ValueError, match="two probes are called peak"):
        register(Again)
