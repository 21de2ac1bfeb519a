"""Latency of networks, whole and layer by layer."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roof_agent.errors import Unavailable
from roof_agent.platform.capabilities import missing_for_networks
from roof_agent.probes import PlanContext, Probe, Reading, Task, register

# Unprofiled repetitions; the profiled ones have half of it.
_BUDGETS = {"quick": (1.5, 10, 0.2), "default": (4.0, 15, 0.5), "rigorous": (15.0, 40, 0.5)}
# The runtime's import, weights, two sessions, warm-ups.
_OVERHEAD_SECONDS = 2.5


@register
class Network(Probe):
    """A network in onnxruntime's CPU provider: unprofiled repetitions, then profiled ones.

    The latency is the unprofiled repetitions'; the profile slows a network down and serves for the times
    of its nodes alone. They belong to the graph that the runtime made of the network (fused nodes, other
    layouts), which is sent along without weights so that the collector counts what really ran. A network
    of the collector's plan comes without weights and gets random ones, which take the same time; one of
    --model has its own, and they stay here.
    """

    name = "network"
    help = "latency of ONNX networks and of each of their layers, in onnxruntime"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each network and placement. Raises Unavailable without networks or onnxruntime."""
        if missing := missing_here():
            raise Unavailable(missing)
        if not context.models:
            raise Unavailable(
                "no network to measure: give one with --model, or a collector has them in its plan"
            )
        tasks = [
            plan_network(
                self.name,
                model.ref.name,
                cpus,
                context,
                # What the zoo's networks are; what a user's is only its graph tells, in the child.
                element_type="float32" if model.weightless else "",
                path=str(model.path),
                sha256=model.ref.sha256 if model.weightless else "",
                weightless=int(model.weightless),
                bind=_lines(model.bind),
                input=_lines(model.inputs),
            )
            for model in context.models
            for cpus in context.placements
        ]
        if context.preset != "rigorous":
            return tasks
        # What the runtime's fusions and layouts buy.
        plain = [replace(task, parameters={"optimization": "none"}) for task in tasks if task.threads == 1]
        return tasks + plain

    def measure(self, task: Task) -> Reading:
        """Measure one network."""
        # numpy, onnx and onnxruntime: in the child alone.
        from roof_agent.models.network import measure

        return measure(task)


def plan_network(
    probe: str,
    subject: str,
    cpus: tuple[int, ...],
    context: PlanContext,
    *,
    element_type: str = "float32",
    **settings: str | int | float,
) -> Task:
    """Return the task of measuring a network; `settings` say where it comes from, see models.network."""
    budget_seconds, repetitions, warmup_seconds = _BUDGETS[context.preset]
    common: dict[str, str | int | float] = {
        "memory_bytes": context.memory_bytes,
        "budget_seconds": budget_seconds,
        "min_repetitions": repetitions,
        "warmup_seconds": warmup_seconds,
    }
    every = {**common, **settings}
    return Task(
        probe=probe,
        subject=subject,
        quantity="seconds",
        element_type=element_type,
        threads=len(cpus),
        cpus=cpus,
        parameters={"optimization": "all"},
        settings=every,
        seconds=1.5 * float(every["budget_seconds"]) + 2 * warmup_seconds + _OVERHEAD_SECONDS,
    )


def missing_here() -> str:
    """Return why networks can't be measured with this installation; empty where they can."""
    missing = missing_for_networks()
    if not missing:
        return ""
    if platform.machine().startswith(("armv6", "armv7")):
        return f"{' and '.join(missing)} isn't installed, and onnxruntime isn't published for 32-bit ARM"
    return f"{' and '.join(missing)} isn't installed: pip install 'roofline[models]'"


def _lines(pairs: Mapping[str, object]) -> str:
    """Return pairs as a task's settings can hold them."""
    return "\n".join(f"{name}={value}" for name, value in pairs.items())
