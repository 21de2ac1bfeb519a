"""Shape arithmetic, folded: what a node's result is where its inputs' values are known.

Values are numpy arrays; where a dim is open they have dtype object and hold polynomials. Whatever
can't be said of a polynomial (is it greater?) raises UnknownValueError, and the result stays unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from roof_collector.analysis.node import Node, array
from roof_collector.analysis.symbols import Poly, floor_divide
from roof_collector.analysis.tensor import MAX_FOLDED_ELEMENTS, NUMPY_TYPES

# Polynomials are slow to work with one by one; no shape has as many.
MAX_OPEN_VALUES = 256

Array = npt.NDArray[Any]
Fold = Callable[[Node, list[Array | None]], list[Array]]
FOLDS: dict[str, Fold] = {}


class UnknownValueError(Exception):
    """The values aren't known, or can't be said of open dims."""


def fold(node: Node) -> list[Array] | None:
    """Return the values of a node's outputs, None where they aren't known."""
    function = FOLDS.get(node.op_type)
    if function is None or node.domain not in {"", "ai.onnx"}:
        return None
    values: list[Array | None] = [None if tensor is None else tensor.value for tensor in node.inputs]
    if node.op_type not in {"Shape", "Size"} and (
        not values
        or any(
            value is None and tensor is not None for value, tensor in zip(values, node.inputs, strict=True)
        )
    ):
        return None
    if any(value is not None and value.dtype == object and value.size > MAX_OPEN_VALUES for value in values):
        return None
    try:
        with np.errstate(all="ignore"):
            results = [np.asarray(result) for result in function(node, values)]
    except (UnknownValueError, ArithmeticError):
        return None
    return results if all(result.size <= MAX_FOLDED_ELEMENTS for result in results) else None


def _folds(*op_types: str) -> Callable[[Fold], Fold]:
    def register(function: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(op_types, function))
        return function

    return register


def _known(value: Array | None) -> Array:
    if value is None:
        raise UnknownValueError
    return value


def _integers(value: Array | None) -> list[int]:
    """Return values that have to be plain integers."""
    found = _known(value).reshape(-1).tolist()
    if any(isinstance(element, Poly) for element in found):
        raise UnknownValueError
    return [int(element) for element in found]


def _tidy(value: Any) -> Array:
    """Return an object array as integers where no polynomial is left in it."""
    result = np.asarray(value)
    if result.dtype == object and not any(isinstance(element, Poly) for element in result.reshape(-1)):
        return np.array(result.tolist()).reshape(result.shape)
    return result


def _symbolic(*values: Array) -> bool:
    return any(value.dtype == object for value in values)


def _whole(value: Any) -> Any:
    """Return a number of a float computation as an integer, which it has to be beside a polynomial."""
    if isinstance(value, float):
        if value != int(value):
            raise UnknownValueError
        return int(value)
    return value


def _elementwise(function: Callable[..., Any], *values: Array) -> Array:
    def guarded(*elements: Any) -> Any:
        return function(*(_whole(element) for element in elements))

    return _tidy(np.frompyfunc(guarded, len(values), 1)(*values))


def _exact_ratio(left: Any, right: Any) -> Any:
    quotient = floor_divide(left, right)
    if quotient * right != left:
        raise UnknownValueError
    return quotient


def _compared(function: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    def compare(left: Any, right: Any) -> bool:
        difference = left - right
        if isinstance(difference, Poly):
            raise UnknownValueError
        return function(int(difference), 0)

    return compare


def _chosen(function: Callable[[int, int], bool]) -> Callable[[Any, Any], Any]:
    compare = _compared(function)
    return lambda left, right: left if compare(left, right) else right


@_folds("Shape")
def _shape(node: Node, _: list[Array | None]) -> list[Array]:
    shape = node.input(0).shape
    if shape is None:
        raise UnknownValueError
    return [array(shape[node.integer("start", 0) : node.integer("end", len(shape))])]


@_folds("Size")
def _size(node: Node, _: list[Array | None]) -> list[Array]:
    elements = node.input(0).elements
    if elements is None:
        raise UnknownValueError
    return [array([elements]).reshape(())]


@_folds("Identity")
def _identity(_: Node, values: list[Array | None]) -> list[Array]:
    return [_known(values[0])]


_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Add": (np.add, operator.add),
    "Sub": (np.subtract, operator.sub),
    "Mul": (np.multiply, operator.mul),
    "Min": (np.minimum, _chosen(operator.le)),
    "Max": (np.maximum, _chosen(operator.ge)),
    "Equal": (np.equal, _compared(operator.eq)),
    "Less": (np.less, _compared(operator.lt)),
    "Greater": (np.greater, _compared(operator.gt)),
    "LessOrEqual": (np.less_equal, _compared(operator.le)),
    "GreaterOrEqual": (np.greater_equal, _compared(operator.ge)),
}


@_folds(*_BINARY)
def _binary(node: Node, values: list[Array | None]) -> list[Array]:
    numeric, symbolic = _BINARY[node.op_type]
    result = _known(values[0])
    for value in values[1:]:
        other = _known(value)
        result = _elementwise(symbolic, result, other) if _symbolic(result, other) else numeric(result, other)
    return [result]


@_folds("Div")
def _div(node: Node, values: list[Array | None]) -> list[Array]:
    left, right = _known(values[0]), _known(values[1])
    integers = NUMPY_TYPES.get(node.input(0).dtype, np.float32) not in {np.float32, np.float64, np.float16}
    if _symbolic(left, right):
        return [_elementwise(floor_divide if integers else _exact_ratio, left, right)]
    if not right.all():
        raise UnknownValueError
    # Integers divide towards zero.
    if integers:
        quotient = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)
        return [quotient.astype(left.dtype)]
    return [np.divide(left, right)]


@_folds("Mod")
def _mod(node: Node, values: list[Array | None]) -> list[Array]:
    left, right = _known(values[0]), _known(values[1])
    if _symbolic(left, right):
        return [_elementwise(operator.mod, left, right)]
    if not right.all():
        raise UnknownValueError
    return [(np.fmod if node.integer("fmod", 0) else np.mod)(left, right)]


_BOOLEAN = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


@_folds(*_BOOLEAN)
def _boolean(node: Node, values: list[Array | None]) -> list[Array]:
    return [_BOOLEAN[node.op_type](_known(values[0]), _known(values[1]))]


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Log": np.log,
    "Sign": np.sign,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
}


@_folds(*_UNARY)
def _unary(node: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    if _symbolic(value):
        raise UnknownValueError
    return [_UNARY[node.op_type](value)]


@_folds("Neg")
def _neg(_: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    return [_elementwise(operator.neg, value) if _symbolic(value) else -value]


@_folds("Pow")
def _pow(_: Node, values: list[Array | None]) -> list[Array]:
    left, right = _known(values[0]), _known(values[1])
    if _symbolic(left, right):
        raise UnknownValueError
    return [np.power(left.astype(np.float64), right).astype(left.dtype)]


_ROUNDING: dict[str, Callable[[Array], Array]] = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round}


@_folds(*_ROUNDING)
def _rounding(node: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    return [value if _symbolic(value) else _ROUNDING[node.op_type](value)]


@_folds("Cast")
def _cast(node: Node, values: list[Array | None]) -> list[Array]:
    value, dtype = _known(values[0]), NUMPY_TYPES.get(node.integer("to", 1))
    if dtype is None:
        raise UnknownValueError
    if _symbolic(value):
        if dtype is np.bool_:
            raise UnknownValueError
        return [value]
    return [value.astype(dtype)]


@_folds("Reshape")
def _reshape(node: Node, values: list[Array | None]) -> list[Array]:
    value, dims = _known(values[0]), _integers(values[1])
    if not node.integer("allowzero", 0):
        dims = [value.shape[axis] if dim == 0 else dim for axis, dim in enumerate(dims)]
    return [value.reshape(dims)]


@_folds("Flatten")
def _flatten(node: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    axis = node.integer("axis", 1)
    axis = axis + value.ndim if axis < 0 else axis
    return [value.reshape(math.prod(value.shape[:axis]), -1)]


@_folds("Squeeze")
def _squeeze(node: Node, values: list[Array | None]) -> list[Array]:
    value, axes = _known(values[0]), node.values(1, "axes")
    return [np.squeeze(value, None if axes is None else tuple(int(str(axis)) for axis in axes))]


@_folds("Unsqueeze")
def _unsqueeze(node: Node, values: list[Array | None]) -> list[Array]:
    axes = node.values(1, "axes") or []
    return [np.expand_dims(_known(values[0]), tuple(int(str(axis)) for axis in axes))]


@_folds("Concat")
def _concat(node: Node, values: list[Array | None]) -> list[Array]:
    return [np.concatenate([_known(value) for value in values], node.integer("axis", 0))]


@_folds("Gather")
def _gather(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = _known(values[0]), _known(values[1])
    if _symbolic(indices):
        raise UnknownValueError
    return [np.asarray(np.take(data, indices.astype(np.int64), node.integer("axis", 0)))]


@_folds("GatherElements")
def _gather_elements(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = _known(values[0]), _known(values[1])
    if _symbolic(indices):
        raise UnknownValueError
    axis = node.integer("axis", 0)
    return [np.take_along_axis(data, np.where(indices < 0, indices + data.shape[axis], indices), axis)]


@_folds("GatherND")
def _gather_nd(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = _known(values[0]), _known(values[1])
    if node.integer("batch_dims", 0) or _symbolic(indices):
        raise UnknownValueError
    return [np.asarray(data[tuple(np.moveaxis(indices, -1, 0))])]


@_folds("ScatterND")
def _scatter_nd(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices, updates = _known(values[0]), _known(values[1]), _known(values[2])
    if _symbolic(indices) or node.text("reduction", "none") != "none":
        raise UnknownValueError
    result = data.astype(object) if _symbolic(data, updates) else data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return [_tidy(result)]


@_folds("Slice")
def _slice(node: Node, values: list[Array | None]) -> list[Array]:
    data = _known(values[0])
    starts, ends = node.values(1, "starts"), node.values(2, "ends")
    axes = node.values(3, "axes") or list(range(len(starts or ())))
    steps = node.values(4) or [1] * len(axes)
    if starts is None or ends is None:
        raise UnknownValueError
    cuts = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if any(isinstance(bound, Poly) for bound in (axis, start, end, step)):
            raise UnknownValueError
        length = data.shape[int(str(axis))]
        begin, stop, stride = int(str(start)), int(str(end)), int(str(step))
        cuts[int(str(axis))] = slice(begin, None if stride < 0 and stop < -length else stop, stride)
    return [data[tuple(cuts)]]


@_folds("Split")
def _split(node: Node, values: list[Array | None]) -> list[Array]:
    data, axis = _known(values[0]), node.integer("axis", 0)
    parts = node.values(1, "split")
    count = len(node.outputs)
    size = -(-data.shape[axis] // count)
    sizes = [int(str(part)) for part in parts] if parts else [size] * count
    return list(np.split(data, np.cumsum(sizes)[: count - 1], axis))


@_folds("Transpose")
def _transpose(node: Node, values: list[Array | None]) -> list[Array]:
    return [np.transpose(_known(values[0]), node.integers("perm"))]


@_folds("Where")
def _where(_: Node, values: list[Array | None]) -> list[Array]:
    condition, left, right = (_known(value) for value in values)
    if _symbolic(condition):
        raise UnknownValueError
    if _symbolic(left, right):
        left, right = left.astype(object), right.astype(object)
    return [_tidy(np.where(condition, left, right))]


@_folds("Expand")
def _expand(_: Node, values: list[Array | None]) -> list[Array]:
    data, dims = _known(values[0]), _integers(values[1])
    shape = np.broadcast_shapes(data.shape, tuple(dims))
    if math.prod(shape) > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.broadcast_to(data, shape)]


@_folds("Tile")
def _tile(_: Node, values: list[Array | None]) -> list[Array]:
    data, repeats = _known(values[0]), _integers(values[1])
    if data.size * math.prod(repeats) > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.tile(data, repeats)]


@_folds("Range")
def _range(_: Node, values: list[Array | None]) -> list[Array]:
    bounds = [_known(value).reshape(-1) for value in values]
    if _symbolic(*bounds):
        raise UnknownValueError
    start, limit, delta = (bound.tolist()[0] for bound in bounds)
    if not delta or (limit - start) / delta > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.arange(start, limit, delta).astype(bounds[0].dtype)]


@_folds("NonZero")
def _non_zero(_: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    if _symbolic(value):
        raise UnknownValueError
    return [np.array(np.nonzero(value), np.int64)]


@_folds("CumSum")
def _cumsum(node: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    if _symbolic(value) or node.integer("exclusive", 0) or node.integer("reverse", 0):
        raise UnknownValueError
    return [np.cumsum(value, _integers(values[1])[0], dtype=value.dtype)]


@_folds("Trilu")
def _trilu(node: Node, values: list[Array | None]) -> list[Array]:
    offset = _integers(values[1])[0] if len(values) > 1 and values[1] is not None else 0
    return [(np.triu if node.integer("upper", 1) else np.tril)(_known(values[0]), offset)]


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceMean": np.mean,
}


@_folds(*_REDUCTIONS)
def _reduce(node: Node, values: list[Array | None]) -> list[Array]:
    value, axes = _known(values[0]), node.values(1, "axes")
    if not axes and node.integer("noop_with_empty_axes", 0):
        return [value]
    if _symbolic(value) and node.op_type not in {"ReduceSum", "ReduceProd"}:
        raise UnknownValueError
    result = _REDUCTIONS[node.op_type](
        value,
        axis=tuple(int(str(axis)) for axis in axes) if axes else None,
        keepdims=bool(node.integer("keepdims", 1)),
    )
    if _symbolic(value):
        return [_tidy(np.asarray(result, object))]
    return [np.asarray(result, value.dtype)]


@_folds("ArgMax", "ArgMin")
def _arg(node: Node, values: list[Array | None]) -> list[Array]:
    value = _known(values[0])
    if _symbolic(value):
        raise UnknownValueError
    function = np.argmax if node.op_type == "ArgMax" else np.argmin
    axis = node.integer("axis", 0)
    return [np.asarray(function(value, axis, keepdims=bool(node.integer("keepdims", 1))))]
