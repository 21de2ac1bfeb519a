"""Element-wise operators: 1 operation an output element, whatever the function.

Activations are told from arithmetic by class alone: a runtime fuses and vectorises them differently.
"""

from __future__ import annotations

from roof_collector.analysis.node import Cost, Node, OpenShapeError
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import broadcast, like
from roof_collector.analysis.symbols import Dim, product
from roof_collector.analysis.tensor import BOOL, INDEX_TYPES, UINT8, Tensor

ACTIVATIONS = (
    "Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "Sigmoid", "HardSigmoid",
    "HardSwish", "Swish", "Mish", "Tanh", "Softplus", "Softsign", "Gelu", "Clip", "Erf", "Shrink",
)  # fmt: skip
SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")
UNARY = (
    "Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "Tan",
    "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "BitwiseNot", "CumSum", "CumProd",
)  # fmt: skip
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
OTHER_ARITHMETIC = (
    "Pow", "Mod", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Min", "Max", "Sum", "Mean",
)  # fmt: skip
COMPARISONS = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor")


def many(node: Node, dtype: int | None = None) -> Tensor:
    """Return the broadcast of all inputs."""
    shapes = [node.shape(slot) for slot, tensor in enumerate(node.inputs) if tensor is not None]
    if not shapes:
        raise OpenShapeError("it has no inputs")
    if node.version < 7 and len(shapes) == 2:
        # Before opset 7 the second operand was placed along an axis of the first.
        shapes = shapes[:1]
    shape = shapes[0] if len(shapes) == 1 else broadcast(*shapes)
    return Tensor(node.input(0).dtype if dtype is None else dtype, shape)


def scale_slots(node: Node) -> tuple[int, ...]:
    """Return the slots whose constants scale or shift data; a scalar is part of the operator."""
    return tuple(
        slot
        for slot, tensor in enumerate(node.inputs)
        if tensor is not None
        and tensor.constant
        and tensor.dtype not in INDEX_TYPES
        and tensor.shape
        and tensor.elements != 1
    )


def _per_element(node: Node, kind: str, operations: Dim = 1, weights: tuple[int, ...] = ()) -> Cost:
    return Cost([like(node.input(0))], kind, other_ops=node.elements(0) * operations, weights=weights)


@rule(*ACTIVATIONS)
@rule("QuickGelu", "FastGelu", "Gelu", "HardSwish", domain=MICROSOFT)
def activation(node: Node) -> Cost:
    """One operation an element; PRelu's slope is a weight, FastGelu's bias too."""
    weighted = node.op_type == "PRelu" or (node.op_type == "FastGelu" and node.optional(1) is not None)
    return _per_element(node, "activation", weights=(1,) if weighted else ())


@rule("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Node) -> Cost:
    """Add and activate: two operations an element."""
    return _per_element(node, "activation", 2, (1,))


@rule("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Node) -> Cost:
    """Add a bias, halve the channels, multiply one half by the other's Gelu."""
    x = node.shape(0)
    out = (*x[:-1], x[-1] // 2)
    return Cost([Tensor(node.input(0).dtype, out)], "activation", other_ops=product(out) * 4, weights=(1,))


@rule("BiasAdd", domain=MICROSOFT)
def bias_add(node: Node) -> Cost:
    """Add a bias and a residual."""
    return _per_element(node, "elementwise", 2, (1,))


@rule(*SOFTMAXES)
def softmax(node: Node) -> Cost:
    """One operation an element, as every activation."""
    return _per_element(node, "softmax")


@rule("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: Node) -> Cost:
    """Add and normalise."""
    return _per_element(node, "softmax", 2)


@rule(*UNARY)
@rule("Inverse", domain=MICROSOFT)
def unary(node: Node) -> Cost:
    """One operation an element."""
    return _per_element(node, "elementwise")


@rule("Not", "IsNaN", "IsInf")
def predicate(node: Node) -> Cost:
    """Write booleans."""
    return Cost([like(node.input(0), BOOL)], "elementwise", other_ops=node.elements(0))


@rule(*ARITHMETIC)
def arithmetic(node: Node) -> Cost:
    """One operation an output element; a constant operand of more than one element is a weight."""
    out = many(node)
    return Cost([out], "elementwise", other_ops=product(out.shape or ()), weights=scale_slots(node))


@rule(*OTHER_ARITHMETIC)
def other_arithmetic(node: Node) -> Cost:
    """One operation an output element for each operand after the first."""
    out = many(node)
    operands = max(len(node.inputs) - 1, 1)
    return Cost([out], "elementwise", other_ops=product(out.shape or ()) * operands)


@rule(*COMPARISONS)
def comparison(node: Node) -> Cost:
    """One operation an output element, written as booleans."""
    out = many(node, BOOL)
    return Cost([out], "elementwise", other_ops=product(out.shape or ()))


@rule("SwiGLU")
def swiglu(node: Node) -> Cost:
    """Swish of the gate, times the value: two operations an element."""
    return _per_element(node, "activation", 2)


@rule("Where")
def where(node: Node) -> Cost:
    """Choose one of two elements."""
    out = many(node, node.input(1).dtype)
    return Cost([out], "elementwise", other_ops=product(out.shape or ()))


@rule("FusedElementwise", "AddMul", domain=MICROSOFT)
def fused_elementwise(node: Node) -> Cost:
    """Combine element-wise operators: one operation for each further operand."""
    return other_arithmetic(node)


@rule("Dropout")
def dropout(node: Node) -> Cost:
    """At inference nothing but another name; the mask is never read."""
    x = node.input(0)
    outputs = [like(x), like(x, BOOL)][: len(node.outputs)]
    return Cost(outputs, "view", view=True, data=(0,))


@rule("BitmaskDropout", domain=MICROSOFT)
def bitmask_dropout(node: Node) -> Cost:
    """Dropout as onnxruntime's training writes it."""
    x = node.input(0)
    outputs = [like(x), like(x, BOOL), Tensor(UINT8, None)][: len(node.outputs)]
    return Cost(outputs, "view", view=True, data=(0,))


@rule("Cast", "CastLike", "BitCast")
def cast(node: Node) -> Cost:
    """Rewrite every element in another type; no arithmetic."""
    dtype = node.input(1).dtype if node.op_type == "CastLike" else node.integer("to", 1)
    reads: dict[int, Dim] = {1: 0} if node.op_type == "CastLike" else {}
    return Cost([like(node.input(0), dtype)], "movement", reads=reads, data=(0,))
