"""The walk over a graph: every node's inputs are known when its rule is asked.

Shapes are inferred on the way, from the inputs' dims (bound ones included) and folded values; what
an exporter left in value_info is never trusted where a rule can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from roof_agent.errors import UsageError
from roof_collector.analysis import rearranging  # noqa: F401 - registers what it folds
from roof_collector.analysis.folding import FOLDS, fold
from roof_collector.analysis.inputs import Inputs
from roof_collector.analysis.node import Branch, Cost, InvalidNodeError, Node, OpenShapeError
from roof_collector.analysis.order import in_order
from roof_collector.analysis.outputs import finish
from roof_collector.analysis.row import Row
from roof_collector.analysis.rules import RULES
from roof_collector.analysis.rules.registry import NCHWC, Rule
from roof_collector.analysis.scope import Place, Scope, domain_of
from roof_collector.analysis.symbols import Dim
from roof_collector.analysis.tensor import FLOAT, MAX_FOLDED_ELEMENTS, Root, Tensor

# Bounds on what a file can make the engine do; real networks stay far below.
MAX_NODES = 100_000
MAX_DEPTH = 64

# What a rule may stumble over in a node that contradicts itself.
_MALFORMED = (
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    ArithmeticError,
    AttributeError,
    UnicodeError,
)

FunctionKey = tuple[str, str, str]


class Engine:
    """Counts one model."""

    def __init__(self, model: ModelProto, inputs: Inputs) -> None:
        self._graph = model.graph
        self._inputs = inputs
        self._versions = {domain_of(opset.domain): opset.version for opset in model.opset_import}
        self._functions: dict[FunctionKey, FunctionProto] = {
            (domain_of(function.domain), function.name, function.overload): function
            for function in model.functions
        }
        self._nodes = 0
        self._padded: dict[str, int] = {}
        # How many graph outputs and inputs there are is asked by the caller after the walk.
        self.graph_inputs: list[Tensor] = []
        self.graph_outputs: list[Tensor] = []

    def run(self) -> list[Row]:
        """Return the rows of the main graph, in its order of execution."""
        scope = Scope(graph=self._graph)
        self._padded = _padded_channels(self._graph)
        for info in self._graph.input:
            if not scope.knows(info.name):
                scope[info.name] = self._inputs.tensor(info)
                self.graph_inputs.append(scope[info.name])
        self._inputs.check_all_used()
        rows = self._walk(self._graph.node, self._graph, scope, Place())
        self.graph_outputs = [
            found for info in self._graph.output if (found := scope.find(info.name)) is not None
        ]
        return rows

    def _walk(
        self, nodes: Sequence[NodeProto], graph: GraphProto | None, scope: Scope, place: Place
    ) -> list[Row]:
        self._nodes += len(nodes)
        if self._nodes > MAX_NODES:
            raise UsageError(f"the model has more than {MAX_NODES:,} nodes to count: it isn't analysed")
        if place.depth > MAX_DEPTH:
            raise UsageError(
                f"the model nests graphs or functions more than {MAX_DEPTH} deep: it isn't analysed"
            )
        rows: list[Row] = []
        # A list keeps protobuf's wrappers of the nodes, which it makes anew for each pass otherwise.
        for index, proto in in_order(list(nodes), scope.knows):
            function = self._function(proto)
            number = index if place.index is None else place.index
            if function is not None:
                rows += self._call(function, proto, scope, place, number)
            else:
                rows.append(self._count(proto, number, scope, place, graph))
        return rows

    def _count(
        self, proto: NodeProto, index: int, scope: Scope, place: Place, graph: GraphProto | None
    ) -> Row:
        inputs = [(scope.get(name) or scope.find(name)) if name else None for name in proto.input]
        inside = _Inside(self, scope, place, proto, index)
        node = Node(proto, inputs, inside, place.attributes)
        domain, label, names = domain_of(node.domain), node.name, node.outputs
        node.version = self._version(domain, place) if place.function else self._versions.get(domain, 1)
        if place.path:
            node.outputs = [f"{place.path}{name}" if name else "" for name in names]
            label = f"{place.path}{label}" if label else label
        try:
            cost = self._cost(node, RULES.get((domain, node.op_type), _no_rule), graph)
            outputs = finish(node, names, cost, place)
        except (InvalidNodeError, *_MALFORMED) as error:
            where = f"node {index} ({node.op_type} {label})"
            raise UsageError(f"{where} isn't valid: {error or type(error).__name__}") from error
        for name, tensor in zip(names, outputs, strict=False):
            if name:
                scope[name] = tensor
        row = Row(index, label, node.op_type, domain, inputs, outputs, cost)
        row.measure()
        return row

    def _cost(self, node: Node, rule: Rule, graph: GraphProto | None) -> Cost:
        try:
            cost = rule(node)
        except OpenShapeError as error:
            cost = Cost(self._declared(node, graph), "uncounted", uncounted=str(error))
        if node.op_type in FOLDS and (values := _folded(node, cost)) is not None:
            for tensor, value in zip(cost.outputs, values, strict=False):
                tensor.value, tensor.shape = value, tuple(value.shape)
            cost.uncounted = ""
        if node.op_type == "ReorderInput" and node.domain == NCHWC:
            _pad_channels(cost.outputs[0], self._padded.get(node.outputs[0]))
        return cost

    def _declared(self, node: Node, graph: GraphProto | None) -> list[Tensor]:
        """Return a node's outputs as the exporter declared them: all that is left without a rule."""
        infos = (*graph.value_info, *graph.output) if graph is not None else ()
        known = {info.name: info for info in infos if info.type.HasField("tensor_type")}
        first = node.optional(0)
        dtype = first.dtype if first is not None else FLOAT
        return [
            self._inputs.declared(known[name]) if name in known else Tensor(dtype, None)
            for name in node.outputs
        ]

    def _version(self, domain: str, place: Place) -> int:
        if place.function is not None:
            for opset in place.function.opset_import:
                if domain_of(opset.domain) == domain:
                    return int(opset.version)
        return self._versions.get(domain, 1)

    def _function(self, proto: NodeProto) -> FunctionProto | None:
        if not self._functions:
            return None
        return self._functions.get((domain_of(proto.domain), proto.op_type, proto.overload))

    def _call(
        self, function: FunctionProto, proto: NodeProto, scope: Scope, place: Place, index: int
    ) -> list[Row]:
        """Inline a model-local function: its rows stand at the index of the node that calls it."""
        inner = Scope()
        for formal, name in zip(function.input, proto.input, strict=False):
            found = scope.find(name) if name else None
            if found is not None:
                inner[formal] = found
        attributes = {attribute.name: attribute for attribute in function.attribute_proto}
        attributes |= {attribute.name: attribute for attribute in proto.attribute}
        path = f"{place.path}{proto.name or f'{proto.op_type}#{index}'}/"
        absent = set(function.input) - set(inner)
        rows = self._walk(
            [_without_inputs(node, absent) for node in function.node] if absent else list(function.node),
            None,
            inner,
            Place(path, place.depth + 1, function, attributes, index),
        )
        for formal, name in zip(function.output, proto.output, strict=False):
            tensor = inner.find(formal)
            if name and tensor is not None:
                scope[name] = tensor
        return rows

    def branch(
        self,
        name: str,
        graph: GraphProto,
        given: Sequence[Tensor | None],
        scope: Scope,
        place: Place,
        index: int,
    ) -> tuple[Branch, list[Tensor]]:
        """Count a graph inside a node."""
        inner = Scope(scope, graph, place.path)
        for position, info in enumerate(graph.input):
            tensor = given[position] if position < len(given) else None
            if tensor is None:
                tensor = self._inputs.declared(info)
            inner[info.name] = Tensor(tensor.dtype, tensor.shape, tensor.value, info.name, items=tensor.items)
        inside = Place(place.path, place.depth, place.function, place.attributes, index)
        rows = self._walk(graph.node, graph, inner, inside)
        outputs = []
        for info in graph.output:
            found = inner.find(info.name)
            if found is None:
                raise InvalidNodeError(f"its {name} graph gives {info.name!r}, which nothing makes")
            outputs.append(found)
        return _summed(name, rows), outputs


