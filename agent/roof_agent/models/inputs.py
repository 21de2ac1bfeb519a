"""Inputs for a network: of the types and dims that its graph states, with values that it can take.

An open dim is 1 unless it is bound. Token identifiers stay within their vocabulary, masks let
everything pass, lengths are the longest that the other inputs allow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from roof_agent.errors import MeasurementError
from roof_agent.models.tensors import elements, flattened, stored, uses

Feeds = dict[str, NDArray[Any]]

# What a graph passes an index through on its way into a table.
_PASSING = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Flatten"})
_MASK = re.compile(r"mask|valid", re.IGNORECASE)
_LENGTH = re.compile(r"len", re.IGNORECASE)
# Without a table that says more; no vocabulary is smaller.
_SMALLEST_VOCABULARY = 2


def bind(model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Set the named dims of the inputs, and forget those that an exporter left within.

    Raises MeasurementError for a name that no input has.
    """
    unused = set(dims)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                unused.discard(dim.dim_param)
                dim.dim_value = dims[dim.dim_param]
    if unused:
        known = sorted(
            {
                dim.dim_param
                for value in model.graph.input
                for dim in value.type.tensor_type.shape.dim
                if dim.dim_param
            }
        )
        has = f"they are called {', '.join(known)}" if known else "it has none with a name"
        raise MeasurementError(f"no open dim of an input is called {min(unused)!r}: {has}")


def make(model: onnx.ModelProto, files: Mapping[str, Path] | None = None, seed: int = 0) -> Feeds:
    """Return an array for each input of the graph; those of `files` are read from them.

    Raises MeasurementError for an input that can't be made, with its name.
    """
    generator = np.random.default_rng(seed)
    own = {tensor.name for tensor in model.graph.initializer}
    wanted = {value.name: value for value in model.graph.input if value.name not in own}
    given = {name: _read(name, path) for name, path in (files or {}).items()}
    for name in given:
        if name not in wanted:
            raise MeasurementError(f"it has no input {name!r}: they are {', '.join(wanted) or 'none'}")
    shapes = {name: _dims(value) for name, value in wanted.items()}
    longest = max((dim for dims in shapes.values() for dim in dims[1:]), default=1)
    tables = _vocabularies(model)
    return {
        name: given[name] if name in given else _feed(value, shapes[name], tables, longest, generator)
        for name, value in wanted.items()
    }


def _read(name: str, path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise MeasurementError(f"input {name!r}: {path} can't be read as .npy: {error}") from error
    return array


def _dims(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "none"
        raise MeasurementError(
            f"input {value.name!r} is of the kind {kind.removesuffix('_type')}; tensors can be made up"
        )
    dims = []
    for dim in value.type.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value == 0:
            raise MeasurementError(f"input {value.name!r} has a dim of 0: there is nothing to compute")
        # Some exporters write an open dim as -1.
        dims.append(dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else 1)
    return tuple(dims)


def _feed(
    value: onnx.ValueInfoProto,
    dims: tuple[int, ...],
    tables: Mapping[str, int],
    longest: int,
    generator: np.random.Generator,
) -> NDArray[Any]:
    kind = value.type.tensor_type.elem_type
    if kind == TensorProto.STRING:
        return np.full(dims, "a", np.dtype(object))
    try:
        element = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    except KeyError as error:
        raise MeasurementError(f"input {value.name!r} has the unknown element type {kind}") from error
    if kind == TensorProto.BOOL or _MASK.search(value.name):
        return np.ones(dims, element)
    if element.kind not in "iu":
        # As a picture or a sound is: between 0 and 1.
        return generator.uniform(0.01, 1, dims).astype(element)
    if value.name not in tables and _LENGTH.search(value.name):
        return np.full(dims, longest, element)
    low, high = (1, 127) if element.itemsize == 1 else (0, _SMALLEST_VOCABULARY)
    if value.name in tables:
        low, high = 0, tables[value.name]
    return generator.integers(low, high, dims).astype(element)


def _vocabularies(model: onnx.ModelProto) -> dict[str, int]:
    """Return for each input that indexes a stored table, directly or passed on, the table's length."""
    nodes = list(flattened(model.graph.node))
    used = uses(nodes)
    rows = {name: tensor.dims[0] for name, tensor, _ in stored(model) if tensor.dims and elements(tensor)}
    found: dict[str, int] = {}
    for value in model.graph.input:
        names, sizes = {value.name}, []
        for _ in range(len(nodes)):
            next_names: set[str] = set()
            for use in (use for name in names for use in used.get(name, ())):
                if use.node.op_type in {"Gather", "EmbedLayerNormalization"} and use.slot == 1:
                    sizes.append(rows.get(use.node.input[0], math.inf))
                elif use.node.op_type in _PASSING and use.slot == 0:
                    next_names.update(use.node.output)
            if not next_names:
                break
            names = next_names
        limit = min(sizes, default=math.inf)
        if limit < math.inf:
            found[value.name] = int(limit)
    return found
