"""What the user says of a model's inputs: bound dims, whole shapes, values, the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ValueInfoProto

from roof_agent.errors import UsageError
from roof_collector.analysis.node import array
from roof_collector.analysis.symbols import Dim, symbol
from roof_collector.analysis.tensor import INT32, INT64, MAX_FOLDED_ELEMENTS, NUMPY_TYPES, Shape, Tensor
from roof_collector.analysis.values import MAX_DIM


class Inputs:
    """Makes the graph's inputs of their declarations and of what the user binds."""

    def __init__(
        self,
        bind: Mapping[str, int],
        shapes: Mapping[str, Sequence[int | str]],
        values: Mapping[str, object],
        batch: int | None,
    ) -> None:
        self._bind, self._shapes, self._values, self._batch = dict(bind), dict(shapes), dict(values), batch
        self._used: set[str] = set()
        self._names: list[str] = []
        self._dims: list[str] = []
        for name, size in bind.items():
            if not 0 <= size <= MAX_DIM:
                raise UsageError(f"the dim {name} can't be {size}")
        if batch is not None and not 1 <= batch <= MAX_DIM:
            raise UsageError(f"a batch of {batch} isn't possible; it is 1 or more")

    def tensor(self, info: ValueInfoProto) -> Tensor:
        """Return a graph input with everything that was said of it."""
        name = info.name
        self._names.append(name)
        declared = self.declared(info, batch=self._batch)
        if name in self._shapes:
            self._used.add(name)
            declared.shape = self._given(name, self._shapes[name], declared.shape)
        if name in self._values:
            self._used.add(name)
            self._set_value(declared, self._values[name])
        elif declared.dtype in {INT64, INT32} and declared.shape in {(), (1,)}:
            # A scalar that nobody gave stays an open dim of the input's own name.
            declared.value = array([symbol(name)]).reshape([1] * len(declared.shape or ()))
        return declared

    def declared(self, info: ValueInfoProto, *, batch: int | None = None) -> Tensor:
        """Return a tensor as a value_info states it, named dims bound."""
        kind = info.type
        if kind.HasField("optional_type"):
            kind = kind.optional_type.elem_type
        if kind.HasField("sequence_type"):
            return Tensor(kind.sequence_type.elem_type.tensor_type.elem_type, None, name=info.name)
        tensor_type = kind.tensor_type
        if not tensor_type.HasField("shape"):
            return Tensor(tensor_type.elem_type, None, name=info.name)
        dims: list[Dim] = []
        for axis, dim in enumerate(tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value != -1:
                if not 0 <= dim.dim_value <= MAX_DIM:
                    raise UsageError(f"the input {info.name!r} has a dim of {dim.dim_value}")
                dims.append(dim.dim_value)
            else:
                known = dim.dim_param and dim.dim_param != "?"
                dims.append(self._named(dim.dim_param if known else f"{info.name}.{axis}"))
        if batch is not None and dims and (len(dims) > 1 or not isinstance(dims[0], int)):
            dims[0] = batch
        return Tensor(tensor_type.elem_type, tuple(dims), name=info.name)

    def check_all_used(self) -> None:
        """Refuse what names nothing: a misspelt dim would silently leave the real one open."""
        for name in (*self._shapes, *self._values):
            if name not in self._used:
                raise UsageError(
                    f"the model has no input {name!r}; it has {', '.join(self._names) or 'none'}"
                )
        for name in self._bind:
            if name not in self._used:
                known = ", ".join(dict.fromkeys(self._dims)) or "none"
                raise UsageError(f"no input has a dim {name!r}; the open dims are: {known}")

    def _named(self, name: str) -> Dim:
        self._dims.append(name)
        if name in self._bind:
            self._used.add(name)
            return self._bind[name]
        return symbol(name)

    def _given(self, name: str, dims: Sequence[int | str], declared: Shape | None) -> Shape:
        if declared is not None and len(dims) != len(declared):
            raise UsageError(f"the input {name!r} has {len(declared)} dims, not {len(dims)}")
        result: list[Dim] = []
        for axis, dim in enumerate(dims):
            if isinstance(dim, int) and dim != -1:
                if not 0 <= dim <= MAX_DIM:
                    raise UsageError(f"the input {name!r} can't have a dim of {dim}")
                result.append(dim)
            else:
                result.append(self._named(dim if isinstance(dim, str) and dim != "?" else f"{name}.{axis}"))
        return tuple(result)

    def _set_value(self, tensor: Tensor, given: object) -> None:
        dtype: Any = NUMPY_TYPES.get(tensor.dtype)
        if dtype is None:
            raise UsageError(f"the input {tensor.name!r} is of a type that takes no value")
        try:
            value = np.asarray(given).astype(dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"the input {tensor.name!r} can't be {given!r}: {error}") from error
        rank = 0 if tensor.shape is None else len(tensor.shape)
        if value.ndim == 0 and rank:
            value = value.reshape([1] * rank)
        if value.size > MAX_FOLDED_ELEMENTS or (tensor.shape is not None and value.ndim != rank):
            raise UsageError(f"the input {tensor.name!r} has {rank} dims; {given!r} doesn't fit")
        tensor.value, tensor.shape = value, tuple(value.shape)
