"""What a counting rule gets (a `Node`) and what it answers (a `Cost`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, GraphProto, NodeProto, helper

from roof_collector.analysis.symbols import Dim, Poly
from roof_collector.analysis.tensor import Shape, Tensor


class InvalidNodeError(Exception):
    """A node contradicts its operator's definition; the message says how."""


class OpenShapeError(Exception):
    """A count needs a shape that the graph leaves open, rank and all; the message says whose."""


@dataclass(slots=True)
class Cost:
    """What one node costs and writes.

    `outputs` are the tensors it writes, in order. `weights` are the slots whose constants count as
    params. `reads` corrects the bytes of a slot: the number of elements really read of it, 0 for one
    that is only an argument. A view moves no bytes at all. `other_ops` are the operations that are
    no multiply-accumulate. `data` are the slots that an all-constant result is made of (all, where
    None). `note` is what the row has to say about its own count, `uncounted` why it has none. A node
    with graphs inside has `branches`, each counted once, and the `body` whose bytes it moves so often.
    """

    outputs: Sequence[Tensor]
    kind: str = "other"
    macc: Dim = 0
    other_ops: Dim = 0
    weights: Sequence[int] = ()
    reads: Mapping[int, Dim] = field(default_factory=dict)
    view: bool = False
    data: Sequence[int] | None = None
    params: Dim | None = None
    note: str = ""
    uncounted: str = ""
    branches: tuple[Branch, ...] = ()
    body: tuple[Branch, Dim] | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of an If, or the body of a loop, counted once."""

    name: str
    macc: Dim
    other_ops: Dim
    input_bytes: Dim
    param_bytes: Dim
    output_bytes: Dim
    roots: frozenset[Any]
    uncounted: int


class Subgraphs(Protocol):
    """Counts the graphs inside a node; the engine's part that control flow rules call back."""

    def count(
        self, name: str, graph: GraphProto, inputs: Sequence[Tensor | None]
    ) -> tuple[Branch, list[Tensor]]:
        """Return a graph's cost and its outputs, its formal inputs being `inputs`."""


class Node:
    """One node with its inputs' tensors; absent optional inputs are None."""

    __slots__ = (
        *("_caller", "_named", "_proto"),
        *("domain", "inputs", "name", "op_type", "outputs", "subgraphs", "version"),
    )

    def __init__(
        self,
        proto: NodeProto,
        inputs: list[Tensor | None],
        subgraphs: Subgraphs,
        attributes: Mapping[str, AttributeProto] | None = None,
    ) -> None:
        self.op_type: str = proto.op_type
        self.domain: str = proto.domain
        self.name: str = proto.name
        self.outputs: list[str] = list(proto.output)
        self.inputs = inputs
        # Of the operator set of its domain; the engine sets it.
        self.version = 1
        self.subgraphs = subgraphs
        self._proto = proto
        self._caller = attributes
        self._named: dict[str, AttributeProto] | None = None

    @property
    def _attributes(self) -> dict[str, AttributeProto]:
        # Most nodes are never asked for one.
        if self._named is None:
            self._named = {attribute.name: attribute for attribute in self._proto.attribute}
            if self._caller is not None:
                self._named = resolved(self._named, self._caller)
        return self._named

    def has(self, name: str) -> bool:
        """Tell whether an attribute is there."""
        return name in self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value, of whatever type."""
        found = self._attributes.get(name)
        return default if found is None else helper.get_attribute_value(found)

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        found = self._attributes.get(name)
        return default if found is None else int(found.i)

    def integers(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of integers, None where it is absent."""
        found = self._attributes.get(name)
        return None if found is None else list(found.ints)

    def text(self, name: str, default: str = "") -> str:
        """Return a string attribute."""
        found = self._attributes.get(name)
        return default if found is None else found.s.decode("utf-8", "replace")

    def graph(self, name: str) -> GraphProto:
        """Return a graph attribute."""
        found = self._attributes.get(name)
        if found is None:
            raise InvalidNodeError(f"lacks its {name}")
        return found.g

    def optional(self, slot: int) -> Tensor | None:
        """Return an input that may be absent."""
        return self.inputs[slot] if slot < len(self.inputs) else None

    def input(self, slot: int) -> Tensor:
        """Return an input that must be there."""
        found = self.optional(slot)
        if found is None:
            raise InvalidNodeError(f"lacks its input {slot}")
        return found

    def shape(self, slot: int, rank: int | None = None) -> Shape:
        """Return the dims of an input; of that rank where one is given."""
        tensor = self.input(slot)
        if tensor.shape is None:
            raise OpenShapeError(f"the shape of {tensor.name!r} is unknown")
        if rank is not None and len(tensor.shape) != rank:
            raise InvalidNodeError(f"input {slot} has {len(tensor.shape)} dims where it takes {rank}")
        return tensor.shape

    def elements(self, slot: int) -> Dim:
        """Return the number of elements of an input."""
        elements = self.input(slot).elements
        if elements is None:
            raise OpenShapeError(f"the shape of {self.input(slot).name!r} is unknown")
        return elements

    def values(self, slot: int, attribute: str = "") -> list[Dim] | None:
        """Return a known list of integers, from an input or (before it became one) an attribute."""
        if attribute and (found := self.integers(attribute)) is not None:
            return list(found)
        tensor = self.optional(slot)
        if tensor is None or tensor.value is None:
            return None
        return [as_dim(value) for value in tensor.value.reshape(-1).tolist()]

    def constants(self, slots: Sequence[int]) -> tuple[int, ...]:
        """Return those of the slots that a constant feeds."""
        return tuple(
            slot for slot in slots if (tensor := self.optional(slot)) is not None and tensor.constant
        )


def resolved(
    own: Mapping[str, AttributeProto], caller: Mapping[str, AttributeProto]
) -> dict[str, AttributeProto]:
    """Return a function body's attributes with its references replaced by what the caller gives."""
    found = {}
    for name, attribute in own.items():
        if not attribute.ref_attr_name:
            found[name] = attribute
        elif attribute.ref_attr_name in caller:
            given = AttributeProto()
            given.CopyFrom(caller[attribute.ref_attr_name])
            given.name = name
            found[name] = given
    return found


def as_dim(value: Any) -> Dim:
    """Return an element of a shape as a dim."""
    return value if isinstance(value, Poly) else int(value)


def array(dims: Sequence[Dim]) -> npt.NDArray[Any]:
    """Return dims as a tensor's values."""
    if all(isinstance(dim, int) for dim in dims):
        return np.array(dims, np.int64)
    values = np.empty(len(dims), object)
    values[:] = dims
    return values
