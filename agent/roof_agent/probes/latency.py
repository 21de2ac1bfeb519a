"""Latency of each level of the memory."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import POINT_BUDGETS, kernel_task, measure_kernel, warmed_up
from roof_agent.probes.levels import DRAM, ladder

# A walk goes once around the whole ring, and a few of them are needed; memory takes about 200 ns a line.
_SECONDS_PER_BYTE = 5 * 200e-9 / 64


@register
class Latency(Probe):
    """Loads that wait for one another along a random ring of lines, on sets from 4 KiB to beyond the caches.

    The figure is the time of one load. No prefetcher can guess the next line, so each step of the curve
    is a level's own latency (beyond the reach of the TLB with its misses, unless huge pages are there).
    Layers with scattered access, embeddings and gathers, feel it.
    """

    name = "latency"
    quick = False
    quantity = "seconds"
    help = "time of one load that nothing can foresee, over the size of the working set"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return a batch of sizes for one core of each kind."""
        return [
            task
            for kind in context.kinds
            for task in warmed_up(
                context,
                [
                    kernel_task(
                        context,
                        Task(
                            probe=self.name,
                            subject="latency",
                            quantity=self.quantity,
                            threads=1,
                            cpus=kind[:1],
                            parameters={"level": level, "working_set_bytes": str(size)},
                            batch=f"{self.name} {kind[:1]}",
                        ),
                        working_set_bytes=size,
                        budget=POINT_BUDGETS[context.preset],
                        least_seconds=_SECONDS_PER_BYTE * size if level == DRAM else 0.0,
                    )
                    for size, level in ladder(context, kind[:1])
                ],
            )
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one point."""
        return measure_kernel(task, lambda result, seconds: seconds / result.steps)
