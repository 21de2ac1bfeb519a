"""Matrix products: product of the broadcast batch dims * M * N * K. Gemm's C is a bias."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import broadcast
from roof_collector.analysis.symbols import Dim, Poly, product
from roof_collector.analysis.tensor import Shape, Tensor


def same_depth(left: Dim, right: Dim) -> Dim:
    """Return the contracted dim; the known one of an open and a known one."""
    if isinstance(left, Poly):
        return right
    if isinstance(right, int) and left != right:
        raise InvalidNodeError(f"multiplies over {left} and {right} elements")
    return left


def matrix_product(a: Shape, b: Shape) -> tuple[Shape, Dim]:
    """Return the shape of a @ b as numpy defines it, and its macc."""
    if not a or not b:
        raise InvalidNodeError("multiplies a scalar")
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    depth = same_depth(left[-1], right[-2])
    batch = broadcast(left[:-2], right[:-2]) if len(left) > 2 or len(right) > 2 else ()
    rows, columns = left[-2], right[-1]
    shape = (*batch, *((rows,) if len(a) > 1 else ()), *((columns,) if len(b) > 1 else ()))
    return shape, product(batch) * rows * columns * depth


@rule("MatMul")
def matmul(node: Node) -> Cost:
    """Batched, broadcast, 1-D."""
    shape, macc = matrix_product(node.shape(0), node.shape(1))
    return Cost([Tensor(node.input(0).dtype, shape)], "gemm", macc, weights=(0, 1))


@rule("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul(node: Node) -> Cost:
    """MatMul with its operands' transpositions folded in."""
    a = _transposed(node, node.shape(0), "transA", "transBatchA")
    b = _transposed(node, node.shape(1), "transB", "transBatchB")
    shape, macc = matrix_product(a, b)
    return Cost([Tensor(node.input(0).dtype, shape)], "gemm", macc, weights=(0, 1))


def _transposed(node: Node, shape: Shape, last: str, batch: str) -> Shape:
    if node.integer(batch, 0) and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    if node.integer(last, 0) and len(shape) > 1:
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


@rule("Gemm")
@rule("FusedGemm", domain=MICROSOFT)
def gemm(node: Node) -> Cost:
    """Multiply A' by B' and add C."""
    a, b = node.shape(0, 2), node.shape(1, 2)
    if node.integer("transA", 0):
        a = a[::-1]
    if node.integer("transB", 0):
        b = b[::-1]
    shape, macc = matrix_product(a, b)
    return Cost([Tensor(node.input(0).dtype, shape)], "gemm", macc, weights=(0, 1, 2))


@rule("Einsum")
def einsum(node: Node) -> Cost:
    """With a contraction, the product of all index extents; without one, nothing is multiplied up."""
    equation = node.text("equation").replace(" ", "")
    inputs, _, written = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(node.inputs):
        raise InvalidNodeError(f"equation {equation!r} with {len(node.inputs)} inputs")
    extents: dict[str, Dim] = {}
    ellipsis: Shape = ()
    for slot, term in enumerate(terms):
        shape = node.shape(slot)
        before, dots, after = term.partition("...")
        hidden = len(shape) - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise InvalidNodeError(f"term {term!r} with {len(shape)} dims")
        if dots:
            ellipsis = broadcast(ellipsis, shape[len(before) : len(before) + hidden])
        tail = shape[len(shape) - len(after) :]
        for label, dim in (*zip(before, shape, strict=False), *zip(after, tail, strict=True)):
            extents[label] = dim if extents.get(label, 1) == 1 else extents[label]
    if "->" not in equation:
        labels = inputs.replace(",", "").replace(".", "")
        written = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
        written = ("..." if "..." in inputs else "") + written
    before, dots, after = written.partition("...")
    shape = (*(extents[x] for x in before), *(ellipsis if dots else ()), *(extents[x] for x in after))
    summed = set(extents) - set(written)
    hidden_sum = bool(ellipsis) and not dots
    work = product(extents.values()) * product(ellipsis)
    # One operand that is summed over is a reduction: additions, no products.
    macc = work if len(terms) > 1 and (summed or hidden_sum) else 0
    other = 0 if macc != 0 else (work if len(terms) > 1 or summed else 0)
    kind = "gemm" if macc != 0 else "elementwise"
    output = Tensor(node.input(0).dtype, shape)
    return Cost([output], kind, macc, other, weights=tuple(range(len(terms))))
