"""Memory bandwidth beyond every cache."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import bytes_per_s, kernel_task, measure_kernel
from roof_agent.probes.levels import array_bytes

# Each kernel's arrays, and the kinds of store it is measured with. An update has read its line already,
# so that there's nothing to gain from passing the cache by.
ARRAYS = {"read": 1, "fill": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3, "update": 2}
BOTH = ("plain", "nontemporal")
STORES = {"read": ("",), "fill": BOTH, "copy": BOTH, "scale": BOTH, "add": BOTH, "triad": BOTH}

# STREAM's own type; the default preset adds the one that networks use.
ELEMENT_TYPES = {"quick": ("float64",), "default": ("float64", "float32"), "rigorous": ("float64", "float32")}
_QUICK = ("read", "copy", "scale", "add", "triad")


@register
class Bandwidth(Probe):
    """STREAM's kernels and three more on arrays beyond every cache, with plain and non-temporal stores.

    copy a->c, scale s*a->c, add a+b->c, triad a+s*b->c; read sums a, fill writes c, update is c+s*a->c.
    Bytes are counted as STREAM counts them (copy and scale 2 elements, add and triad 3); a plain store
    also reads the line that it overwrites, so the bus carries 3 and 4. Non-temporal stores don't, and
    with read and update they show what the memory gives. Best of all repetitions is STREAM's figure; the
    median says how steady the board is.
    """

    name = "bandwidth"
    quantity = "bytes_per_s"
    help = "STREAM's copy, scale, add and triad, and read, fill, update, on arrays beyond every cache"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each kernel, type, kind of store and placement."""
        size = array_bytes(context.last_level_cache_bytes, context.memory_bytes)
        kernels = _QUICK if context.preset == "quick" else tuple(ARRAYS)
        return [
            kernel_task(
                context,
                Task(
                    probe=self.name,
                    subject=kernel,
                    quantity=self.quantity,
                    element_type=element_type,
                    threads=len(cpus),
                    cpus=cpus,
                    parameters={"store": store} if store else {},
                ),
                working_set_bytes=ARRAYS[kernel] * size,
            )
            for cpus in context.placements
            for element_type in ELEMENT_TYPES[context.preset]
            for kernel in kernels
            for store in STORES.get(kernel, ("plain",))
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one kernel."""
        return measure_kernel(task, bytes_per_s)
