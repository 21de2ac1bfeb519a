"""Stored tensors as the engine takes them: dims and type always, values only where few and present."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from roof_collector.analysis.node import InvalidNodeError
from roof_collector.analysis.tensor import BITS, MAX_FOLDED_ELEMENTS, NUMPY_TYPES, Tensor

# No tensor of a real network comes near; a dim above it is a broken or hostile file.
MAX_DIM = 1 << 40


def tensor_of(proto: TensorProto) -> Tensor:
    """Return a stored tensor. One with no data (a weightless model's) has dims and type alone."""
    dims = tuple(proto.dims)
    if any(not 0 <= dim <= MAX_DIM for dim in dims):
        raise InvalidNodeError(f"the tensor {proto.name!r} has the dims {list(dims)}")
    return Tensor(proto.data_type, dims, _values(proto, dims), proto.name)


def _values(proto: TensorProto, dims: tuple[int, ...]) -> npt.NDArray[Any] | None:
    if proto.data_location == TensorProto.EXTERNAL or proto.data_type not in NUMPY_TYPES:
        return None
    elements = math.prod(dims)
    if elements > MAX_FOLDED_ELEMENTS:
        return None
    dtype = NUMPY_TYPES[proto.data_type]
    if elements == 0:
        return np.zeros(dims, dtype)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) * 8 != elements * BITS[proto.data_type]:
            return None
        return np.frombuffer(proto.raw_data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(dims)
    if not (
        proto.int64_data or proto.int32_data or proto.float_data or proto.double_data or proto.uint64_data
    ):
        return None
    try:
        return np.asarray(numpy_helper.to_array(proto))
    except (ValueError, TypeError):
        return None
