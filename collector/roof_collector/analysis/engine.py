"""The walk over a graph: every node's inputs are known when its rule is asked.

Shapes are inferred on the way, from the inputs' dims (bound ones included) and folded values; what
an exporter left in value_info is never trusted where a rule can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from roof_agent.errors import UsageError
from roof_collector.analysis.folding import FOLDS, fold
from roof_collector.analysis.inputs import Inputs
from roof_collector.analysis.node import Branch, Cost, InvalidNodeError, Node, OpenShapeError, array
from roof_collector.analysis.order import in_order
from roof_collector.analysis.row import Row
from roof_collector.analysis.rules import RULES
from roof_collector.analysis.rules.registry import NCHWC
from roof_collector.analysis.symbols import Dim, symbol
from roof_collector.analysis.tensor import INT32, INT64, MAX_FOLDED_ELEMENTS, Root, Tensor
from roof_collector.analysis.values import tensor_of

# Bounds on what a file can make the engine do; real networks stay far below.
MAX_NODES = 200_000
MAX_DEPTH = 64
# Integers that only the running network knows stay open dims, up to so many a tensor.
MAX_OPEN_ELEMENTS = 16

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


class Scope(dict[str, Tensor]):
    """Tensors by name; what isn't here is looked for among the initializers, then outside."""

    def __init__(self, parent: Scope | None = None) -> None:
        super().__init__()
        self.parent = parent
        self.stored: Mapping[str, Tensor] = {}

    def find(self, name: str) -> Tensor | None:
        """Return a tensor, None where the name is unknown."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope:
                return scope[name]
            scope = scope.parent
        return None


@dataclass(frozen=True)
class Place:
    """Where in the model the walk is: a path for names and keys, how deep, in whose body."""

    path: str = ""
    depth: int = 0
    function: FunctionProto | None = None
    attributes: Mapping[str, AttributeProto] | None = None
    index: int | None = None

    def inside(self, name: str) -> Place:
        """Return the place of a graph inside a node here."""
        return Place(f"{self.path}{name}/", self.depth + 1, self.function, self.attributes, None)


class Engine:
    """Counts one model."""

    def __init__(self, model: ModelProto, inputs: Inputs) -> None:
        self._graph = model.graph
        self._inputs = inputs
        self._versions = {_domain(opset.domain): opset.version for opset in model.opset_import}
        self._functions: dict[FunctionKey, FunctionProto] = {
            (_domain(function.domain), function.name, function.overload): function
            for function in model.functions
        }
        self._nodes = 0
        self._padded: dict[str, int] = {}
        # How many graph outputs and inputs there are is asked by the caller after the walk.
        self.graph_inputs: list[Tensor] = []
        self.graph_outputs: list[Tensor] = []

    def run(self) -> list[Row]:
        """Return the rows of the main graph, in its order of execution."""
        scope = Scope()
        self._padded = _padded_channels(self._graph)
        self._store(self._graph, scope, "")
        for info in self._graph.input:
            if info.name not in scope:
                scope[info.name] = self._inputs.tensor(info)
                self.graph_inputs.append(scope[info.name])
        self._inputs.check_all_used()
        rows = self._walk(self._graph.node, self._graph, scope, Place())
        self.graph_outputs = [
            found for info in self._graph.output if (found := scope.find(info.name)) is not None
        ]
        return rows

    def _store(self, graph: GraphProto, scope: Scope, path: str) -> None:
        for proto in graph.initializer:
            scope[proto.name] = _constant(_stored(proto.name, tensor_of, proto), (path, proto.name))
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            tensor = Tensor(sparse.values.data_type, tuple(sparse.dims), name=name)
            scope[name] = _constant(tensor, (path, name))

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
        infos = {info.name: info for info in (*graph.value_info, *graph.output)} if graph is not None else {}
        rows: list[Row] = []
        for index, proto in in_order(nodes, scope.find):
            function = self._function(proto)
            number = index if place.index is None else place.index
            if function is not None:
                rows += self._call(function, proto, scope, place, number)
            else:
                rows.append(self._count(proto, number, scope, place, infos))
        return rows

    def _count(
        self,
        proto: NodeProto,
        index: int,
        scope: Scope,
        place: Place,
        infos: Mapping[str, ValueInfoProto],
    ) -> Row:
        inputs = [scope.find(name) if name else None for name in proto.input]
        domain = _domain(proto.domain)
        version = self._version(domain, place)
        node = Node(proto, inputs, version, _Inside(self, scope, place, proto, index), place.attributes)
        if place.path:
            node.outputs = [f"{place.path}{name}" if name else "" for name in node.outputs]
        where = f"node {index} ({proto.op_type} {place.path}{proto.name})"
        found = RULES.get((domain, proto.op_type))
        try:
            cost = self._cost(node, found, infos)
        except InvalidNodeError as error:
            raise UsageError(f"{where} isn't valid: {error}") from error
        except _MALFORMED as error:
            raise UsageError(f"{where} isn't valid: {error or type(error).__name__}") from error
        outputs = self._outputs(node, proto, cost, place)
        for name, tensor in zip(proto.output, outputs, strict=False):
            if name:
                scope[name] = tensor
        label = f"{place.path}{proto.name}" if place.path and proto.name else proto.name
        row = Row(index, label, proto.op_type, domain, inputs, outputs, cost)
        row.measure()
        return row

    def _cost(self, node: Node, rule: object, infos: Mapping[str, ValueInfoProto]) -> Cost:
        reason = f"there is no rule for {node.op_type} of {node.domain or 'ai.onnx'}"
        cost: Cost | None = None
        if callable(rule):
            try:
                cost = rule(node)
            except OpenShapeError as error:
                reason = str(error)
        if cost is None:
            outputs = [self._declared(name, infos, node) for name in node.outputs]
            cost = Cost(outputs, "uncounted", uncounted=reason)
        if node.op_type in FOLDS and (values := _folded(node, cost)) is not None:
            for tensor, value in zip(cost.outputs, values, strict=False):
                tensor.value, tensor.shape = value, tuple(value.shape)
            cost.uncounted = ""
        if node.op_type == "ReorderInput" and node.domain == NCHWC:
            _pad_channels(cost.outputs[0], self._padded.get(node.outputs[0]))
        return cost

    def _declared(self, name: str, infos: Mapping[str, ValueInfoProto], node: Node) -> Tensor:
        info = infos.get(name)
        if info is not None and info.type.HasField("tensor_type"):
            return self._inputs.declared(info)
        first = node.optional(0)
        return Tensor(first.dtype if first is not None else 1, None)

    def _outputs(self, node: Node, proto: NodeProto, cost: Cost, place: Place) -> list[Tensor]:
        outputs = list(cost.outputs)
        names = list(proto.output)
        outputs += [Tensor(outputs[0].dtype if outputs else 1, None) for _ in names[len(outputs) :]]
        present = [tensor for tensor in node.inputs if tensor is not None]
        constant = proto.op_type == "Constant" or (
            bool(present)
            and all(tensor.constant for tensor in present)
            and cost.kind != "control"
            and not proto.op_type.startswith(("Random", "Bernoulli", "Multinomial"))
        )
        scope_key = f"{place.function.domain}:{place.function.name}" if place.function else place.path
        for tensor, name in zip(outputs, names, strict=False):
            tensor.name = name
            if constant:
                tensor.constant = True
                tensor.roots = _traced(node, cost) or (Root((scope_key, name), tensor.elements or 0),)
            if tensor.stored is None and cost.data == (0,) and present and present[0].stored is not None:
                tensor.stored = Tensor(present[0].stored.dtype, tensor.shape, constant=constant)
            if tensor.value is None and tensor.dtype in {INT64, INT32}:
                _leave_open(tensor, f"{place.path}{name}")
        return outputs

    def _version(self, domain: str, place: Place) -> int:
        if place.function is not None:
            for opset in place.function.opset_import:
                if _domain(opset.domain) == domain:
                    return int(opset.version)
        return self._versions.get(domain, 1)

    def _function(self, proto: NodeProto) -> FunctionProto | None:
        if not self._functions:
            return None
        return self._functions.get((_domain(proto.domain), proto.op_type, proto.overload))

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
        inner = Scope(scope)
        self._store(graph, inner, place.path)
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
        place = self._place.inside(f"{label}.{name}")
        return self._engine.branch(name, graph, inputs, self._scope, place, self._index)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _stored(name: str, read: object, proto: object) -> Tensor:
    assert callable(read)
    try:
        tensor: Tensor = read(proto)
    except InvalidNodeError as error:
        raise UsageError(str(error)) from error
    tensor.name = name
    return tensor


def _constant(tensor: Tensor, key: tuple[str, str]) -> Tensor:
    tensor.constant = True
    tensor.roots = (Root(key, tensor.elements or 0),)
    return tensor


def _folded(node: Node, cost: Cost) -> list[npt.NDArray[Any]] | None:
    for tensor in cost.outputs:
        elements = tensor.elements
        if isinstance(elements, int) and elements > MAX_FOLDED_ELEMENTS:
            return None
    return fold(node)


def _traced(node: Node, cost: Cost) -> tuple[Root, ...]:
    """Return the stored constants that an all-constant result is made of; scalars give way to tensors."""
    slots = range(len(node.inputs)) if cost.data is None else cost.data
    roots = dict.fromkeys(
        root
        for slot in slots
        if slot < len(node.inputs) and (tensor := node.inputs[slot]) is not None
        for root in tensor.roots
    )
    return tuple(root for root in roots if root.elements != 1) or tuple(roots)


def _leave_open(tensor: Tensor, name: str) -> None:
    """Name the unknown elements of a small integer tensor: they may become dims."""
    shape = tensor.shape
    if shape is None or not name or tensor.constant:
        return
    count = 1
    for dim in shape:
        if not isinstance(dim, int):
            return
        count *= dim
    if not 0 < count <= MAX_OPEN_ELEMENTS:
        return
    names = [name] if count == 1 else [f"{name}[{position}]" for position in range(count)]
    dims: list[Dim] = [symbol(each) for each in names]
    tensor.value = array(dims).reshape([int(str(dim)) for dim in shape])


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
