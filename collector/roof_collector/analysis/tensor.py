"""A tensor as the counting engine knows it: element type, dims, and its values where they decide shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from roof_collector.analysis.symbols import Dim, product

Shape = tuple[Dim, ...]
# Values are kept of tensors up to this size: enough for every shape, index list and small mask.
MAX_FOLDED_ELEMENTS = 1 << 16

FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8
# Element types that carry shapes, indices and masks, never weights.
INDEX_TYPES = frozenset({INT64, INT32, BOOL, TensorProto.STRING})

_WIDTHS = {
    "FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16,
    "INT8": 8, "UINT8": 8, "INT16": 16, "UINT16": 16, "INT32": 32, "UINT32": 32, "INT64": 64, "UINT64": 64,
    "BOOL": 8, "COMPLEX64": 64, "COMPLEX128": 128,
    "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8,
    "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2,
}  # fmt: skip
_NAMES = {
    "FLOAT": "float32", "DOUBLE": "float64", "COMPLEX64": "complex64", "COMPLEX128": "complex128",
}  # fmt: skip
# Keyed by the enum's number; a type that the installed onnx doesn't know yet is left out.
BITS: dict[int, int] = {
    TensorProto.DataType.Value(name): width
    for name, width in _WIDTHS.items()
    if name in TensorProto.DataType.keys()  # noqa: SIM118 - an enum wrapper, not a dict
}
TYPE_NAMES: dict[int, str] = {
    number: _NAMES.get(name, name.lower()) for name, number in TensorProto.DataType.items()
}
# numpy has these natively; the values of any other type never decide a shape.
NUMPY_TYPES: dict[int, type[np.generic]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT16: np.int16,
    TensorProto.UINT16: np.uint16,
    TensorProto.INT32: np.int32,
    TensorProto.UINT32: np.uint32,
    TensorProto.INT64: np.int64,
    TensorProto.UINT64: np.uint64,
    TensorProto.BOOL: np.bool_,
}


class Root(NamedTuple):
    """A stored constant that parameters are traced back to; `key` tells it from every other."""

    key: object
    elements: Dim


class Tensor:
    """One tensor. `shape` is None where not even the rank is known.

    `value` holds the elements where they are known and few: a numpy array, of dtype object where
    some of them are polynomials; `source` gives a stored tensor's when they are first asked for.
    `constant` means made of constants alone; `roots` are these. `stored` is the constant behind a
    DequantizeLinear, at its stored type; `items` are the tensors of a sequence.
    """

    __slots__ = (
        *("_elements", "_measured", "_nbytes", "_source", "_value"),
        *("constant", "dtype", "items", "name", "roots", "shape", "stored"),
    )

    def __init__(
        self,
        dtype: int,
        shape: Shape | None,
        value: npt.NDArray[Any] | None = None,
        name: str = "",
        *,
        constant: bool = False,
        items: tuple[Tensor, ...] | None = None,
        source: Callable[[], npt.NDArray[Any] | None] | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.name = name
        self.constant = constant
        self.items = items
        self.roots: tuple[Root, ...] = ()
        self.stored: Tensor | None = None
        self._value = value
        self._source = source
        self._measured: Shape | None = None
        self._elements: Dim | None = None
        self._nbytes: Dim | None = None

    @property
    def value(self) -> npt.NDArray[Any] | None:
        """The known elements, None where they aren't known or too many."""
        if self._source is not None:
            self._value, self._source = self._source(), None
        return self._value

    @value.setter
    def value(self, value: npt.NDArray[Any] | None) -> None:
        self._value, self._source = value, None

    @property
    def elements(self) -> Dim | None:
        """Number of elements, None where the rank is unknown."""
        if self._measured is not self.shape:
            self._measure()
        return self._elements

    @property
    def nbytes(self) -> Dim | None:
        """Bytes, packed (two int4 a byte, rounded up); None where the rank is unknown."""
        if self._measured is not self.shape:
            self._measure()
        return self._nbytes

    def _measure(self) -> None:
        """Size the tensor once for each shape that it takes."""
        self._measured = self.shape
        self._elements = None if self.shape is None else product(self.shape)
        self._nbytes = None if self._elements is None else packed_bytes(self._elements, self.dtype)


def packed_bytes(elements: Dim, dtype: int) -> Dim:
    """Return the bytes of so many elements; a string counts as its 0 fixed bytes."""
    bits = BITS.get(dtype, 0)
    if bits % 8 == 0:
        return elements * (bits // 8)
    return (elements * bits + 7) // 8


def dims_text(shape: Shape | None) -> list[int | str] | None:
    """Return dims as JSON takes them: open ones by name."""
    return None if shape is None else [dim if isinstance(dim, int) else str(dim) for dim in shape]
