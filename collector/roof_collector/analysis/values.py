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
    if dims and (min(dims) < 0 or max(dims) > MAX_DIM):
        raise InvalidNodeError(f"the tensor {proto.name!r} has the dims {list(dims)}")
    return Tensor(proto.data_type, dims, name=proto.name, source=lambda: _values(proto, dims))


def _values(proto: TensorProto, dims: tuple[int, ...]) -> npt.NDArray[Any] | None:
    dtype = NUMPY_TYPES.get(proto.data_type)
    elements = math.prod(dims)
    if dtype is None or proto.data_location == TensorProto.EXTERNAL or elements > MAX_FOLDED_ELEMENTS:
        return None
    if elements == 0:
        return np.zeros(dims, dtype)
    if not proto.HasField("raw_data"):
        return _listed(proto)
    if len(proto.raw_data) * 8 != elements * BITS[proto.data_type]:
        return None
    return np.frombuffer(proto.raw_data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(dims)


def _listed(proto: TensorProto) -> npt.NDArray[Any] | None:
    """Return values that are kept in a typed list, None where there is no data or too little."""
    lists = (proto.int64_data, proto.int32_data, proto.float_data, proto.double_data, proto.uint64_data)
    if not any(lists):
        return None
    try:
        return np.asarray(numpy_helper.to_array(proto))
    except (ValueError, TypeError):
        return None
