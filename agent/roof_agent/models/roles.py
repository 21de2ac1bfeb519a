"""What a stored tensor is for its operator, which decides what may stand in for it."""

from __future__ import annotations

import math

from onnx import NodeProto

from roof_agent.models.tensors import Use

GAIN, SHIFT, VARIANCE, SCALE, ZERO_POINT, BIAS = "gain", "shift", "variance", "scale", "zero_point", "bias"

_NORMALIZATION = {1: GAIN, 2: SHIFT}
_QUANTIZED = {1: SCALE, 2: ZERO_POINT, 4: SCALE, 5: ZERO_POINT, 6: SCALE, 7: ZERO_POINT}

# By operator: slots whose constants can't be any number.
_ROLES: dict[str, dict[int, str]] = {
    "BatchNormalization": {1: GAIN, 2: SHIFT, 3: SHIFT, 4: VARIANCE},
    "InstanceNormalization": _NORMALIZATION,
    "LayerNormalization": _NORMALIZATION,
    "GroupNormalization": _NORMALIZATION,
    "RMSNormalization": {1: GAIN},
    "SimplifiedLayerNormalization": {1: GAIN},
    "SkipLayerNormalization": {2: GAIN, 3: SHIFT, 4: BIAS},
    "SkipSimplifiedLayerNormalization": {2: GAIN, 3: BIAS},
    "QuantizeLinear": {1: SCALE, 2: ZERO_POINT},
    "DequantizeLinear": {1: SCALE, 2: ZERO_POINT},
    "QLinearConv": {**_QUANTIZED, 8: BIAS},
    "QLinearMatMul": _QUANTIZED,
    "QGemm": {1: SCALE, 2: ZERO_POINT, 4: SCALE, 5: ZERO_POINT, 6: BIAS, 7: SCALE, 8: ZERO_POINT},
    "QLinearAdd": _QUANTIZED,
    "QLinearMul": _QUANTIZED,
    "QLinearSigmoid": {1: SCALE, 2: ZERO_POINT, 3: SCALE, 4: ZERO_POINT},
    "QLinearLeakyRelu": {1: SCALE, 2: ZERO_POINT, 3: SCALE, 4: ZERO_POINT},
    "QLinearSoftmax": {1: SCALE, 2: ZERO_POINT, 3: SCALE, 4: ZERO_POINT},
    "QLinearAveragePool": {1: SCALE, 2: ZERO_POINT, 3: SCALE, 4: ZERO_POINT},
    "QLinearGlobalAveragePool": {1: SCALE, 2: ZERO_POINT, 3: SCALE, 4: ZERO_POINT},
    "ConvInteger": {2: ZERO_POINT, 3: ZERO_POINT},
    "MatMulInteger": {2: ZERO_POINT, 3: ZERO_POINT},
    "MatMulIntegerToFloat": {2: SCALE, 3: SCALE, 4: ZERO_POINT, 5: ZERO_POINT, 6: BIAS},
    "DynamicQuantizeMatMul": {2: SCALE, 3: ZERO_POINT, 4: BIAS},
    "MatMulNBits": {2: SCALE, 3: ZERO_POINT, 5: BIAS},
    "Conv": {2: BIAS},
    "FusedConv": {2: BIAS},
    "ConvTranspose": {2: BIAS},
    "Gemm": {2: BIAS},
    "FusedGemm": {2: BIAS},
    "LSTM": {3: BIAS},
    "GRU": {3: BIAS},
    "RNN": {3: BIAS},
}

# Operators whose constants are weights whatever their type.
COMPUTING = frozenset(
    {
        "Attention", "Conv", "ConvInteger", "ConvTranspose", "DequantizeLinear",
        "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "Einsum", "FusedConv", "FusedGemm",
        "FusedMatMul", "GRU", "Gemm", "LSTM", "MatMul", "MatMulInteger", "MatMulIntegerToFloat",
        "MatMulNBits", "PRelu", "QGemm", "QLinearAdd", "QLinearConv", "QLinearMatMul", "QLinearMul",
        "RNN",
    }
)  # fmt: skip

# A QLinearConcat has a scale and a zero point for its output, then three inputs for each part.
_CONCAT = {1: SCALE, 2: ZERO_POINT}


def role_of(use: Use) -> str:
    """Return the role of a slot, empty where any number will do."""
    operator = use.node.op_type
    if operator == "QLinearConcat":
        return {0: SCALE, 1: ZERO_POINT}.get(use.slot, _CONCAT.get((use.slot - 2) % 3, ""))
    return _ROLES.get(operator, {}).get(use.slot, "")


def fan_in(use: Use, dims: tuple[int, ...]) -> int:
    """Return how many products are summed into one output of the operator; 0 for what isn't a weight."""
    operator = use.node.op_type
    if not dims or operator not in COMPUTING or operator == "PRelu":
        return 0
    if operator in {"Conv", "ConvInteger", "FusedConv", "QLinearConv"}:
        return math.prod(dims[1:])
    if operator == "ConvTranspose":
        groups = _integer(use.node, "group", 1)
        return dims[0] // max(groups, 1) * max(math.prod(dims[2:]) // max(_strides(use.node), 1), 1)
    if operator in {"Gemm", "FusedGemm", "QGemm"}:
        across = _integer(use.node, "transB", 0) if use.slot else 1 - _integer(use.node, "transA", 0)
        return dims[-1] if across else dims[0]
    first = operator in {"LSTM", "GRU", "RNN"} or len(dims) == 1 or use.slot == 0
    return dims[-1] if first else dims[-2]


def _integer(node: NodeProto, name: str, default: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def _strides(node: NodeProto) -> int:
    return next((math.prod(attribute.ints) for attribute in node.attribute if attribute.name == "strides"), 1)
