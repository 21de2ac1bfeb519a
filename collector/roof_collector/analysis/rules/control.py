"""Control flow: an If costs its worst branch, a loop its body times its trips."""

from __future__ import annotations

from onnx import GraphProto

from roof_agent.errors import UsageError
from roof_collector.analysis.node import Branch, Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.rules.shapes import axis_of
from roof_collector.analysis.symbols import Dim, rank, symbol
from roof_collector.analysis.tensor import BOOL, INT64, Shape, Tensor

# An exporter's way to say "as long as the condition holds".
ENDLESS = 1 << 31


@rule("If")
def if_(node: Node) -> Cost:
    """Count both branches and report the worst; a condition that is known decides instead.

    A branch that contradicts the shapes at hand can't be taken: exporters leave such ones behind
    (one spelling for each rank of an input).
    """
    counted: dict[str, tuple[Branch, list[Tensor]]] = {}
    refusals: list[UsageError] = []
    for name in ("then", "else"):
        try:
            counted[name] = node.subgraphs.count(name, node.graph(f"{name}_branch"), [])
        except UsageError as error:
            refusals.append(error)
    condition = node.input(0).value
    if condition is not None and condition.size == 1 and condition.dtype != object:
        chosen = "then" if bool(condition.reshape(-1)[0]) else "else"
        note = f"the condition is known: {chosen}"
    else:
        chosen = max(counted, key=lambda name: _weight(counted[name][0]), default="")
        note = f"worst branch: {chosen}" if len(counted) == 2 else f"only possible branch: {chosen}"
    if chosen not in counted:
        raise refusals[0]
    branch, outputs = counted[chosen]
    return Cost(
        [Tensor(out.dtype, out.shape, out.value, items=out.items) for out in outputs],
        "control",
        branch.macc,
        branch.other_ops,
        body=(branch, 1),
        branches=tuple(each for each, _ in counted.values()),
        note=note,
    )


def _weight(branch: Branch) -> tuple[int, int]:
    moved = branch.input_bytes + branch.param_bytes + branch.output_bytes
    return rank(branch.macc), rank(branch.other_ops + moved)


@rule("Loop")
def loop(node: Node) -> Cost:
    """Body times trip count where that is constant; else one iteration, and the row says so."""
    body = node.graph("body")
    carried = [_fresh(tensor) for tensor in node.inputs[2:]]
    branch, outputs = _settled(node, body, [Tensor(INT64, ()), Tensor(BOOL, ())], carried, [])
    states = len(carried)
    if len(outputs) < states + 1:
        raise InvalidNodeError("its body gives fewer tensors than it carries")
    given = node.values(0)
    trips: Dim = symbol(f"{node.outputs[0] if node.outputs else node.name}.trips")
    factor, note = 1, "per iteration: the trip count depends on data"
    if given and isinstance(given[0], int) and given[0] < ENDLESS:
        trips = factor = max(given[0], 0)
        keeps_on = outputs[0].value is not None and bool(outputs[0].value.all())
        passed = len(body.input) > 1 and outputs[0].name == body.input[1].name
        note = f"{factor} iterations" if keeps_on or passed else f"at most {factor} iterations"
    elif node.optional(0) is None or not given:
        note = "per iteration: it runs as long as its condition holds"
    scans = [
        Tensor(out.dtype, None if out.shape is None else (trips, *out.shape)) for out in outputs[states + 1 :]
    ]
    finals = [Tensor(out.dtype, out.shape) for out in outputs[1 : states + 1]]
    return Cost(
        [*finals, *scans],
        "control",
        branch.macc * factor,
        branch.other_ops * factor,
        body=(branch, factor),
        branches=(branch,),
        note=note,
    )


@rule("Scan")
def scan(node: Node) -> Cost:
    """Body times the length of the scanned axis."""
    body = node.graph("body")
    scanned = node.integer("num_scan_inputs", 1)
    states = len(node.inputs) - scanned
    axes = node.integers("scan_input_axes") or [0] * scanned
    length: Dim = 1
    slices = []
    for position, axis in enumerate(axes):
        shape = node.shape(states + position)
        at = axis_of(axis, len(shape))
        length = shape[at]
        slices.append(Tensor(node.input(states + position).dtype, (*shape[:at], *shape[at + 1 :])))
    carried = [_fresh(tensor) for tensor in node.inputs[:states]]
    branch, outputs = _settled(node, body, [], carried, slices)
    out_axes = node.integers("scan_output_axes") or [0] * (len(outputs) - states)
    results = [Tensor(out.dtype, out.shape) for out in outputs[:states]]
    for out, axis in zip(outputs[states:], out_axes, strict=True):
        results.append(Tensor(out.dtype, _inserted(out.shape, axis, length)))
    return Cost(
        results,
        "control",
        branch.macc * length,
        branch.other_ops * length,
        body=(branch, length),
        branches=(branch,),
        note=f"{length} iterations",
    )


def _inserted(shape: Shape | None, axis: int, length: Dim) -> Shape | None:
    if shape is None:
        return None
    at = axis_of(axis, len(shape) + 1)
    return (*shape[:at], length, *shape[at:])


