"""The clock that the cores really have."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import kernel_task, measure_kernel


@register
class Clock(Probe):
    """Additions that wait for one another, one a cycle on every processor: their rate is the clock.

    The system's own figure isn't believed: a board under low voltage or in a virtual machine reports
    what it would like to have. Peak divided by clock and width tells whether the kernels use every cycle.
    """

    name = "clock"
    quantity = "hertz"
    help = "clock rate of each kind of core, measured"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return one core of each kind."""
        return [
            kernel_task(
                context,
                Task(probe=self.name, subject="clock", quantity=self.quantity, threads=1, cpus=kind[:1]),
            )
            for kind in context.kinds
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one core's clock."""
        return measure_kernel(task, lambda result, seconds: result.steps / seconds)
