"""Reductions: one operation an input element."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, Node, OpenShapeError
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.rules.shapes import axis_of, like
from roof_collector.analysis.tensor import INT64, Shape, Tensor

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@rule(*REDUCTIONS)
def reduce(node: Node) -> Cost:
    """Reduce some axes (all, where none is given)."""
    shape = node.shape(0)
    axes = node.values(1, "axes")
    if axes is None and node.optional(1) is not None:
        raise OpenShapeError("which axes are reduced depends on data")
    if not axes:
        if node.integer("noop_with_empty_axes", 0):
            return Cost([like(node.input(0))], "reduction")
        axes = list(range(len(shape)))
    reduced = {axis_of(int(str(axis)), len(shape)) for axis in axes}
    out = _without(shape, reduced, keep=bool(node.integer("keepdims", 1)))
    return Cost([Tensor(node.input(0).dtype, out)], "reduction", other_ops=node.elements(0))


@rule("ArgMax", "ArgMin")
def arg_extreme(node: Node) -> Cost:
    """Find where the extreme is."""
    shape = node.shape(0)
    axis = axis_of(node.integer("axis", 0), len(shape))
    out = _without(shape, {axis}, keep=bool(node.integer("keepdims", 1)))
    return Cost([Tensor(INT64, out)], "reduction", other_ops=node.elements(0))


@rule("Det")
def determinant(node: Node) -> Cost:
    """Take determinants of the last two axes; one operation an element."""
    return Cost([Tensor(node.input(0).dtype, node.shape(0)[:-2])], "reduction", other_ops=node.elements(0))


@rule("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(node: Node) -> Cost:
    """Training losses, counted as the reduction that they are at inference."""
    x, labels = node.input(0), node.shape(1)
    out: Shape = labels if node.text("reduction", "mean") == "none" else ()
    outputs = [Tensor(x.dtype, out), like(x)][: len(node.outputs)]
    return Cost(outputs, "reduction", other_ops=node.elements(0))


def _without(shape: Shape, axes: set[int], *, keep: bool) -> Shape:
    if keep:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
