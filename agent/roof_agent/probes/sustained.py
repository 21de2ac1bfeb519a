"""The peak that lasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import Budget, flops_per_s, kernel_task, measure_kernel

_SECONDS = {"quick": 3.0, "default": 10.0, "rigorous": 120.0}
# Long enough that the repetitions of two minutes are a readable curve.
_REPETITION_SECONDS = 0.1
# Never steady enough to end before its time.
_ENDLESS = 1_000_000


@register
class Sustained(Probe):
    """The multiply-adds of peak on all cores at once, for seconds on end.

    A short burst shows what the arithmetic can do, this what the board's cooling and supply let it do:
    the repetitions in their order are the curve of its throttling. Compare the median with peak's.
    """

    name = "sustained"
    quick = False
    quantity = "flops_per_s"
    help = "multiply-adds per second on all cores when it goes on for long"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return one measurement on all CPUs."""
        seconds = _SECONDS[context.preset]
        task = kernel_task(
            context,
            Task(
                probe=self.name,
                subject="fma",
                quantity=self.quantity,
                element_type="float32",
                threads=len(context.cpus),
                cpus=context.cpus,
                parameters={"seconds": f"{seconds:g}"},
            ),
            budget=Budget(0.0, seconds, int(seconds / _REPETITION_SECONDS), _REPETITION_SECONDS),
        )
        return [replace(task, settings={**task.settings, "min_repetitions": _ENDLESS})]

    def measure(self, task: Task) -> Reading:
        """Measure it."""
        return measure_kernel(task, flops_per_s, instead="muladd")
