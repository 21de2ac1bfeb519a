"""Arithmetic peak from registers alone."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import BUDGETS, measure_kernel


@register
class Peak(Probe):
    """Independent multiply-adds on registers, as many in flight as the register file holds.

    A multiply-add counts as two operations. No byte is moved, so no real network reaches this rate: it is
    the roof. Where the processor has no multiply-add instruction, multiplications and additions in turn
    (subject muladd). The numpy twin multiplies matrices in cache instead, which is less.
    """

    name = "peak"
    quantity = "flops_per_s"
    help = "multiply-adds per second from registers, in single and double precision"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each element type and thread count."""
        budget = BUDGETS[context.preset]
        return [
            Task(
                probe=self.name,
                subject="fma",
                quantity=self.quantity,
                element_type=element_type,
                threads=len(cpus),
                cpus=cpus,
                settings={"working_set_bytes": 0, "backend": context.backend, **budget.settings},
                seconds=budget.task_seconds,
            )
            for cpus in context.placements
            for element_type in ("float32", "float64")
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one peak; without a multiply-add instruction, muladd."""
        return measure_kernel(task, lambda work: work.flops, instead="muladd")
