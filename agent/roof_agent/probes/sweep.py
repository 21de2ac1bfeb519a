"""The roofline itself: arithmetic over intensity."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import POINT_BUDGETS, flops_per_s, kernel_task, measure_kernel, warmed_up
from roof_agent.probes.levels import DRAM, middles

FMAS = (1, 2, 4, 8, 16, 32, 64)
# Rigorous: every level.
_LEVELS = {"quick": (DRAM,), "default": ("L1", DRAM)}


@register
class Sweep(Probe):
    """Each element is read once and takes part in k multiply-adds, k from 1 to 64.

    Its intensity is 2k operations to the element's bytes, known and not estimated, so the curve over k is
    the board's roofline as measured: rising with the level's bandwidth, flat at the peak. It should
    follow min(peak, bandwidth x intensity) but near the ridge, where both bind at once.
    """

    name = "sweep"
    quick = False
    quantity = "flops_per_s"
    help = "arithmetic over intensity, k multiply-adds an element, for the levels of the memory"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each placement and level as a batch of k."""
        wanted = _LEVELS.get(context.preset)
        return [
            task
            for cpus in context.placements
            for level, size in middles(context, cpus).items()
            if wanted is None or level in wanted
            for task in warmed_up(
                context,
                [
                    kernel_task(
                        context,
                        Task(
                            probe=self.name,
                            subject="sweep",
                            quantity=self.quantity,
                            element_type="float32",
                            threads=len(cpus),
                            cpus=cpus,
                            parameters={"fmas": str(fmas), "level": level, "working_set_bytes": str(size)},
                            batch=f"{self.name} {level} {cpus}",
                        ),
                        kernel=f"sweep_{fmas}",
                        working_set_bytes=size,
                        budget=POINT_BUDGETS[context.preset],
                    )
                    for fmas in FMAS
                ],
            )
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one point."""
        return measure_kernel(task, flops_per_s)
