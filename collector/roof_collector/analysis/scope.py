"""The names of a graph, and where in the model the walk is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto

from roof_agent.errors import UsageError
from roof_collector.analysis.node import InvalidNodeError
from roof_collector.analysis.tensor import Root, Tensor
from roof_collector.analysis.values import tensor_of


class Scope(dict[str, Tensor]):
    """Tensors by name. What isn't here is looked for among the stored constants, then outside.

    A stored constant becomes a tensor when something reads it: one that nothing reads costs nothing.
    """

    def __init__(self, parent: Scope | None = None, graph: GraphProto | None = None, path: str = "") -> None:
        super().__init__()
        self._parent = parent
        self._path = path
        self._stored: dict[str, TensorProto] = {}
        if graph is not None:
            self._stored = {proto.name: proto for proto in graph.initializer}
            for sparse in graph.sparse_initializer:
                name = sparse.values.name
                tensor = Tensor(sparse.values.data_type, tuple(sparse.dims), name=name)
                self[name] = self._constant(tensor)

    def find(self, name: str) -> Tensor | None:
        """Return a tensor, None where the name is unknown."""
        found = self.get(name)
        if found is not None:
            return found
        proto = self._stored.get(name)
        if proto is not None:
            try:
                found = self[name] = self._constant(tensor_of(proto))
            except InvalidNodeError as error:
                raise UsageError(str(error)) from error
            return found
        return None if self._parent is None else self._parent.find(name)

    def knows(self, name: str) -> bool:
        """Tell whether a name means something."""
        return name in self or name in self._stored or (self._parent is not None and self._parent.knows(name))

    def _constant(self, tensor: Tensor) -> Tensor:
        tensor.constant = True
        tensor.roots = (Root((self._path, tensor.name), tensor.elements or 0),)
        return tensor


@dataclass(frozen=True)
class Place:
    """Where in the model the walk is: a path for names and keys, how deep, in whose body.

    `index` is the place of the main graph's node that all this belongs to, None in the main graph.
    """

    path: str = ""
    depth: int = 0
    function: FunctionProto | None = None
    attributes: Mapping[str, AttributeProto] | None = None
    index: int | None = None

    @property
    def key(self) -> str:
        """What tells constants made here from others: those of a function are the same at every call."""
        return f"{self.function.domain}:{self.function.name}" if self.function else self.path


def domain_of(domain: str) -> str:
    """Return a domain as the rules are registered under."""
    return "" if domain == "ai.onnx" else domain