class _Inside:
    """What a control flow rule gets to count the graphs of its node."""

    def __init__(self, engine: Engine, scope: Scope, place: Place, proto: NodeProto, index: int) -> None:
        self._engine, self._scope, self._place = engine, scope, place
        self._proto, self._index = proto, index

    def count(
        self, name: str, graph: GraphProto, inputs: Sequence[Tensor | None]
    ) -> tuple[Branch, list[Tensor]]:
        label = self._proto.name or f"{self._proto.op_type}#{self._index}"
        outer = self._place
        place = Place(f"{outer.path}{label}.{name}/", outer.depth + 1, outer.function, outer.attributes)
        return self._engine.branch(name, graph, inputs, self._scope, place, self._index)


def _no_rule(node: Node) -> Cost:
    raise OpenShapeError(f"there is no rule for {node.op_type} of {node.domain or 'ai.onnx'}")


def _folded(node: Node, cost: Cost) -> list[npt.NDArray[Any]] | None:
    for tensor in cost.outputs:
        elements = tensor.elements
        if isinstance(elements, int) and elements > MAX_FOLDED_ELEMENTS:
            return None
    return fold(node)


def _padded_channels(graph: GraphProto) -> dict[str, int]:
    """Return, for each tensor that a blocked convolution reads, the channels that its weight is padded to."""
    readers = [node for node in graph.node if node.domain == NCHWC and node.op_type == "Conv"]
    if not readers:
        return {}
    weights = {proto.name: proto.dims for proto in graph.initializer}
    found = {}
    for node in readers:
        dims = weights.get(node.input[1]) if len(node.input) > 1 else None
        if dims is not None and len(dims) > 1:
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            found[node.input[0]] = dims[0] if dims[1] == 1 and groups > 1 else dims[1] * groups
    return found


def _pad_channels(tensor: Tensor, channels: int | None) -> None:
    if channels is not None and tensor.shape is not None:
        tensor.shape = (tensor.shape[0], channels, *tensor.shape[2:])


def _without_inputs(node: NodeProto, absent: set[str]) -> NodeProto:
    """Return a function's node with the optional inputs that the call leaves out as absent."""
    if not absent.intersection(node.input):
        return node
    changed = NodeProto()
    changed.CopyFrom(node)
    for position, name in enumerate(node.input):
        if name in absent:
            changed.input[position] = ""
    return changed


def _summed(name: str, rows: Sequence[Row]) -> Branch:
    return Branch(
        name,
        _sum(row.macc for row in rows),
        _sum(row.other_ops for row in rows),
        _sum(row.input_bytes for row in rows),
        _sum(row.param_bytes for row in rows),
        _sum(row.output_bytes for row in rows),
        frozenset[Root]().union(*(row.roots for row in rows)),
        sum(1 for row in rows if row.uncounted),
    )


def _sum(values: Iterator[Dim]) -> Dim:
    total: Dim = 0
    for value in values:
        total = total + value
    return total
