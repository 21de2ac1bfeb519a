"""What the probes of micro-kernels share: budgets, and a kernel's repetitions as rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roof_agent.kernels import Request, load
from roof_agent.probes import Reading, Task
from roof_agent.records import Work

# Starting a child, loading the library, touching the arrays.
_OVERHEAD_SECONDS = 0.2


@dataclass(frozen=True)
class Budget:
    """How long a kernel may take. Warm-up: an ondemand governor needs half a second to ramp up."""

    warmup_seconds: float
    budget_seconds: float
    min_repetitions: int

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the task's settings."""
        return {
            "warmup_seconds": self.warmup_seconds,
            "budget_seconds": self.budget_seconds,
            "min_repetitions": self.min_repetitions,
        }

    @property
    def task_seconds(self) -> float:
        """Return what a task takes when it uses its budget."""
        return self.warmup_seconds + self.budget_seconds + _OVERHEAD_SECONDS


BUDGETS = {
    "quick": Budget(0.2, 0.5, 10),
    "default": Budget(0.5, 1.5, 10),
    "rigorous": Budget(0.5, 6.0, 30),
}


def measure_kernel(task: Task, amount: Callable[[Work], float], instead: str = "") -> Reading:
    """Measure the task's kernel; a repetition is `amount` of its work by its seconds.

    `instead` names the kernel to take where the back end lacks the task's own.
    """
    settings = task.settings
    backend = load(str(settings["backend"]))
    store = task.parameters.get("store", "")
    known = backend.isas(task.subject, task.element_type, store)
    kernel = task.subject if known or not instead else instead
    result = backend.run(
        Request(
            kernel=kernel,
            element_type=task.element_type,
            cpus=task.cpus,
            store=store,
            working_set_bytes=int(settings["working_set_bytes"]),
            min_repetitions=int(settings["min_repetitions"]),
            warmup_seconds=float(settings["warmup_seconds"]),
            budget_seconds=float(settings["budget_seconds"]),
        )
    )
    parameters = {"huge_page_bytes": str(result.huge_page_bytes)} if result.work.working_set_bytes else {}
    if kernel != task.subject:
        parameters["kernel"] = kernel
    return Reading(
        repetitions=tuple(amount(result.work) / seconds for seconds in result.seconds),
        backend=backend.name,
        backend_version=backend.version,
        compiler=backend.compiler,
        isa=result.isa,
        work=result.work,
        cpu_shares=result.cpu_shares,
        involuntary_switches=result.involuntary_switches,
        parameters=parameters,
    )
