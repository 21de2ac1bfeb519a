"""A counted network with its graph: which layer feeds which, and the geometry of those that walk a map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper

from roof_collector.analysis.convolution import ELEMENT_BITS, Convolution
from roof_collector.analysis.granularity import Axis, Stage
from roof_collector.analysis.result import Analysis, Layer

WINDOWS = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})
# Layers that compute each place of a map from the same place of it.
POINTWISE = frozenset({"activation", "normalisation"})


@dataclass(frozen=True)
class Placed:
    """A layer at its place in the graph. `source` is the tensor it works on, `result` what it gives.

    `result` is the name behind the nodes that were fused into it. `conv` is there for a plain
    two-dimensional convolution, `stage` for any layer that walks a map.
    """

    layer: Layer
    node: NodeProto
    source: str
    result: str
    conv: Convolution | None
    stage: Stage | None

    @property
    def label(self) -> str:
        """The layer's name, or its number where it has none."""
        return self.layer.name or f"#{self.layer.index}"


class Network:
    """The layers of a model's own graph that cost something, in the order of the graph.

    `analysis` must be of this very `model`. Layers inside functions and branches have no place here.
    """

    def __init__(self, model: ModelProto, analysis: Analysis) -> None:
        self._graph = model.graph
        self._readers: dict[str, list[int]] = {}
        for index, name in _reads(model.graph):
            self._readers.setdefault(name, []).append(index)
        self._results = {value.name for value in model.graph.output}
        constants = {tensor.name for tensor in model.graph.initializer}
        self._constants = constants | {
            name for node in model.graph.node if node.op_type == "Constant" for name in node.output
        }
        self._layers: dict[int, list[Layer]] = {}
        for layer in analysis.layers:
            self._layers.setdefault(layer.index, []).append(layer)
        self.placed = [
            self._place(index, layers[0]) for index, layers in self._layers.items() if len(layers) == 1
        ]
        self._by_source: dict[str, list[Placed]] = {}
        self._by_result = {
            name: placed for placed in self.placed for name in (*placed.node.output, placed.result) if name
        }
        for placed in self.placed:
            for name in self.data_inputs(placed.node):
                self._by_source.setdefault(name, []).append(placed)

    def data_inputs(self, node: NodeProto) -> list[str]:
        """Return the node's inputs that aren't stored constants, each once."""
        return list(dict.fromkeys(name for name in node.input if name and name not in self._constants))

    def linear_runs(self) -> list[list[Placed]]:
        """Return the longest sequences of map-walking layers of which each alone reads the one before."""
        runs, seen = [], set()
        for placed in self.placed:
            if placed.stage is None or placed.layer.index in seen:
                continue
            run = [placed]
            while (following := self._sole_reader(run[-1])) is not None:
                run.append(following)
            seen |= {member.layer.index for member in run}
            runs.append(run)
        return runs

    def maker(self, tensor: str) -> Placed | None:
        """Return the layer whose own node or whose fused nodes give the tensor."""
        return self._by_result.get(tensor)

    def readers(self, tensor: str) -> list[int]:
        """Return the numbers of the nodes that read a tensor."""
        return self._readers.get(tensor, [])

    def _sole_reader(self, placed: Placed) -> Placed | None:
        if placed.result in self._results or len(self.readers(placed.result)) != 1:
            return None
        readers = [found for found in self._by_source.get(placed.result, []) if found.stage is not None]
        return readers[0] if len(readers) == 1 and readers[0].source == placed.result else None

    def _place(self, index: int, layer: Layer) -> Placed:
        node = self._graph.node[index]
        inputs = self.data_inputs(node)
        source = inputs[0] if inputs else ""
        stage = _stage(node, layer) if len(inputs) == 1 and layer.memory_bytes else None
        return Placed(layer, node, source, self._end(node), _convolution(node, layer), stage)

    def _end(self, node: NodeProto) -> str:
        """Follow the node's output through the nodes that were fused into it."""
        result = node.output[0] if node.output else ""
        while len(self.readers(result)) == 1 and result not in self._results:
            index = self.readers(result)[0]
            layers, reader = self._layers.get(index, []), self._graph.node[index]
            absorbed = len(layers) == 1 and layers[0].rewrites and not layers[0].memory_bytes
            if not absorbed or self.data_inputs(reader) != [result] or _moves(layers[0]):
                break
            result = reader.output[0]
        return result


