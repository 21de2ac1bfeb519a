"""ShuffleNetV2's guidelines, tried on this board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roof_agent.errors import Unavailable
from roof_agent.models.guidelines import cases
from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.network import missing_here, plan_network

_SCALES = {"quick": (1,), "default": (1, 2), "rigorous": (1, 2, 4)}
_CASE_SECONDS = 1.5


@register
class Guidelines(Probe):
    """Small networks of equal macc that differ in what ShuffleNetV2's four guidelines are about.

    Channel ratios (G1), groups (G2), fragments (G3), element-wise operations (G4): ten blocks each at
    56 x 56, with the paper's channels and with multiples of 8, on one thread. The verdict compares the time
    for each macc with the guideline's first case, and says where alignment, layouts or fusion are behind it.
    """

    name = "guidelines"
    help = "ShuffleNetV2's four guidelines as small networks, with a verdict on this board"
    default = False

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each case on one thread. Raises Unavailable without onnxruntime."""
        if missing := missing_here():
            raise Unavailable(missing)
        # The cases are many and small: each has the shortest budget, and they share a child.
        short = replace(context, preset="quick")
        tasks = (
            plan_network(self.name, case.subject, context.cpus[:1], short, budget_seconds=0.5, guideline=1)
            for case in cases(_SCALES[context.preset])
        )
        return [replace(task, batch=self.name, seconds=_CASE_SECONDS) for task in tasks]

    def measure(self, task: Task) -> Reading:
        """Measure one case."""
        from roof_agent.models.network import measure

        return measure(task)
