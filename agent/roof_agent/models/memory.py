"""How much memory a network takes, told from its graph before it is loaded."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, shape_inference

from roof_agent.models.tensors import BITS, stored, stored_bytes

# The interpreter with onnx and onnxruntime, and what a session allocates besides tensors.
BASE_BYTES = 140 << 20
# The weights as they are read, and as the runtime lays them out for its kernels.
_WEIGHT_COPIES = 2.2
# The CPU provider computes half precision in single: converted, then laid out, both twice as large.
_HALF_COPIES = 5.4
_HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
# Arenas grow in powers of two and keep what fragments leave.
_ARENA = 1.5


def estimate_bytes(model: onnx.ModelProto) -> int:
    """Return the peak that measuring a (weightless) network is expected to reach."""
    weights = sum(
        (_HALF_COPIES if tensor.data_type in _HALVES else _WEIGHT_COPIES) * stored_bytes(tensor)
        for _, tensor, _ in stored(model)
    )
    return int(BASE_BYTES + weights + _ARENA * peak_activation_bytes(model))


def peak_activation_bytes(model: onnx.ModelProto) -> int:
    """Return the most bytes of activations alive at once, nodes run in their order; open dims count as 1.

    Only tensors whose dims can be inferred count.
    """
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return 0
    sizes = {value.name: _bytes(value) for value in (*graph.value_info, *graph.output, *graph.input)}
    last = {name: index for index, node in enumerate(graph.node) for name in node.input}
    last |= {value.name: len(graph.node) for value in graph.output}
    alive = sum(_bytes(value) for value in graph.input)
    peak = alive
    for index, node in enumerate(graph.node):
        alive += sum(sizes.get(name, 0) for name in node.output)
        peak = max(peak, alive)
        alive -= sum(
            sizes.get(name, 0) for name in {*node.input, *node.output} if last.get(name, index) == index
        )
    return peak


def peak_rss_bytes(root: Path = Path("/")) -> int:
    """Return the most memory that this process has held; 0 where /proc doesn't tell.

    Not getrusage's figure: that one starts from what the parent held when it forked.
    """
    for line in (root / "proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def _bytes(value: onnx.ValueInfoProto) -> int:
    bits = BITS.get(value.type.tensor_type.elem_type, 0)
    for dim in value.type.tensor_type.shape.dim:
        bits *= max(dim.dim_value, 1)
    return bits // 8
