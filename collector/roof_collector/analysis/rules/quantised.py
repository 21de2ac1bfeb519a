"""Quantised twins: they count as their float ones, at their own element sizes."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, Node, OpenShapeError
from roof_collector.analysis.rules.matmul import matrix_product
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import axis_of, broadcast, like
from roof_collector.analysis.symbols import Dim, product
from roof_collector.analysis.tensor import FLOAT, INT32, UINT8, Shape, Tensor


@rule("MatMulInteger")
@rule("MatMulInteger16", domain=MICROSOFT)
def matmul_integer(node: Node) -> Cost:
    """8-bit operands, int32 product."""
    shape, macc = matrix_product(node.shape(0), node.shape(1))
    return Cost([Tensor(INT32, shape)], "quantised-gemm", macc, weights=(0, 1))


@rule("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: Node) -> Cost:
    """8-bit operands, scaled to floats; the seventh input is a bias."""
    shape, macc = matrix_product(node.shape(0), node.shape(1))
    return Cost([Tensor(node.input(2).dtype, shape)], "quantised-gemm", macc, weights=(0, 1, 6))


@rule("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantise_matmul(node: Node) -> Cost:
    """Quantise the float operand on the way; the weight has 8 bits, the fifth input is a bias."""
    shape, macc = matrix_product(node.shape(0), node.shape(1))
    return Cost([Tensor(node.input(0).dtype, shape)], "quantised-gemm", macc, weights=(1, 4))


@rule("QLinearMatMul")
@rule("QLinearMatMul", domain=MICROSOFT)
def qlinear_matmul(node: Node) -> Cost:
    """8-bit operands and product."""
    shape, macc = matrix_product(node.shape(0), node.shape(3))
    return Cost([Tensor(node.input(7).dtype, shape)], "quantised-gemm", macc, weights=(0, 3))


@rule("QGemm", domain=MICROSOFT)
def qgemm(node: Node) -> Cost:
    """Gemm of 8-bit operands; the seventh input is C, a float comes out where no output scale is given."""
    a, b = node.shape(0, 2), node.shape(3, 2)
    a = a[::-1] if node.integer("transA", 0) else a
    b = b[::-1] if node.integer("transB", 0) else b
    shape, macc = matrix_product(a, b)
    zero = node.optional(8)
    return Cost(
        [Tensor(FLOAT if zero is None else zero.dtype, shape)], "quantised-gemm", macc, weights=(3, 6)
    )


@rule("MatMulNBits", "MatMulBnb4", "MatMulFpQ4", domain=MICROSOFT)
def matmul_n_bits(node: Node) -> Cost:
    """Multiply by a weight [K, N] packed in few bits; its params are K*N, its bytes as stored."""
    depth, columns = node.integer("K", 0), node.integer("N", 0)
    x = node.shape(0)
    weight: Dim = depth * columns
    out: Shape = (*x[:-1], columns)
    bias = node.optional(5)
    constants = node.input(1).constant
    params = (weight if constants else 0) + (
        product(bias.shape or ()) if bias is not None and bias.constant else 0
    )
    return Cost(
        [Tensor(node.input(0).dtype, out)],
        "quantised-gemm",
        product(x[:-1]) * weight,
        weights=(1, 5) if bias is not None else (1,),
        params=params,
    )


@rule("QuantizeLinear")
@rule("QuantizeLinear", domain=MICROSOFT)
def quantise(node: Node) -> Cost:
    """Floats to integers: one operation an element."""
    zero = node.optional(2)
    dtype = zero.dtype if zero is not None else node.integer("output_dtype", UINT8) or UINT8
    return Cost([like(node.input(0), dtype)], "quantise", other_ops=node.elements(0), data=(0,))


@rule("DequantizeLinear")
@rule("DequantizeLinear", domain=MICROSOFT)
def dequantise(node: Node) -> Cost:
    """Integers to floats: one operation an element. A constant stays known at its stored type."""
    x = node.input(0)
    out = like(x, node.integer("output_dtype", 0) or node.input(1).dtype)
    out.stored = x
    return Cost([out], "quantise", other_ops=node.elements(0), data=(0,))


@rule("DynamicQuantizeLinear")
def dynamic_quantise(node: Node) -> Cost:
    """Find the range, then quantise: two operations an element."""
    outputs = [like(node.input(0), UINT8), Tensor(FLOAT, ()), Tensor(UINT8, ())]
    return Cost(outputs, "quantise", other_ops=node.elements(0) * 2)


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_arithmetic(node: Node) -> Cost:
    """One operation an output element."""
    shape = broadcast(node.shape(0), node.shape(3))
    weights = tuple(slot for slot in node.constants((0, 3)) if node.input(slot).elements != 1)
    return Cost(
        [Tensor(node.input(0).dtype, shape)],
        "quantised-elementwise",
        other_ops=product(shape),
        weights=weights,
    )


@rule("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def qlinear_activation(node: Node) -> Cost:
    """One operation an element."""
    kind = "quantised-softmax" if node.op_type == "QLinearSoftmax" else "quantised-activation"
    return Cost([like(node.input(0))], kind, other_ops=node.elements(0))


@rule("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: Node) -> Cost:
    """Join 8-bit tensors, rescaling each: inputs are (data, scale, zero point) after the output's two."""
    slots = range(2, len(node.inputs), 3)
    shapes = [node.shape(slot) for slot in slots]
    axis = axis_of(node.integer("axis", 0), len(shapes[0]))
    length: Dim = 0
    for shape in shapes:
        length = length + shape[axis]
    out = (*shapes[0][:axis], length, *shapes[0][axis + 1 :])
    return Cost([Tensor(node.input(2).dtype, out)], "quantised-movement")


@rule("QLinearWhere", domain=MICROSOFT)
def qlinear_where(node: Node) -> Cost:
    """Choose one of two 8-bit elements."""
    shape = broadcast(node.shape(0), node.shape(1), node.shape(4))
    return Cost([Tensor(node.input(1).dtype, shape)], "quantised-elementwise", other_ops=product(shape))


@rule("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(node: Node) -> Cost:
    """Average some axes."""
    shape = node.shape(0)
    axes = node.integers("axes")
    if axes is None:
        axes = list(range(len(shape)))
    reduced = {axis_of(axis, len(shape)) for axis in axes}
    keep = node.integer("keepdims", 1)
    out = tuple(
        1 if axis in reduced else dim for axis, dim in enumerate(shape) if keep or axis not in reduced
    )
    return Cost([Tensor(node.input(0).dtype, out)], "quantised-reduction", other_ops=node.elements(0))


@rule("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantise_lstm(node: Node) -> Cost:
    """LSTM with 8-bit weights, stored transposed: [directions, I, 4H]."""
    from roof_collector.analysis.rules.recurrent import recurrent_cost

    if node.shape(0)[2] is None:
        raise OpenShapeError("the input's width is unknown")
    return recurrent_cost(node, gates=4, kind="quantised-recurrent")