def _moves(layer: Layer) -> bool:
    """Return whether a layer's output is another map than its input."""
    return not layer.inputs or not layer.outputs or layer.inputs[0][1] != layer.outputs[0][1]


def _reads(graph: GraphProto) -> Iterator[tuple[int, str]]:
    """Yield (node, tensor) for all that nodes read, graphs inside them included."""
    for index, node in enumerate(graph.node):
        for name in node.input:
            yield index, name
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from ((index, name) for _, name in _reads(attribute.g))


def _numbers(shape: Sequence[int | str] | None) -> tuple[int, ...] | None:
    if shape is None or not all(isinstance(dim, int) and dim > 0 for dim in shape):
        return None
    return tuple(int(dim) for dim in shape)


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _convolution(node: NodeProto, layer: Layer) -> Convolution | None:
    """Return a Conv's geometry, None where it isn't one of two dimensions, evenly padded and undilated."""
    if node.op_type != "Conv" or node.domain or len(layer.inputs) < 2:
        return None
    shapes = [_numbers(shape) for _, shape in (*layer.inputs[:2], *layer.outputs[:1])]
    if any(shape is None or len(shape) != 4 for shape in shapes) or layer.inputs[0][0] not in ELEMENT_BITS:
        return None
    x, weight, out = (shape for shape in shapes if shape is not None)
    given = _attributes(node)
    rows, columns = (_axis(given, axis, x[2 + axis], out[2 + axis], weight[2 + axis]) for axis in (0, 1))
    if rows.stride != columns.stride or set(given.get("dilations", [1])) != {1}:
        return None
    conv = Convolution(
        cin=x[1],
        cout=weight[0],
        height=x[2],
        width=x[3],
        kernel=(weight[2], weight[3]),
        stride=rows.stride,
        pad=(rows.pad, columns.pad),
        groups=given.get("group", 1),
        batch=x[0],
    )
    return conv if (conv.out_height, conv.out_width) == out[2:] else None


def _stage(node: NodeProto, layer: Layer) -> Stage | None:
    """Return how a layer walks a map [N, C, H, W]; None for one that doesn't."""
    if not layer.outputs or not layer.inputs:
        return None
    x, out = _numbers(layer.inputs[0][1]), _numbers(layer.outputs[0][1])
    if x is None or out is None or len(x) != 4 or len(out) != 4:
        return None
    given = _attributes(node)
    if node.op_type in WINDOWS:
        kernel = given.get("kernel_shape") or _weight_kernel(layer)
    elif layer.layer_class in POINTWISE and x == out and node.op_type != "Softmax":
        kernel = (1, 1)
    else:
        return None
    rows, columns = (_axis(given, axis, x[2 + axis], out[2 + axis], kernel[axis]) for axis in (0, 1))
    return Stage(
        layer.name or f"#{layer.index}",
        rows,
        columns,
        layer.macc,
        layer.input_bytes,
        layer.param_bytes,
        layer.output_bytes,
    )


def _weight_kernel(layer: Layer) -> tuple[int, ...]:
    """Return the kernel of a Conv that leaves it to its weight."""
    weight = _numbers(layer.inputs[1][1]) if len(layer.inputs) > 1 else None
    return weight[2:] if weight else (1, 1)


def _axis(given: Mapping[str, Any], axis: int, in_size: int, out_size: int, kernel: int) -> Axis:
    stride = (given.get("strides") or (1, 1))[axis]
    span = (kernel - 1) * (given.get("dilations") or (1, 1))[axis] + 1
    auto = given.get("auto_pad", b"NOTSET")
    if auto in {b"SAME_UPPER", b"SAME_LOWER"}:
        missing = max(0, (out_size - 1) * stride + span - in_size)
        pad = missing // 2 if auto == b"SAME_UPPER" else math.ceil(missing / 2)
    else:
        pad = 0 if auto == b"VALID" else (given.get("pads") or (0, 0))[axis]
    return Axis(in_size, out_size, span, stride, pad)
