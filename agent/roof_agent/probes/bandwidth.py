"""Memory bandwidth beyond every cache."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.errors import MeasurementError
from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import BUDGETS, measure_kernel

KERNELS = ("copy", "scale", "add", "triad")
STORES = ("plain", "nontemporal")
# STREAM's own type; the default preset adds the one that networks use.
ELEMENT_TYPES = {"quick": ("float64",), "default": ("float64", "float32"), "rigorous": ("float64", "float32")}

MIB = 1 << 20
# STREAM's rule: each array at least four times the last cache.
_CACHES = 4
_SMALLEST_ARRAY_BYTES = 32 * MIB
_ARRAYS = 3
# Of what is available: a board must stay usable, and its OOM killer asleep.
_MEMORY_SHARE = 0.25


def array_bytes(last_level_cache_bytes: int | None, memory_bytes: int) -> int:
    """Return each array's size: max(4 x last cache, 32 MiB), the three within a quarter of the memory.

    Raises MeasurementError where that leaves less than two megabytes.
    """
    wanted = max(_CACHES * (last_level_cache_bytes or 0), _SMALLEST_ARRAY_BYTES)
    allowed = int(memory_bytes * _MEMORY_SHARE) // _ARRAYS
    size = min(wanted, allowed)
    if size < 2 * MIB:
        raise MeasurementError(
            f"{memory_bytes // MIB} MiB of available memory are too few for arrays beyond a cache"
        )
    return size - size % 4096


@register
class Bandwidth(Probe):
    """STREAM's four kernels on arrays beyond every cache, with plain and non-temporal stores.

    copy a->c, scale s*a->c, add a+b->c, triad a+s*b->c. Bytes are counted as STREAM counts them (copy
    and scale 2, add and triad 3 elements); a plain store also reads the line that it overwrites, so the
    bus carries 3 and 4. Non-temporal stores don't, and show what the memory gives. Best of all
    repetitions is STREAM's figure; the median says how steady the board is.
    """

    name = "bandwidth"
    quantity = "bytes_per_s"
    help = "STREAM's copy, scale, add and triad on arrays beyond every cache"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each kernel, type, kind of store and thread count."""
        size = array_bytes(context.last_level_cache_bytes, context.memory_bytes)
        budget = BUDGETS[context.preset]
        return [
            Task(
                probe=self.name,
                subject=kernel,
                quantity=self.quantity,
                element_type=element_type,
                threads=len(cpus),
                cpus=cpus,
                parameters={"store": store},
                settings={"working_set_bytes": _ARRAYS * size, "backend": context.backend, **budget.settings},
                seconds=budget.task_seconds,
            )
            for cpus in context.placements
            for element_type in ELEMENT_TYPES[context.preset]
            for store in STORES
            for kernel in KERNELS
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one kernel."""
        return measure_kernel(task, lambda work: work.stream_bytes)
