"""What becomes of a node's outputs: names, constants traced to their roots, open integers."""

from __future__ import annotations

from collections.abc import Sequence

from roof_collector.analysis.node import Cost, InvalidNodeError, Node, array
from roof_collector.analysis.scope import Place
from roof_collector.analysis.symbols import Dim, symbol
from roof_collector.analysis.tensor import INT32, INT64, Root, Tensor
from roof_collector.analysis.values import MAX_DIM

# Integers that only the running network knows stay open dims, up to so many a tensor.
MAX_OPEN_ELEMENTS = 16
# Even of constants alone, these give something else each time; control flow is traced inside.
_NEVER_CONSTANT = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
    | {"If", "Loop", "Scan"}
)


def finish(node: Node, names: Sequence[str], cost: Cost, place: Place) -> list[Tensor]:
    """Return the tensors that a node writes, one for each name, each with all that is known of it."""
    outputs = list(cost.outputs)
    if len(outputs) < len(names):
        outputs += [Tensor(outputs[0].dtype if outputs else 1, None) for _ in names[len(outputs) :]]
    constant = _is_constant(node)
    for tensor, name in zip(outputs, names, strict=False):
        tensor.name = name
        for dim in tensor.shape or ():
            if isinstance(dim, int) and (dim < 0 or dim > MAX_DIM):
                raise InvalidNodeError(f"it writes {name!r} with a dim of {dim:.4g}")
        if constant:
            tensor.constant = True
            tensor.roots = _traced(node, cost) or (Root((place.key, name), tensor.elements or 0),)
        if cost.data == (0,):
            _keep_stored(tensor, node.inputs[0] if node.inputs else None)
        if tensor.dtype in (INT64, INT32) and tensor.value is None:
            _leave_open(tensor, f"{place.path}{name}")
    return outputs


def _is_constant(node: Node) -> bool:
    if node.op_type == "Constant":
        return True
    some = False
    for tensor in node.inputs:
        if tensor is not None:
            if not tensor.constant:
                return False
            some = True
    return some and node.op_type not in _NEVER_CONSTANT


def _keep_stored(tensor: Tensor, source: Tensor | None) -> None:
    """Remember that a dequantised tensor, moved about, is still stored in its few bits."""
    if tensor.stored is None and source is not None and source.stored is not None:
        tensor.stored = Tensor(source.stored.dtype, tensor.shape, constant=tensor.constant)


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
    if shape is None or not tensor.name or tensor.constant:
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
