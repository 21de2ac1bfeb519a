"""Every probe: its plan in each preset, and each kind of kernel measured once for real."""

import os
from dataclasses import replace

import pytest

from roof_agent import plan as planning
from roof_agent.child import answer, native_problem
from roof_agent.platform.discovery import discover
from roof_agent.presets import PRESETS
from roof_agent.probes import all_probes, choose
from roof_agent.units import QUANTITIES

CPUS = tuple(sorted(os.sched_getaffinity(0)))
DEVICE = discover()
NATIVE = not native_problem()


def plan(name, preset="default"):
    within = planning.context(DEVICE, preset, backend="" if NATIVE else "numpy")
    return planning.make(choose([name], [], preset), within)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", [name for name in all_probes() if name != "network"])
def test_plans(name, preset):
    found = plan(name, preset)
    assert not found.refused
    assert found.tasks
    identities = set()
    for task in found.tasks:
        assert task.probe == name
        assert task.quantity == all_probes()[name].quantity in QUANTITIES
        assert task.threads == len(task.cpus) == len(set(task.cpus))
        assert set(task.cpus) <= set(CPUS)
        assert 0 < task.seconds < task.timeout_seconds
        identities.add(
            (task.subject, task.element_type, task.threads, task.cpus, tuple(sorted(task.parameters.items())))
        )
    # No two measurements of a run are the same one.
    assert len(identities) == len(found.tasks)


def test_presets_grow():
    seconds = [
        planning.make(choose([], [], preset), planning.context(DEVICE, preset)).seconds for preset in PRESETS
    ]
    assert seconds[0] < 30
    assert seconds[0] < seconds[1] < 180
    assert seconds[1] < seconds[2]


def test_a_quick_run_leaves_the_curves_out_unless_asked():
    assert [probe.name for probe in choose([], [], "quick")] == ["clock", "bandwidth", "peak", "network"]
    assert [probe.name for probe in choose(["ladder"], [], "quick")] == ["ladder"]


def shortened(task):
    """The same task, for a moment."""
    settings = {
        "warmup_seconds": 0.0,
        "budget_seconds": 0.05,
        "min_repetitions": 3,
        "repetition_seconds": 0.005,
    }
    return replace(task, settings={**task.settings, **settings})


def small(task, size=1 << 20):
    working_set = min(int(task.settings["working_set_bytes"]), size)
    return shortened(replace(task, settings={**task.settings, "working_set_bytes": working_set}))


@pytest.mark.skipif(not NATIVE, reason="the compiled kernels aren't here")
@pytest.mark.parametrize("name", ["bandwidth", "peak", "clock", "sweep", "sustained"])
def test_every_task_measures(name):
    """In this process, as under emulation, on small sets."""
    affinity = os.sched_getaffinity(0)
    for task in plan(name).tasks:
        if task.threads > 1:
            continue
        found = answer(small(task))
        assert not found.failed, task
        if found.unavailable:
            # What this processor doesn't have.
            assert (task.subject, task.element_type) in {("fma", "float16"), ("dot", "int8")}
            continue
        reading = found.reading
        assert reading.backend == "native"
        assert len(reading.repetitions) >= 3
        assert min(reading.repetitions) > 0
        if name == "bandwidth":
            assert reading.work.bus_bytes >= reading.work.stream_bytes > 0
        if name == "sweep":
            # The intensity is known exactly: 2k operations to the 4 bytes of an element.
            intensity = reading.work.flops / reading.work.stream_bytes
            assert intensity == 2 * int(task.parameters["fmas"]) / 4
        if name == "clock":
            assert 1e8 < max(reading.repetitions) < 1e10
        if task.parameters.get("isa"):
            assert reading.isa == task.parameters["isa"]
    assert os.sched_getaffinity(0) == affinity


@pytest.mark.skipif(not NATIVE, reason="the compiled kernels aren't here")
@pytest.mark.parametrize("name", ["ladder", "latency"])
def test_curves_measure_at_both_ends(name):
    first, *_, last = [task for task in plan(name).tasks if task.threads == 1]
    near, far = answer(shortened(first)).reading, answer(small(last, 64 << 20)).reading
    assert near.work.working_set_bytes <= 4096
    assert far.work.working_set_bytes <= 64 << 20
    if name == "latency":
        # From a few cycles to a trip to the memory; no machine inverts this.
        assert min(near.repetitions) < min(far.repetitions)
        assert 1e-10 < min(near.repetitions) < 1e-7


def test_the_numpy_twin_measures_what_it_can_and_says_what_it_can_t():
    tasks = [
        task for name in ("bandwidth", "peak", "clock") for task in plan(name).tasks if task.threads == 1
    ]
    outcomes = {}
    for task in tasks:
        task = small(replace(task, settings={**task.settings, "backend": "numpy"}))  # noqa: PLW2901
        found = answer(task)
        assert not found.failed, task
        outcomes[task.subject, task.element_type, task.parameters.get("store")] = found
    triad = outcomes["triad", "float64", "plain"]
    assert triad.reading.backend == "numpy"
    clock = outcomes["clock", "", None]
    assert clock.reading is None
    assert "numpy has no kernel clock" in clock.unavailable
