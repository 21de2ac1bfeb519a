"""The order of execution: as the file has it where that works, else sorted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from onnx import AttributeProto, GraphProto, NodeProto

from roof_agent.errors import UsageError


def in_order(nodes: Sequence[NodeProto], outside: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
    """Yield (index in the file, node) so that what a node reads is made before it.

    UsageError for a tensor that two nodes make, for one that nothing makes, and for a cycle.
    """
    made: dict[str, int] = {}
    sorted_already = True
    for index, node in enumerate(nodes):
        if sorted_already:
            for name in node.input:
                if name and name not in made and not outside(name):
                    sorted_already = False
                    break
        for name in node.output:
            if not name:
                continue
            if name in made:
                raise UsageError(f"nodes {made[name]} and {index} both make the tensor {name!r}")
            made[name] = index
    return iter(enumerate(nodes)) if sorted_already else _sorted(nodes, made, outside)


def _sorted(
    nodes: Sequence[NodeProto], made: dict[str, int], outside: Callable[[str], bool]
) -> Iterator[tuple[int, NodeProto]]:
    waiting: list[int] = []
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        missing = [name for name in node.input if name and name not in made and not outside(name)]
        if missing:
            raise UsageError(
                f"node {index} ({node.op_type} {node.name}) reads {missing[0]!r}, which nothing makes"
            )
        sources = {made[name] for name in _reads(node) if name in made}
        waiting.append(len(sources))
        for source in sources:
            readers.setdefault(source, []).append(index)
    ready = deque(index for index, count in enumerate(waiting) if count == 0)
    order = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers.get(index, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    if len(order) < len(nodes):
        stuck = next(index for index, count in enumerate(waiting) if count)
        raise UsageError(f"the graph has a cycle: node {stuck} ({nodes[stuck].op_type}) waits for itself")
    return ((index, nodes[index]) for index in order)


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield what a node reads, the graphs inside it included."""
    pending: list[NodeProto] = [node]
    while pending:
        current = pending.pop()
        yield from current.input
        for attribute in current.attribute:
            graphs: list[GraphProto] = []
            if attribute.type == AttributeProto.GRAPH:
                graphs = [attribute.g]
            elif attribute.type == AttributeProto.GRAPHS:
                graphs = list(attribute.graphs)
            for graph in graphs:
                pending += graph.node
                yield from (output.name for output in graph.output)
