"""Values for the tensors of a weightless graph: seeded, and such that they cost the time that weights do.

No zero that a sparse kernel could use, no denormal number, nothing that grows to infinity through the
layers: each of these changes how long a network takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from roof_agent.models.kept import Scope
from roof_agent.models.roles import BIAS, GAIN, SCALE, SHIFT, VARIANCE, ZERO_POINT, fan_in, role_of
from roof_agent.models.tensors import BITS, Use, elements

# Values of a large tensor repeat after this many: its time doesn't hang on them, a small board's does.
_PERIOD = 1 << 20
# Smallest magnitude by the scale: far from zero and from denormal numbers, and too few to be noticed.
_SMALLEST = 1.37e-3
# Of float16; every other type reaches further down.
_SMALLEST_NORMAL = 6.2e-5
# A quantised step; products of two 8-bit numbers stay near one.
_STEP = 1 / 64
# 8-bit weights use seven bits, as runtimes advise where pairs of products saturate.
_INT8_RANGE = 64
_PASSING = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear", "Reshape", "Transpose"})
# Inputs on which an operator is defined for positive numbers alone, or divides.
_POSITIVE = {("Div", 1), ("Log", 0), ("Mul", 0), ("Mul", 1), ("Pow", 0), ("Reciprocal", 0), ("Sqrt", 0)}
_CHUNK_BYTES = 4 << 20


def chunks(tensor: TensorProto, name: str, scope: Scope, generator: np.random.Generator) -> Iterator[bytes]:
    """Yield the raw values of a tensor that nodes of `scope` read as `name`, some MiB at a time."""
    count = elements(tensor)
    width = BITS[tensor.data_type]
    # A period that ends on a whole byte for every width of element.
    period = min(count, _PERIOD)
    block = _block(tensor, period, _meant(name, scope), generator)
    size = (count * width + 7) // 8
    if size <= len(block):
        yield block[:size]
        return
    piece = block * max(_CHUNK_BYTES // len(block), 1)
    for begin in range(0, size, len(piece)):
        yield piece[: size - begin]


def _meant(name: str, scope: Scope) -> Use | None:
    """Return the slot that a tensor is meant for, looking through what only passes it on."""
    for _ in range(8):
        own = scope.uses.get(name)
        if not own:
            return None
        telling = next((use for use in own if role_of(use)), own[0])
        if telling.node.op_type not in _PASSING or telling.slot != 0 or not telling.node.output:
            return telling
        name = telling.node.output[0]
    return None


def _block(tensor: TensorProto, count: int, use: Use | None, generator: np.random.Generator) -> bytes:
    kind, dims = tensor.data_type, tuple(tensor.dims)
    role = role_of(use) if use else ""
    if kind == TensorProto.BOOL:
        return b"\1" * count
    if BITS[kind] < 8 or helper.tensor_dtype_to_np_dtype(kind).kind in "iu":
        return _integers(kind, count, role, use, generator)
    values = _floats(count, dims, role, use, generator)
    if kind == TensorProto.BFLOAT16:
        # The upper half of a float32.
        return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return values.astype(helper.tensor_dtype_to_np_dtype(kind)).tobytes()


def _integers(kind: int, count: int, role: str, use: Use | None, generator: np.random.Generator) -> bytes:
    signed = not TensorProto.DataType.Name(kind).startswith(("U", "FLOAT"))
    bits = BITS[kind]
    if bits < 8:
        # Two or four to a byte; every bit pattern is a number.
        if role == ZERO_POINT:
            return (b"\0" if signed else {4: b"\x88", 2: b"\xaa"}[bits]) * ((count * bits + 7) // 8)
        return generator.integers(1, 256, (count * bits + 7) // 8, np.uint8).tobytes()
    numpy_type = helper.tensor_dtype_to_np_dtype(kind)
    if role == ZERO_POINT:
        return np.full(count, 0 if signed or bits > 8 else 128, numpy_type).tobytes()
    if bits > 8 and role != BIAS and (use is None or fan_in(use, (1, 1)) == 0):
        # Indices, in all likelihood: zero is valid in every table.
        return np.zeros(count, numpy_type).tobytes()
    values = generator.integers(1, _INT8_RANGE, count)
    if signed:
        values *= generator.choice(np.array([-1, 1]), count)
    else:
        values += 128 - _INT8_RANGE // 2
    return values.astype(numpy_type).tobytes()


def _floats(
    count: int, dims: Sequence[int], role: str, use: Use | None, generator: np.random.Generator
) -> NDArray[np.float32]:
    """Return `count` values of a tensor of `dims`; where they go decides their scale."""
    slot = (use.node.op_type, use.slot) if use else ("", 0)
    if role == SCALE:
        return np.full(count, _STEP, np.float32)
    if slot == ("Clip", 1):
        return np.full(count, -3.017, np.float32)
    if slot == ("Clip", 2):
        return np.full(count, 6.017, np.float32)
    if role in {GAIN, VARIANCE} or slot in _POSITIVE:
        return generator.uniform(0.81, 1.19, count).astype(np.float32)
    if slot == ("PRelu", 1):
        return generator.uniform(0.11, 0.29, count).astype(np.float32)
    scale = 0.1
    summed = fan_in(use, tuple(dims)) if use and role not in {BIAS, SHIFT} else 0
    if summed:
        # He et al., "Delving deep into rectifiers", ICCV 2015: the variance 2 / fan-in keeps the scale of
        # activations from layer to layer.
        scale = math.sqrt(2 / summed)
    values = scale * generator.standard_normal(count, np.float32)
    smallest = np.float32(max(_SMALLEST * scale, _SMALLEST_NORMAL))
    result: NDArray[Any] = np.where(np.abs(values) < smallest, smallest, values)
    return result.astype(np.float32)
