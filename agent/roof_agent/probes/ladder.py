"""Bandwidth of each level of the memory."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import POINT_BUDGETS, bytes_per_s, kernel_task, measure_kernel, warmed_up
from roof_agent.probes.levels import ladder

# Read-only, and two loads to a store.
_KERNELS = (("read", ""), ("triad", "plain"))


@register
class Ladder(Probe):
    """Read and triad on working sets from 4 KiB a thread up to beyond every cache.

    The curve has a step where a cache ends; between two steps lies a level with a bandwidth of its own.
    A point's level is named where its set lies well inside; where the system doesn't tell the caches'
    sizes, the steps of the curve do. Layers of a network whose data stay in a cache have its roof and
    not the memory's.
    """

    name = "ladder"
    quick = False
    quantity = "bytes_per_s"
    help = "bandwidth over the size of the working set, for each level of the memory"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each kernel and placement as a batch of sizes."""
        return [
            task
            for cpus in context.placements
            for kernel, store in _KERNELS
            for task in warmed_up(
                context,
                [
                    kernel_task(
                        context,
                        Task(
                            probe=self.name,
                            subject=kernel,
                            quantity=self.quantity,
                            element_type="float32",
                            threads=len(cpus),
                            cpus=cpus,
                            parameters={
                                **({"store": store} if store else {}),
                                "level": level,
                                "working_set_bytes": str(size),
                            },
                            batch=f"{self.name} {kernel} {cpus}",
                        ),
                        working_set_bytes=size,
                        budget=POINT_BUDGETS[context.preset],
                    )
                    for size, level in ladder(context, cpus)
                ],
            )
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one point."""
        return measure_kernel(task, bytes_per_s)
