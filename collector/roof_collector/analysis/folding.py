"""Shape arithmetic, folded: what a node's result is where its inputs' values are known.

Values are numpy arrays; where a dim is open they have dtype object and hold polynomials. Whatever
can't be said of a polynomial (is it greater?) raises UnknownValueError, and the result stays unknown.
"""

from __future__ import annotations

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


def folds(*op_types: str) -> Callable[[Fold], Fold]:
    """Register the decorated function for these operators."""

    def register(function: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(op_types, function))
        return function

    return register


def known(value: Array | None) -> Array:
    """Return values that have to be known."""
    if value is None:
        raise UnknownValueError
    return value


def integers(value: Array | None) -> list[int]:
    """Return values that have to be plain integers."""
    found = known(value).reshape(-1).tolist()
    if any(isinstance(element, Poly) for element in found):
        raise UnknownValueError
    return [int(element) for element in found]


def tidy(value: Any) -> Array:
    """Return an object array as integers where no polynomial is left in it."""
    result = np.asarray(value)
    if result.dtype == object and not any(isinstance(element, Poly) for element in result.reshape(-1)):
        return np.array(result.tolist()).reshape(result.shape)
    return result


def symbolic(*values: Array) -> bool:
    """Tell whether any of the values are polynomials."""
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

    return tidy(np.frompyfunc(guarded, len(values), 1)(*values))


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


@folds("Shape")
def _shape(node: Node, _: list[Array | None]) -> list[Array]:
    shape = node.input(0).shape
    if shape is None:
        raise UnknownValueError
    return [array(shape[node.integer("start", 0) : node.integer("end", len(shape))])]


@folds("Size")
def _size(node: Node, _: list[Array | None]) -> list[Array]:
    elements = node.input(0).elements
    if elements is None:
        raise UnknownValueError
    return [array([elements]).reshape(())]


@folds("Identity")
def _identity(_: Node, values: list[Array | None]) -> list[Array]:
    return [known(values[0])]


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


@folds(*_BINARY)
def _binary(node: Node, values: list[Array | None]) -> list[Array]:
    numeric, exact = _BINARY[node.op_type]
    result = known(values[0])
    for value in values[1:]:
        other = known(value)
        result = _elementwise(exact, result, other) if symbolic(result, other) else numeric(result, other)
    return [result]


@folds("Div")
def _div(node: Node, values: list[Array | None]) -> list[Array]:
    left, right = known(values[0]), known(values[1])
    whole = NUMPY_TYPES.get(node.input(0).dtype, np.float32) not in {np.float32, np.float64, np.float16}
    if symbolic(left, right):
        return [_elementwise(floor_divide if whole else _exact_ratio, left, right)]
    if not right.all():
        raise UnknownValueError
    # Integers divide towards zero.
    if whole:
        quotient = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)
        return [quotient.astype(left.dtype)]
    return [np.divide(left, right)]


@folds("Mod")
def _mod(node: Node, values: list[Array | None]) -> list[Array]:
    left, right = known(values[0]), known(values[1])
    if symbolic(left, right):
        return [_elementwise(operator.mod, left, right)]
    if not right.all():
        raise UnknownValueError
    return [(np.fmod if node.integer("fmod", 0) else np.mod)(left, right)]


_BOOLEAN = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


@folds(*_BOOLEAN)
def _boolean(node: Node, values: list[Array | None]) -> list[Array]:
    return [_BOOLEAN[node.op_type](known(values[0]), known(values[1]))]


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Log": np.log,
    "Sign": np.sign,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
}


@folds(*_UNARY)
def _unary(node: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    if symbolic(value):
        raise UnknownValueError
    return [_UNARY[node.op_type](value)]


@folds("Neg")
def _neg(_: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    return [_elementwise(operator.neg, value) if symbolic(value) else -value]


@folds("Pow")
def _pow(_: Node, values: list[Array | None]) -> list[Array]:
    left, right = known(values[0]), known(values[1])
    if symbolic(left, right):
        raise UnknownValueError
    return [np.power(left.astype(np.float64), right).astype(left.dtype)]


_ROUNDING: dict[str, Callable[[Array], Array]] = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round}


@folds(*_ROUNDING)
def _rounding(node: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    return [value if symbolic(value) else _ROUNDING[node.op_type](value)]


@folds("Cast")
def _cast(node: Node, values: list[Array | None]) -> list[Array]:
    value, dtype = known(values[0]), NUMPY_TYPES.get(node.integer("to", 1))
    if dtype is None:
        raise UnknownValueError
    if symbolic(value):
        if dtype is np.bool_:
            raise UnknownValueError
        return [value]
    return [value.astype(dtype)]


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceMean": np.mean,
}


@folds(*_REDUCTIONS)
def _reduce(node: Node, values: list[Array | None]) -> list[Array]:
    value, axes = known(values[0]), node.values(1, "axes")
    if not axes and node.integer("noop_with_empty_axes", 0):
        return [value]
    if symbolic(value) and node.op_type not in {"ReduceSum", "ReduceProd"}:
        raise UnknownValueError
    result = _REDUCTIONS[node.op_type](
        value,
        axis=tuple(int(str(axis)) for axis in axes) if axes else None,
        keepdims=bool(node.integer("keepdims", 1)),
    )
    if symbolic(value):
        return [tidy(np.asarray(result, object))]
    return [np.asarray(result, value.dtype)]


@folds("ArgMax", "ArgMin")
def _arg(node: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    if symbolic(value):
        raise UnknownValueError
    function = np.argmax if node.op_type == "ArgMax" else np.argmin
    axis = node.integer("axis", 0)
    return [np.asarray(function(value, axis, keepdims=bool(node.integer("keepdims", 1))))]
