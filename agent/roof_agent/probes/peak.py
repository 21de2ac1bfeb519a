"""Arithmetic peak from registers alone."""

from __future__ import annotations

from collections.abc import Sequence

from roof_agent.probes import PlanContext, Probe, Reading, Task, register
from roof_agent.probes.kernel import flops_per_s, kernel_task, measure_kernel

# (kernel, type, instruction set or empty for the widest)
_QUICK = (("fma", "float32", ""), ("fma", "float64", ""))
_ALL = (
    *_QUICK,
    ("fma", "float16", ""),
    ("dot", "int8", ""),
    ("muladd", "float32", ""),
    ("muladd", "float64", ""),
    ("muladd", "float32", "scalar"),
    ("muladd", "float64", "scalar"),
)


@register
class Peak(Probe):
    """Independent multiply-adds on registers, as many in flight as the register file holds.

    A multiply-add counts as two operations. No byte is moved, so no real network reaches this rate: it is
    the roof. fma is the processor's multiply-add instruction, in single and double precision and, where
    it is there, half; muladd multiplies and adds in turn, with vectors and (scalar) one number at a time:
    what code reaches that its compiler made nothing of. dot is the dot product of bytes that quantised
    networks use, where there is an instruction for it. The numpy twin multiplies matrices in cache
    instead, which is less.
    """

    name = "peak"
    quantity = "flops_per_s"
    help = "multiply-adds per second from registers, by type and instruction"

    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return each kernel, type and placement."""
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
                    parameters={"isa": isa} if isa else {},
                ),
            )
            for cpus in context.placements
            for kernel, element_type, isa in (_QUICK if context.preset == "quick" else _ALL)
        ]

    def measure(self, task: Task) -> Reading:
        """Measure one peak; where a processor has no multiply-add for it, single and double do without."""
        widened = task.element_type in {"float32", "float64"}
        return measure_kernel(task, flops_per_s, instead="muladd" if widened else "")
