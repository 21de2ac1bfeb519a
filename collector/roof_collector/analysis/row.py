"""A counted node while the count is made: what it reads and writes, and what a fusion does to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from roof_collector.analysis.node import Cost
from roof_collector.analysis.symbols import Dim
from roof_collector.analysis.tensor import Root, Tensor, packed_bytes


@dataclass(slots=True, eq=False)
class Row:
    """One node. The bytes start as the node's own; the fusion presets rewrite them."""

    index: int
    name: str
    op_type: str
    domain: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    cost: Cost
    roots: frozenset[Root] = frozenset()
    macc: Dim = 0
    other_ops: Dim = 0
    input_bytes: Dim = 0
    param_bytes: Dim = 0
    output_bytes: Dim = 0
    uncounted: str = ""
    fused: list[str] = field(default_factory=list)
    rewrites: list[str] = field(default_factory=list)
    host: Row | None = None

    @property
    def label(self) -> str:
        """The node's name, or its operator and place where it has none."""
        return self.name or f"{self.op_type}#{self.index}"

    def absorbed(self) -> bool:
        """Tell whether a fusion took this node into another, or did away with it."""
        return self.host is not None

    def root(self) -> Row:
        """Return the row that does this one's work."""
        row = self
        while row.host is not None and row.host is not row:
            row = row.host
        return row

    def measure(self) -> None:
        """Set the counts from the node's cost and the sizes of what it reads and writes."""
        cost = self.cost
        self.macc, self.other_ops, self.uncounted = cost.macc, cost.other_ops, cost.uncounted
        if cost.weights:
            self.roots = frozenset(
                root for slot in cost.weights if slot < len(self.inputs) for root in _roots(self.inputs[slot])
            )
        if cost.params is not None and self.roots:
            # Stored packed: as many elements as the weight has, not as its container has.
            self.roots = frozenset({Root(min(str(root.key) for root in self.roots), cost.params)})
        if cost.view:
            return
        self._measure_inputs()
        for tensor in self.outputs:
            if tensor.name:
                self.output_bytes = self.output_bytes + self._bytes(tensor)
        if cost.body is not None:
            body, times = cost.body
            self.input_bytes = body.input_bytes * times
            self.param_bytes = body.param_bytes * times
            self.output_bytes = body.output_bytes * times
        if cost.branches:
            self.roots = self.roots.union(*(branch.roots for branch in cost.branches))
            inside = max(branch.uncounted for branch in cost.branches)
            if inside:
                self.uncounted = f"{inside} nodes inside are uncounted"

    def _measure_inputs(self) -> None:
        seen: set[int] = set()
        reads = self.cost.reads
        for slot, tensor in enumerate(self.inputs):
            if tensor is None or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            moved = packed_bytes(reads[slot], tensor.dtype) if slot in reads else self._bytes(tensor)
            if tensor.constant:
                self.param_bytes = self.param_bytes + moved
            else:
                self.input_bytes = self.input_bytes + moved

    def _bytes(self, tensor: Tensor) -> Dim:
        if tensor.items is not None:
            total: Dim = 0
            for item in tensor.items:
                total = total + self._bytes(item)
            return total
        found = tensor.nbytes
        if found is None:
            self.uncounted = self.uncounted or f"the shape of {tensor.name!r} is unknown"
            return 0
        return found


def _roots(tensor: Tensor | None) -> tuple[Root, ...]:
    return tensor.roots if tensor is not None and tensor.constant else ()
