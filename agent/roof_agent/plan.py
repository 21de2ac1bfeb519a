"""What a run will measure, for how long, with how much memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from roof_agent.errors import MeasurementError, RoofError, Unavailable, UsageError
from roof_agent.platform.caches import last_level_bytes
from roof_agent.platform.cpu import spread
from roof_agent.platform.discovery import available_bytes
from roof_agent.presets import DEFAULT
from roof_agent.probes import LocalModel, PlanContext, Probe, Task, all_probes, choose
from roof_agent.records import Device, Plan

log = logging.getLogger(__name__)

# Where nothing tells how much memory there is; every supported board has more.
_MEMORY_UNKNOWN_BYTES = 256 << 20
# A measuring child besides its data: the interpreter, numpy, the library.
_CHILD_BYTES = 48 << 20
# A budget below this gives too few repetitions to say anything.
_SHORTEST_BUDGET_SECONDS = 0.1


@dataclass(frozen=True)
class RunPlan:
    """The tasks in order, and the probes that have none here, with the reason."""

    tasks: tuple[Task, ...]
    refused: tuple[tuple[Probe, RoofError], ...] = ()

    @property
    def seconds(self) -> float:
        """Return what the tasks are expected to take."""
        return sum(task.seconds for task in self.tasks)

    @property
    def memory_bytes(self) -> int:
        """Return what the largest of the measuring processes will use."""
        sizes = (int(task.settings.get("working_set_bytes", 0)) for task in self.tasks)
        return max(sizes, default=0) + _CHILD_BYTES

    @property
    def measurements(self) -> int:
        """Return how many measurements the run will report."""
        return len(self.tasks) + len(self.refused)


def context(
    device: Device,
    preset: str,
    *,
    cpus: Sequence[int] = (),
    thread_counts: Sequence[int] = (),
    backend: str = "",
    models: Sequence[LocalModel] = (),
    root: Path = Path("/"),
    allowed_cpus: Iterable[int] | None = None,
) -> PlanContext:
    """Return what probes plan by; a thread count of 0 stands for all CPUs.

    Raises UsageError for CPUs or thread counts that this machine, or this process, doesn't have.
    """
    allowed = sorted(os.sched_getaffinity(0) if allowed_cpus is None else allowed_cpus)
    missing = [cpu for cpu in cpus if cpu not in allowed]
    if missing:
        raise UsageError(f"cpu {missing[0]} can't be used here: {', '.join(map(str, allowed))} can")
    chosen = tuple(cpus) or spread(root, allowed)
    counts: list[int] = []
    for count in thread_counts or (1, 0):
        if count > len(chosen):
            raise UsageError(f"{count} threads are more than the {len(chosen)} CPUs that can be used")
        counts.append(count or len(chosen))
    return PlanContext(
        device=device,
        preset=preset,
        cpus=chosen,
        thread_counts=tuple(dict.fromkeys(counts)),
        memory_bytes=available_bytes(root) or _MEMORY_UNKNOWN_BYTES,
        last_level_cache_bytes=last_level_bytes(device.caches),
        backend=backend,
        models=tuple(models),
    )


def probes(
    plan: Plan | None, wanted: Sequence[str], unwanted: Sequence[str], preset: str = DEFAULT
) -> list[Probe]:
    """Return the probes to run: those asked for, else the collector's plan, else the default ones.

    Raises UsageError for one that isn't there and was asked for on the command line.
    """
    planned: list[str] = []
    if plan is not None and not wanted:
        known = all_probes()
        planned = [name for name in plan.probes if name in known]
        for name in plan.probes:
            if name not in known:
                log.warning("the collector's plan names the probe %s, which this agent doesn't have", name)
    return choose(wanted or planned, unwanted, preset)


def make(chosen: Sequence[Probe], within: PlanContext, duration_seconds: float | None = None) -> RunPlan:
    """Return the plan of these probes; budgets are stretched or shrunk to last `duration_seconds`.

    Raises UsageError for a duration in which the measurements can't be made.
    """
    tasks: list[Task] = []
    refused: list[tuple[Probe, RoofError]] = []
    for probe in chosen:
        try:
            tasks += probe.plan(within)
        except (Unavailable, MeasurementError) as error:
            refused.append((probe, error))
    if duration_seconds is not None:
        tasks = _fit(tasks, duration_seconds)
    return RunPlan(tuple(tasks), tuple(refused))


def _fit(tasks: Sequence[Task], duration_seconds: float) -> list[Task]:
    budgets = [float(task.settings.get("budget_seconds", 0.0)) for task in tasks]
    fixed = sum(task.seconds for task in tasks) - sum(budgets)
    shortest = fixed + _SHORTEST_BUDGET_SECONDS * sum(budget > 0 for budget in budgets)
    if duration_seconds < shortest:
        raise UsageError(
            f"{len(tasks)} measurements take {shortest:.0f} s at the least; "
            "choose fewer (--probe, --threads, --quick) or a longer --duration"
        )
    scale = (duration_seconds - fixed) / sum(budgets) if sum(budgets) else 1.0
    return [
        replace(
            task,
            seconds=task.seconds + (scale - 1) * budget,
            settings={**task.settings, "budget_seconds": scale * budget} if budget else task.settings,
        )
        for task, budget in zip(tasks, budgets, strict=True)
    ]
