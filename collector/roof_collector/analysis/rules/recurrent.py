"""Recurrent layers: T * N * directions * gates*H * (I + H); the gates' element-wise work is left out."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.symbols import Dim
from roof_collector.analysis.tensor import Shape, Tensor

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@rule("LSTM", "GRU", "RNN")
def recurrent(node: Node) -> Cost:
    """One layer, in one or both directions."""
    return recurrent_cost(node, GATES[node.op_type], "recurrent")


def recurrent_cost(node: Node, gates: int, kind: str) -> Cost:
    """Return the cost of a layer of so many gates; X is [T, N, I], or [N, T, I] with layout 1."""
    x = node.shape(0, 3)
    directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
    hidden: Dim = node.integer("hidden_size", 0) or node.shape(2, 3)[2]
    batch_first = node.integer("layout", 0) == 1
    steps, batch = (x[1], x[0]) if batch_first else (x[0], x[1])
    weight = node.shape(1, 3)
    if isinstance(x[2], int) and x[2] not in weight[1:]:
        raise InvalidNodeError(f"reads {x[2]} features with a weight of {list(weight)}")
    macc = steps * batch * directions * gates * hidden * (x[2] + hidden)
    sequence: Shape = (steps, directions, batch, hidden)
    state: Shape = (directions, batch, hidden)
    if batch_first:
        sequence, state = (batch, steps, directions, hidden), (batch, directions, hidden)
    dtype = node.input(0).dtype
    outputs = [Tensor(dtype, sequence), Tensor(dtype, state), Tensor(dtype, state)][: len(node.outputs)]
    # X, W, R, B, sequence lengths, two initial states, P: peepholes are weights too.
    return Cost(outputs, kind, macc, weights=(1, 2, 3, 7))
