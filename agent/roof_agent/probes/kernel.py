"""What the probes of micro-kernels share: budgets, a kernel's task, its repetitions as figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from roof_agent.errors import Unavailable
from roof_agent.kernels import Request, Result, load
from roof_agent.probes import PlanContext, Reading, Task

# Starting a child, loading the library, trying the kernel, reading the board's state.
_START_SECONDS = 0.25
# Calibration, the clock before and after.
_SETTING_UP_SECONDS = 0.1
# Making the data, touching them for the first time, verifying them.
_SECONDS_PER_BYTE = 1e-9
# Repetitions end when they are steady; on the boards seen that was after about half of the budget.
_USED_SHARE = 0.5
# Without frequency scaling there is no ramp to wait for.
_FIXED_CLOCK_WARMUP_SECONDS = 0.1


@dataclass(frozen=True)
class Budget:
    """How long a kernel may take. Warm-up: an ondemand governor needs half a second to ramp up."""

    warmup_seconds: float
    budget_seconds: float
    min_repetitions: int
    repetition_seconds: float = 0.02


BUDGETS = {
    "quick": Budget(0.2, 0.5, 10),
    "default": Budget(0.5, 1.0, 10),
    "rigorous": Budget(0.5, 6.0, 30),
}
# Of a point of a curve: its neighbours say the same again.
POINT_BUDGETS = {
    "quick": Budget(0.0, 0.1, 3, 0.01),
    "default": Budget(0.0, 0.2, 5, 0.01),
    "rigorous": Budget(0.0, 1.0, 10),
}


def kernel_task(
    context: PlanContext,
    task: Task,
    *,
    kernel: str = "",
    working_set_bytes: int = 0,
    budget: Budget | None = None,
    least_seconds: float = 0.0,
) -> Task:
    """Return `task` with what its kernel needs: settings and expected time.

    `kernel` where it isn't the task's subject; `working_set_bytes` of all threads together;
    `least_seconds` what the repetitions take where one alone may exceed the budget.
    """
    chosen = budget or BUDGETS[context.preset]
    if not any(cluster.max_hz for cluster in context.device.clusters):
        fixed = min(chosen.warmup_seconds, _FIXED_CLOCK_WARMUP_SECONDS)
        chosen = replace(chosen, warmup_seconds=fixed)
    start = 0.0 if task.batch else _START_SECONDS
    steady = chosen.min_repetitions * chosen.repetition_seconds
    used = max(_USED_SHARE * chosen.budget_seconds, steady, least_seconds)
    setting_up = _SETTING_UP_SECONDS + _SECONDS_PER_BYTE * working_set_bytes
    return replace(
        task,
        seconds=start + setting_up + chosen.warmup_seconds + used,
        settings={
            **task.settings,
            "kernel": kernel or task.subject,
            "backend": context.backend,
            "working_set_bytes": working_set_bytes,
            "warmup_seconds": chosen.warmup_seconds,
            "budget_seconds": chosen.budget_seconds,
            "min_repetitions": chosen.min_repetitions,
            "repetition_seconds": chosen.repetition_seconds,
        },
    )


def warmed_up(context: PlanContext, tasks: list[Task]) -> list[Task]:
    """Return a batch whose first task warms up for all: the others follow without a pause."""
    warmup = BUDGETS[context.preset].warmup_seconds
    first, *rest = tasks
    first = replace(
        first,
        seconds=first.seconds + _START_SECONDS + warmup,
        settings={**first.settings, "warmup_seconds": warmup},
    )
    return [first, *rest]


def measure_kernel(task: Task, figure: Callable[[Result, float], float], instead: str = "") -> Reading:
    """Measure the task's kernel; `figure` makes a repetition of a result and its seconds.

    `instead` names the kernel to take where the back end lacks the task's own.
    """
    settings = task.settings
    backend = load(str(settings["backend"]))
    store, kernel = task.parameters.get("store", ""), str(settings["kernel"])
    isa = task.parameters.get("isa", "")
    known = backend.isas(kernel, task.element_type, store)
    if isa and isa not in known:
        raise Unavailable(f"{backend.name} has no kernel {kernel} {task.element_type} in {isa} here")
    chosen = kernel if known or not instead else instead
    result = backend.run(
        Request(
            kernel=chosen,
            element_type=task.element_type,
            cpus=task.cpus,
            store=store,
            isa=isa,
            working_set_bytes=int(settings["working_set_bytes"]),
            repetition_seconds=float(settings["repetition_seconds"]),
            min_repetitions=int(settings["min_repetitions"]),
            warmup_seconds=float(settings["warmup_seconds"]),
            budget_seconds=float(settings["budget_seconds"]),
        )
    )
    parameters = {"huge_page_bytes": str(result.huge_page_bytes)} if result.work.working_set_bytes else {}
    if chosen != kernel:
        parameters["kernel"] = chosen
    return Reading(
        repetitions=tuple(figure(result, seconds) for seconds in result.seconds),
        backend=backend.name,
        backend_version=backend.version,
        compiler=backend.compiler,
        isa=result.isa,
        work=result.work,
        cpu_shares=result.cpu_shares,
        involuntary_switches=result.involuntary_switches,
        parameters=parameters,
    )


def bytes_per_s(result: Result, seconds: float) -> float:
    """Return a repetition's traffic as STREAM counts it."""
    return result.work.stream_bytes / seconds


def flops_per_s(result: Result, seconds: float) -> float:
    """Return a repetition's arithmetic; a multiply-add is two."""
    return result.work.flops / seconds