def _fresh(tensor: Tensor | None) -> Tensor | None:
    """Return what a loop carries: its dims, not its first value."""
    return None if tensor is None else Tensor(tensor.dtype, tensor.shape, name=tensor.name)


def _settled(
    node: Node, graph: GraphProto, first: list[Tensor], carried: list[Tensor | None], last: list[Tensor]
) -> tuple[Branch, list[Tensor]]:
    """Count the body; dims that a turn changes are open, so it is counted once more with them so."""
    branch, outputs = node.subgraphs.count("body", graph, [*first, *carried, *last])
    offset = 1 if first else 0
    changed = False
    for position, tensor in enumerate(carried):
        after = outputs[position + offset] if position + offset < len(outputs) else None
        if tensor is None or after is None or tensor.shape == after.shape:
            continue
        changed = True
        if tensor.shape is None or after.shape is None or len(tensor.shape) != len(after.shape):
            tensor.shape = None
            continue
        tensor.shape = tuple(
            dim if dim == turned else symbol(f"{node.outputs[0]}.carried{position}.{axis}")
            for axis, (dim, turned) in enumerate(zip(tensor.shape, after.shape, strict=True))
        )
    return node.subgraphs.count("body", graph, [*first, *carried, *last]) if changed else (branch, outputs)


@rule("SequenceEmpty")
def sequence_empty(node: Node) -> Cost:
    """Make a sequence of nothing."""
    return Cost([Tensor(node.integer("dtype", 1), None, items=())], "view", view=True)


@rule("SequenceConstruct")
def sequence_construct(node: Node) -> Cost:
    """Make a sequence of the inputs."""
    items = tuple(tensor for tensor in node.inputs if tensor is not None)
    return Cost([Tensor(items[0].dtype if items else 1, None, items=items)], "view", view=True)


@rule("SequenceInsert")
def sequence_insert(node: Node) -> Cost:
    """One more item; where it goes matters to no shape here."""
    sequence, item = node.input(0), node.input(1)
    items = None if sequence.items is None else (*sequence.items, item)
    return Cost([Tensor(item.dtype, None, items=items)], "view", view=True)


@rule("SequenceErase")
def sequence_erase(node: Node) -> Cost:
    """One item less."""
    sequence, position = node.input(0), node.values(1)
    items = sequence.items
    if items is not None:
        at = int(str(position[0])) if position else -1
        items = tuple(item for index, item in enumerate(items) if index != at % max(len(items), 1))
    return Cost([Tensor(sequence.dtype, None, items=items)], "view", view=True)


@rule("SequenceAt")
def sequence_at(node: Node) -> Cost:
    """One item of a sequence."""
    sequence, position = node.input(0), node.values(1)
    if sequence.items and position and isinstance(position[0], int):
        item = sequence.items[position[0] % len(sequence.items)]
        return Cost([Tensor(item.dtype, item.shape, item.value)], "view", view=True)
    same = {item.shape for item in sequence.items or ()}
    return Cost([Tensor(sequence.dtype, same.pop() if len(same) == 1 else None)], "view", view=True)


@rule("SequenceLength")
def sequence_length(node: Node) -> Cost:
    """How many items there are."""
    return Cost([Tensor(INT64, ())], "shape", reads={0: 0})


@rule("SplitToSequence")
def split_to_sequence(node: Node) -> Cost:
    """Cut into a sequence; the items' bytes are moved."""
    shape = node.shape(0)
    axis = axis_of(node.integer("axis", 0), len(shape))
    parts = node.values(1)
    if parts is None and node.optional(1) is None and isinstance(shape[axis], int):
        parts = [1] * int(str(shape[axis]))
    elif parts is not None and len(parts) == 1 and isinstance(parts[0], int) and isinstance(shape[axis], int):
        size, length = max(parts[0], 1), int(str(shape[axis]))
        parts = [min(size, length - start) for start in range(0, length, size)]
    dtype = node.input(0).dtype
    items = None
    if parts is not None and len(parts) < ENDLESS:
        items = tuple(Tensor(dtype, (*shape[:axis], part, *shape[axis + 1 :])) for part in parts)
    return Cost([Tensor(dtype, None, items=items)], "movement", reads={1: 0})


@rule("ConcatFromSequence")
def concat_from_sequence(node: Node) -> Cost:
    """Join a sequence's items."""
    items = node.input(0).items
    if not items or any(item.shape is None for item in items):
        return Cost([Tensor(node.input(0).dtype, None)], "movement")
    shapes = [item.shape for item in items if item.shape is not None]
    if node.integer("new_axis", 0):
        axis = axis_of(node.integer("axis", 0), len(shapes[0]) + 1)
        return Cost([Tensor(items[0].dtype, (*shapes[0][:axis], len(items), *shapes[0][axis:]))], "movement")
    axis = axis_of(node.integer("axis", 0), len(shapes[0]))
    length: Dim = 0
    for shape in shapes:
        length = length + shape[axis]
    return Cost([Tensor(items[0].dtype, (*shapes[0][:axis], length, *shapes[0][axis + 1 :]))], "movement")
