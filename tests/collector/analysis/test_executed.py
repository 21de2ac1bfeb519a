"""What is counted is what onnxruntime executes: generated graphs, optimisations off, actual shapes.

Every case draws shapes, attributes and an opset, runs the graph with all its tensors as outputs, and
works macc, other operations and bytes out anew, from the arrays that really went through the kernels.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from roof_collector.analysis import analyze

Array = npt.NDArray[Any]
F32, I64 = np.float32, np.int64
MICROSOFT = "com.microsoft"
RANDOM = np.random.default_rng(7)


class Draw:
    """Draws sizes and choices for one example."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def size(self, low: int = 1, high: int = 6) -> int:
        return self._data.draw(st.integers(low, high))

    def one(self, *choices: Any) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def shape(self, rank: int, high: int = 5) -> tuple[int, ...]:
        return tuple(self.size(1, high) for _ in range(rank))


@dataclass
class Graph:
    """A graph under construction: nodes, inputs with their arrays, constants with theirs."""

    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)

    def input(self, value: Array) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = np.asarray(value)
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        name = f"w{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def node(
        self, op_type: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> str:
        names = [f"t{len(self.nodes)}_{position}" for position in range(outputs)]
        self.nodes.append(
            helper.make_node(op_type, inputs, names, name=f"n{len(self.nodes)}", domain=domain, **attributes)
        )
        return names[0]

    def model(self) -> onnx.ModelProto:
        outputs = [name for node in self.nodes for name in node.output if name]
        graph = helper.make_graph(
            self.nodes,
            "case",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                for name, value in self.feeds.items()
            ],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset < 19 else 10)


def floats(*shape: int) -> Array:
    return np.asarray(RANDOM.uniform(0.1, 1.0, shape), F32)


def bytes_(*shape: int, dtype: Any = np.uint8) -> Array:
    return RANDOM.integers(0, 5, shape).astype(dtype)


Case = Callable[[Draw], Graph]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def executed(
    model: onnx.ModelProto, feeds: dict[str, Array]
) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """Run with optimisations off; return every tensor by name, and the profile's kernel events."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = "/tmp/roofline_case"
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = dict(zip(names, session.run(None, feeds), strict=True))
    path = Path(session.end_profiling())
    events = json.loads(path.read_text())
    path.unlink()
    kernels = [
        event for event in events if event.get("cat") == "Node" and event["name"].endswith("kernel_time")
    ]
    return values, kernels


# ---- The formulas, anew, of actual arrays.


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = [helper.get_attribute_value(each) for each in node.attribute if each.name == name]
    return found[0] if found else default


def recurrent(gates: int) -> Callable[..., int]:
    def macc(node: onnx.NodeProto, ins: list[Array], outs: list[Array]) -> int:
        steps, batch, width = ins[0].shape
        directions, rows, _ = ins[1].shape
        hidden = rows // gates
        return steps * batch * directions * rows * (width + hidden)

    return macc


def einsum_macc(node: onnx.NodeProto, ins: list[Array], outs: list[Array]) -> int:
    terms, _, written = attribute(node, "equation", b"").decode().partition("->")
    sizes = {
        label: dim
        for term, x in zip(terms.split(","), ins, strict=True)
        for label, dim in zip(term, x.shape, strict=True)
    }
    return math.prod(sizes.values()) if "," in terms and set(sizes) - set(written) else 0


def attention_macc(node: onnx.NodeProto, ins: list[Array], outs: list[Array]) -> int:
    batch, heads, queries, width = ins[0].shape
    keys, value_width = ins[2].shape[2:]
    return int(batch * heads * queries * keys * (width + value_width))


MACC: dict[str, Callable[[onnx.NodeProto, list[Array], list[Array]], int]] = {
    "Conv": lambda n, i, o: o[0].size * math.prod(i[1].shape[1:]),
    "FusedConv": lambda n, i, o: o[0].size * math.prod(i[1].shape[1:]),
    "ConvInteger": lambda n, i, o: o[0].size * math.prod(i[1].shape[1:]),
    "QLinearConv": lambda n, i, o: o[0].size * math.prod(i[3].shape[1:]),
    "ConvTranspose": lambda n, i, o: i[0].size * math.prod(i[1].shape[1:]),
    "MatMul": lambda n, i, o: o[0].size * i[0].shape[-1],
    "MatMulInteger": lambda n, i, o: o[0].size * i[0].shape[-1],
    "QLinearMatMul": lambda n, i, o: o[0].size * i[0].shape[-1],
    "DynamicQuantizeMatMul": lambda n, i, o: o[0].size * i[0].shape[-1],
    "MatMulNBits": lambda n, i, o: o[0].size * i[0].shape[-1],
    "FusedMatMul": lambda n, i, o: o[0].size * i[0].shape[-2 if attribute(n, "transA", 0) else -1],
    "Gemm": lambda n, i, o: o[0].size * i[0].shape[0 if attribute(n, "transA", 0) else 1],
    "FusedGemm": lambda n, i, o: o[0].size * i[0].shape[0 if attribute(n, "transA", 0) else 1],
    "LSTM": recurrent(4),
    "GRU": recurrent(3),
    "RNN": recurrent(1),
    "Einsum": einsum_macc,
    "Attention": attention_macc,
}
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}
ONE_AN_OUTPUT = {
    "Abs",
    "Add",
    "And",
    "Ceil",
    "Clip",
    "Cos",
    "DequantizeLinear",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "FastGelu",
    "Floor",
    "Gelu",
    "Greater",
    "GridSample",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Less",
    "Log",
    "LogSoftmax",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "QLinearAdd",
    "QuantizeLinear",
    "QuickGelu",
    "Reciprocal",
    "Relu",
    "Resize",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Tanh",
    "Upsample",
    "Where",
}
ONE_AN_INPUT = {
    "ArgMax",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "ReduceL2",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "TopK",
}


def other_ops(node: onnx.NodeProto, ins: list[Array], outs: list[Array]) -> int | None:  # noqa: PLR0911
    kind = node.op_type
    if kind in ONE_AN_OUTPUT:
        return outs[0].size
    if kind in ONE_AN_INPUT:
        return ins[0].size
    if kind in {"MaxPool", "AveragePool", "LpPool"}:
        return outs[0].size * math.prod(attribute(node, "kernel_shape", ()))
    if kind in {"BatchNormalization", "LayerNormalization", "InstanceNormalization"}:
        return 2 * ins[0].size
    if kind == "LRN":
        return ins[0].size * int(attribute(node, "size", 1))
    if kind in MACC and kind not in {"Attention", "Einsum"}:
        return 0
    return None


def moved(node: onnx.NodeProto, ins: dict[str, Array], outs: list[Array]) -> int:
    """Bytes of a layer; what it reads of its first operand where that isn't all of it."""
    if node.op_type in VIEWS:
        return 0
    written = sum(out.nbytes for out in outs)
    if node.op_type == "Slice":
        return 2 * written
    if node.op_type == "Split":
        return 2 * written
    if node.op_type in {"Gather", "GatherElements", "GatherND"}:
        return 2 * written + ins[node.input[1]].nbytes
    if node.op_type in {"Shape", "ConstantOfShape"}:
        return written
    return written + sum(ins[name].nbytes for name in dict.fromkeys(node.input) if name)


# ---- The cases.


def unary(op_type: str, since: int = 7, **choices: Sequence[Any]) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(*[opset for opset in (7, 9, 11, 13, 17, 20) if opset >= since]))
        x = graph.input(floats(*draw.shape(draw.size(2, 4))))
        graph.node(op_type, [x], **{key: draw.one(*values) for key, values in choices.items()})
        return graph

    CASES[f"{op_type} unary"] = build


for _op in (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Softsign",
    "Abs",
    "Neg",
    "Exp",
    "Log",
    "Sqrt",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Sin",
):
    unary(_op)
for _op in ("Erf", "Sign"):
    unary(_op, 9)
unary("Gelu", 20, approximate=("none", "tanh"))
unary("LeakyRelu", alpha=(0.1, 0.3))
unary("Elu", alpha=(1.0, 0.5))
unary("HardSigmoid", alpha=(0.2,))
unary("Selu")
unary("Softmax", 13, axis=(-1, 0, 1))
unary("LogSoftmax", 13, axis=(-1, 0))
unary("Flatten", axis=(0, 1, 2))
unary("Identity")


def arithmetic(op_type: str) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(7, 13, 17))
        shape = draw.shape(draw.size(1, 4))
        other = tuple(draw.one(dim, 1) for dim in shape)[draw.size(0, len(shape) - 1) :]
        left = graph.input(floats(*shape))
        right = graph.constant(floats(*other)) if draw.one(True, False) else graph.input(floats(*other))
        graph.node(op_type, [left, right] if draw.one(True, False) else [right, left])
        return graph

    CASES[f"{op_type} broadcast"] = build


for _op in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less"):
    arithmetic(_op)
CASES.pop("Equal broadcast")  # onnxruntime's opset 7 has no float Equal


def convolution(draw: Draw, graph: Graph, *, rank: int, integers: bool = False) -> dict[str, Any]:
    """Draw a convolution's attributes, and its x and weight arrays."""
    groups = draw.size(1, 3)
    depth, per_group = draw.size(1, 3), draw.size(1, 3)
    if draw.one(True, False):
        depth = 1
    kernel = tuple(draw.size(1, 3) for _ in range(rank))
    spatial = tuple(draw.size(6, 9) for _ in range(rank))
    attributes: dict[str, Any] = {
        "group": groups,
        "strides": [draw.size(1, 2) for _ in range(rank)],
        "dilations": [draw.size(1, 2) for _ in range(rank)],
    }
    if draw.one(True, False):
        attributes["kernel_shape"] = list(kernel)
    mode = draw.one("pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if mode == "pads":
        attributes["pads"] = [draw.size(0, 2) for _ in range(2 * rank)]
    else:
        attributes["auto_pad"] = mode
        attributes["dilations"] = [1] * rank
    make = bytes_ if integers else floats
    return {
        "x": make(draw.size(1, 2), groups * depth, *spatial),
        "w": make(groups * per_group, depth, *kernel),
        "attributes": attributes,
    }


def conv_case(rank: int) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(7, 11, 17, 20))
        drawn = convolution(draw, graph, rank=rank)
        inputs = [graph.input(drawn["x"]), graph.constant(drawn["w"])]
        if draw.one(True, False):
            inputs.append(graph.constant(floats(drawn["w"].shape[0])))
        graph.node("Conv", inputs, **drawn["attributes"])
        return graph

    CASES[f"Conv {rank}d"] = build


for _rank in (1, 2, 3):
    conv_case(_rank)


@case
def conv_transpose(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 11, 17))
    groups, depth, per_group, rank = draw.size(1, 2), draw.size(1, 3), draw.size(1, 3), draw.size(1, 2)
    kernel = tuple(draw.size(2, 3) for _ in range(rank))
    strides = [draw.size(1, 3) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "group": groups,
        "strides": strides,
        "pads": [draw.size(0, 1) for _ in range(2 * rank)],
    }
    if draw.one(True, False):
        attributes["output_padding"] = [draw.size(0, stride - 1) if stride > 1 else 0 for stride in strides]
    x = graph.input(floats(draw.size(1, 2), groups * depth, *(draw.size(3, 6) for _ in range(rank))))
    graph.node("ConvTranspose", [x, graph.constant(floats(groups * depth, per_group, *kernel))], **attributes)
    return graph


@case
def conv_integer(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 17))
    drawn = convolution(draw, graph, rank=2, integers=True)
    graph.node("ConvInteger", [graph.input(drawn["x"]), graph.constant(drawn["w"])], **drawn["attributes"])
    return graph


@case
def qlinear_conv(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 17))
    drawn = convolution(draw, graph, rank=2, integers=True)
    scale, zero = graph.constant(0.1, F32), graph.constant(0, np.uint8)
    inputs = [graph.input(drawn["x"]), scale, zero, graph.constant(drawn["w"]), scale, zero, scale, zero]
    if draw.one(True, False):
        inputs.append(graph.constant(np.ones(drawn["w"].shape[0], np.int32)))
    graph.node("QLinearConv", inputs, **drawn["attributes"])
    return graph


@case
def matmul(draw: Draw) -> Graph:
    graph = Graph(draw.one(9, 13, 17))
    batch = draw.shape(draw.size(0, 2), 3)
    rows, depth, columns = draw.size(), draw.size(), draw.size()
    left = (depth,) if draw.one(True, False, False) else (*batch, rows, depth)
    right = (
        (depth,) if draw.one(True, False, False) else (*(draw.one(dim, 1) for dim in batch), depth, columns)
    )
    b = floats(*right)
    graph.node(
        "MatMul", [graph.input(floats(*left)), graph.constant(b) if draw.one(True, False) else graph.input(b)]
    )
    return graph


def gemm_like(op_type: str, domain: str = "", **extra: Any) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(9, 11, 13, 17))
        rows, depth, columns = draw.size(), draw.size(), draw.size()
        swap_a, swap_b = draw.one(0, 1), draw.one(0, 1)
        a = graph.input(floats(*((depth, rows) if swap_a else (rows, depth))))
        b = graph.constant(floats(*((columns, depth) if swap_b else (depth, columns))))
        bias = draw.one((columns,), (1, columns), (rows, 1), (rows, columns))
        inputs = [a, b, graph.constant(floats(*bias))]
        graph.node(op_type, inputs, domain=domain, transA=swap_a, transB=swap_b, alpha=0.5, beta=2.0, **extra)
        return graph

    CASES[op_type] = build


gemm_like("Gemm")
gemm_like("FusedGemm", MICROSOFT, activation="Relu")


@case
def fused_matmul(draw: Draw) -> Graph:
    graph = Graph(17)
    batch, rows, depth, columns = draw.shape(draw.size(0, 2), 3), draw.size(), draw.size(), draw.size()
    swap_a, swap_b = draw.one(0, 1), draw.one(0, 1)
    a = graph.input(floats(*batch, *((depth, rows) if swap_a else (rows, depth))))
    b = graph.input(floats(*batch, *((columns, depth) if swap_b else (depth, columns))))
    graph.node("FusedMatMul", [a, b], domain=MICROSOFT, transA=swap_a, transB=swap_b)
    return graph


@case
def matmul_integer(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 17))
    batch, rows, depth, columns = draw.shape(draw.size(0, 2), 3), draw.size(), draw.size(), draw.size()
    graph.node(
        "MatMulInteger", [graph.input(bytes_(*batch, rows, depth)), graph.constant(bytes_(depth, columns))]
    )
    return graph


@case
def qlinear_matmul(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 17))
    scale, zero = graph.constant(0.1, F32), graph.constant(0, np.uint8)
    rows, depth, columns = draw.size(), draw.size(), draw.size()
    a, b = graph.input(bytes_(rows, depth)), graph.constant(bytes_(depth, columns))
    graph.node("QLinearMatMul", [a, scale, zero, b, scale, zero, scale, zero])
    return graph


@case
def dynamic_quantise_matmul(draw: Draw) -> Graph:
    graph = Graph(17)
    rows, depth, columns = draw.size(), draw.size(), draw.size()
    a, b = graph.input(floats(rows, depth)), graph.constant(bytes_(depth, columns, dtype=np.int8))
    graph.node("DynamicQuantizeMatMul", [a, b, graph.constant([0.1], F32)], domain=MICROSOFT)
    return graph


@case
def matmul_n_bits(draw: Draw) -> Graph:
    graph = Graph(17)
    depth, columns = 32 * draw.size(1, 3), draw.size(1, 8)
    blocks = -(-depth // 32)
    b = graph.constant(bytes_(columns, blocks, 16))
    scales = graph.constant(floats(columns * blocks))
    x = graph.input(floats(*draw.shape(draw.size(1, 2)), depth))
    graph.node("MatMulNBits", [x, b, scales], domain=MICROSOFT, K=depth, N=columns, bits=4, block_size=32)
    return graph


@case
def einsum(draw: Draw) -> Graph:
    graph = Graph(draw.one(12, 17))
    equation = draw.one(
        "bij,bjk->bik", "ij,kj->ik", "bhid,bhjd->bhij", "ij,ij->ij", "ij->ji", "ij,ij->", "ij->i"
    )
    sizes = {label: draw.size() for label in sorted(set(equation) - set(",->"))}
    terms = equation.partition("->")[0].split(",")
    inputs = [graph.input(floats(*(sizes[label] for label in term))) for term in terms]
    graph.node("Einsum", inputs, equation=equation)
    return graph


def recurrent_case(op_type: str, gates: int) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(7, 14, 17))
        direction = draw.one("forward", "reverse", "bidirectional")
        directions = 2 if direction == "bidirectional" else 1
        width, hidden = draw.size(), draw.size()
        x = graph.input(floats(draw.size(), draw.size(1, 3), width))
        weights = [
            graph.constant(floats(directions, gates * hidden, width)),
            graph.constant(floats(directions, gates * hidden, hidden)),
        ]
        if draw.one(True, False):
            weights.append(graph.constant(floats(directions, 2 * gates * hidden)))
        outputs = 3 if op_type == "LSTM" else 2
        graph.node(op_type, [x, *weights], outputs=outputs, hidden_size=hidden, direction=direction)
        return graph

    CASES[op_type] = build


for _op, _gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    recurrent_case(_op, _gates)


def pool_case(op_type: str) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(10, 12, 17, 19 if op_type == "AveragePool" else 17))
        rank = draw.size(1, 3)
        kernel = [draw.size(1, 3) for _ in range(rank)]
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": [draw.size(1, size) for size in kernel],
        }
        if draw.one(True, False):
            attributes["pads"] = [draw.size(0, size - 1) if size > 1 else 0 for size in kernel * 2]
            if op_type != "LpPool":
                attributes["ceil_mode"] = draw.one(0, 1)
        else:
            attributes["auto_pad"] = draw.one("SAME_UPPER", "SAME_LOWER", "VALID")
        x = graph.input(floats(draw.size(1, 2), draw.size(1, 3), *(draw.size(4, 9) for _ in range(rank))))
        graph.node(op_type, [x], **attributes)
        return graph

    CASES[op_type] = build


for _op in ("MaxPool", "AveragePool"):
    pool_case(_op)


@case
def max_pool_with_indices(draw: Draw) -> Graph:
    graph = Graph(draw.one(8, 12))
    x = graph.input(floats(1, draw.size(1, 3), draw.size(4, 8), draw.size(4, 8)))
    graph.node("MaxPool", [x], outputs=2, kernel_shape=[2, 2], strides=[draw.size(1, 2)] * 2)
    return graph


def global_case(op_type: str) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(7, 17))
        graph.node(op_type, [graph.input(floats(*draw.shape(draw.size(3, 5))))])
        return graph

    CASES[op_type] = build


for _op in ("GlobalAveragePool", "GlobalMaxPool"):
    global_case(_op)


@case
def lrn(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 13))
    graph.node("LRN", [graph.input(floats(1, draw.size(3, 6), 4, draw.size()))], size=draw.one(1, 3, 5))
    return graph


@case
def batch_normalisation(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 9, 14, 15, 17))
    shape = draw.shape(draw.size(2, 5))
    stored = [graph.constant(floats(shape[1])) for _ in range(4)]
    graph.node("BatchNormalization", [graph.input(floats(*shape)), *stored])
    return graph


@case
def instance_normalisation(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 17))
    shape = draw.shape(4)
    graph.node(
        "InstanceNormalization",
        [graph.input(floats(*shape)), *(graph.constant(floats(shape[1])) for _ in range(2))],
    )
    return graph


@case
def layer_normalisation(draw: Draw) -> Graph:
    graph = Graph(17)
    shape = draw.shape(3)
    axis = draw.one(-1, 1, 2)
    weights = [graph.constant(floats(*shape[axis:])) for _ in range(draw.size(1, 2))]
    graph.node("LayerNormalization", [graph.input(floats(*shape)), *weights], axis=axis)
    return graph


def reduce_case(op_type: str) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(draw.one(11, 13, 18))
        rank = draw.size(2, 4)
        axes = sorted(
            {draw.size(0, rank - 1) - draw.one(0, rank) for _ in range(2)}, key=lambda axis: axis % rank
        )
        axes = [
            axis for index, axis in enumerate(axes) if axis % rank not in {a % rank for a in axes[:index]}
        ]
        inputs, attributes = [graph.input(floats(*draw.shape(rank)))], {"keepdims": draw.one(0, 1)}
        as_input = graph.opset >= (13 if op_type == "ReduceSum" else 18)
        if as_input:
            inputs.append(graph.constant(axes, I64))
        elif draw.one(True, False):
            attributes["axes"] = axes
        graph.node(op_type, inputs, **attributes)
        return graph

    CASES[op_type] = build


for _op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"):
    reduce_case(_op)


@case
def arg_max(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13))
    graph.node("ArgMax", [graph.input(floats(*draw.shape(3)))], axis=draw.size(0, 2), keepdims=draw.one(0, 1))
    return graph


@case
def top_k(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 11))
    x = graph.input(floats(3, 3, 3))
    graph.node("TopK", [x, graph.constant([draw.size(1, 3)], I64)], outputs=2, axis=draw.one(-1, 0, 1))
    return graph


@case
def prelu(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 9, 16))
    shape = draw.shape(4)
    graph.node("PRelu", [graph.input(floats(*shape)), graph.constant(floats(shape[1], 1, 1))])
    return graph


@case
def clip(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 11, 13))
    x = graph.input(floats(*draw.shape(3)))
    if graph.opset < 11:
        graph.node("Clip", [x], min=0.0, max=6.0)
    else:
        graph.node("Clip", [x, graph.constant(0, F32), graph.constant(6, F32)])
    return graph


@case
def where_(draw: Draw) -> Graph:
    graph = Graph(draw.one(9, 16))
    rows, columns = draw.size(), draw.size()
    condition = graph.input(np.asarray(RANDOM.uniform(0, 1, (rows, 1)) > 0.5))
    graph.node("Where", [condition, graph.input(floats(rows, columns)), graph.constant(0, F32)])
    return graph


@case
def cast_(draw: Draw) -> Graph:
    graph = Graph(draw.one(9, 13))
    to = draw.one(
        TensorProto.FLOAT16, TensorProto.INT32, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT8
    )
    graph.node("Cast", [graph.input(floats(*draw.shape(3)))], to=to)
    return graph


@case
def concat(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 13))
    shape, axis = draw.shape(3), draw.one(-1, 0, 1, 2)
    parts = []
    for _ in range(draw.size(1, 3)):
        dims = list(shape)
        dims[axis] = draw.size()
        parts.append(graph.input(floats(*dims)))
    graph.node("Concat", parts, axis=axis)
    return graph


@case
def slice_(draw: Draw) -> Graph:
    graph = Graph(draw.one(9, 10, 13))
    x = graph.input(floats(6, 7, 8))
    starts, ends = [draw.size(-8, 4)], [draw.one(-1, 3, 6, 1 << 40)]
    axes = [draw.one(0, 1, -1)]
    if graph.opset < 10:
        graph.node("Slice", [x], starts=starts, ends=ends, axes=axes)
        return graph
    step = draw.one(1, 2, -1)
    if step < 0:
        starts, ends = [draw.one(-1, 4)], [draw.one(0, -(1 << 40))]
    graph.node("Slice", [x, *(graph.constant(bound, I64) for bound in (starts, ends, axes, [step]))])
    return graph


@case
def split_(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13, 18))
    parts = [draw.size() for _ in range(draw.size(1, 3))]
    x = graph.input(floats(2, sum(parts), 2))
    if graph.opset < 13:
        graph.node("Split", [x], outputs=len(parts), axis=1, split=parts)
    else:
        graph.node("Split", [x, graph.constant(parts, I64)], outputs=len(parts), axis=1)
    return graph


@case
def split_evenly(draw: Draw) -> Graph:
    graph = Graph(18)
    count = draw.size(1, 3)
    x = graph.input(floats(2, draw.size(count + 2, 9)))
    graph.node("Split", [x], outputs=count, axis=-1, num_outputs=count)
    return graph


@case
def gather(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 11, 13))
    axis = draw.size(0, 2)
    data, indices = (
        floats(*(draw.size(3, 5) for _ in range(3))),
        bytes_(*draw.shape(draw.size(0, 2)), dtype=I64) % 3,
    )
    table = graph.constant(data) if draw.one(True, False) else graph.input(data)
    graph.node("Gather", [table, graph.input(indices)], axis=axis)
    return graph


@case
def gather_elements(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13))
    graph.node(
        "GatherElements",
        [graph.input(floats(4, 4)), graph.input(bytes_(draw.size(1, 4), 4, dtype=I64) % 4)],
        axis=0,
    )
    return graph


@case
def gather_nd(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13))
    graph.node(
        "GatherND",
        [graph.input(floats(4, 4, 4)), graph.input(bytes_(draw.size(), draw.size(1, 3), dtype=I64) % 4)],
    )
    return graph


@case
def scatter_nd(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 16))
    count = draw.size(1, 3)
    inputs = [
        graph.input(floats(4, 5)),
        graph.input(bytes_(count, 1, dtype=I64) % 4),
        graph.input(floats(count, 5)),
    ]
    graph.node("ScatterND", inputs)
    return graph


@case
def transpose(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 13))
    graph.node(
        "Transpose",
        [graph.input(floats(*draw.shape(4)))],
        perm=draw.one((0, 2, 1, 3), (3, 2, 1, 0), (0, 2, 3, 1)),
    )
    return graph


@case
def pad(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 11, 13, 18))
    pads = [draw.size(0, 2) for _ in range(6)]
    x = graph.input(floats(3, 4, 5))
    if graph.opset < 11:
        graph.node("Pad", [x], pads=pads)
    else:
        graph.node("Pad", [x, graph.constant(pads, I64)], mode=draw.one("constant", "edge"))
    return graph


@case
def expand(draw: Draw) -> Graph:
    graph = Graph(draw.one(8, 13))
    graph.node(
        "Expand", [graph.input(floats(draw.size(), 1)), graph.constant([draw.size(), 1, draw.size()], I64)]
    )
    return graph


@case
def tile(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 13))
    graph.node("Tile", [graph.input(floats(*draw.shape(2))), graph.constant([draw.size(), draw.size()], I64)])
    return graph


@case
def resize_by_scales(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 11, 13, 18))
    scales = graph.constant([1, 1, draw.one(0.5, 1.5, 2.0), draw.one(0.6, 2.0)], F32)
    x = graph.input(floats(1, draw.size(1, 3), draw.size(3, 7), draw.size(3, 7)))
    graph.node(
        "Resize", [x, scales] if graph.opset < 11 else [x, graph.constant([], F32), scales], mode="nearest"
    )
    return graph


@case
def resize_to_sizes(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13, 18))
    x = graph.input(floats(1, 2, 4, 5))
    graph.node(
        "Resize",
        [x, *[graph.constant([], F32)] * 2, graph.constant([1, 2, draw.size(), draw.size()], I64)],
        mode="linear",
    )
    return graph


@case
def upsample(draw: Draw) -> Graph:
    graph = Graph(9)
    x = graph.input(floats(1, 2, draw.size(), draw.size()))
    graph.node("Upsample", [x, graph.constant([1, 1, 2, draw.one(1.0, 2.0, 1.5)], F32)])
    return graph


@case
def depth_to_space(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 11, 13))
    graph.node(
        "DepthToSpace", [graph.input(floats(1, 4 * draw.size(), draw.size(), draw.size()))], blocksize=2
    )
    return graph


@case
def space_to_depth(draw: Draw) -> Graph:
    graph = Graph(draw.one(7, 13))
    graph.node(
        "SpaceToDepth", [graph.input(floats(1, draw.size(), 2 * draw.size(), 2 * draw.size()))], blocksize=2
    )
    return graph


@case
def quantise_and_back(draw: Draw) -> Graph:
    graph = Graph(draw.one(10, 13, 19))
    scale, zero = graph.constant(0.1, F32), graph.constant(3, draw.one(np.uint8, np.int8))
    q = graph.node("QuantizeLinear", [graph.input(floats(*draw.shape(3))), scale, zero])
    graph.node("DequantizeLinear", [q, scale, zero])
    return graph


@case
def qlinear_add(draw: Draw) -> Graph:
    graph = Graph(17)
    scale, zero = graph.constant(0.1, F32), graph.constant(0, np.uint8)
    rows, columns = draw.size(), draw.size()
    a, b = graph.input(bytes_(rows, columns)), graph.input(bytes_(draw.one(1, rows), columns))
    graph.node("QLinearAdd", [a, scale, zero, b, scale, zero, scale, zero], domain=MICROSOFT)
    return graph


@case
def squeeze_unsqueeze(draw: Draw) -> Graph:
    graph = Graph(draw.one(11, 13))
    x, axes = graph.input(floats(draw.size(), draw.size())), [draw.one(0, 1, 2, -1)]
    if graph.opset < 13:
        graph.node("Squeeze", [graph.node("Unsqueeze", [x], axes=axes)], axes=axes)
    else:
        given = graph.constant(axes, I64)
        graph.node("Squeeze", [graph.node("Unsqueeze", [x, given]), given])
    return graph


@case
def shape_arithmetic(draw: Draw) -> Graph:
    """Dims that are computed: Shape, Gather, Mul, Concat, Slice, then Reshape, Expand, ConstantOfShape."""
    graph = Graph(draw.one(11, 13, 17))
    rows, columns = draw.size(), 2 * draw.size()
    x = graph.input(floats(rows, columns, 3))
    shape = graph.node("Shape", [x])
    first = graph.node("Gather", [shape, graph.constant([0], I64)])
    second = graph.node("Slice", [shape, *(graph.constant([bound], I64) for bound in (1, 2, 0))])
    half = graph.node("Div", [second, graph.constant([2], I64)])
    product = graph.node("Mul", [half, graph.constant([6], I64)])
    wanted = graph.node("Concat", [first, product], axis=0)
    flat = graph.node("Reshape", [x, wanted])
    back = graph.node("Reshape", [flat, graph.node("Concat", [graph.constant([-1], I64), half], axis=0)])
    graph.node(
        "MatMul", [back, graph.node("ConstantOfShape", [graph.node("Concat", [half, second], axis=0)])]
    )
    return graph


@case
def opset23_attention(draw: Draw) -> Graph:
    graph = Graph(23)
    batch, heads, width = draw.size(1, 2), draw.size(1, 3), draw.size()
    queries, keys = draw.size(), draw.size()
    q = graph.input(floats(batch, heads, queries, width))
    k = graph.input(floats(batch, heads, keys, width))
    v = graph.input(floats(batch, heads, keys, draw.size()))
    graph.node("Attention", [q, k, v])
    return graph


@case
def decomposed_attention(draw: Draw) -> Graph:
    graph = Graph(draw.one(13, 17))
    heads, tokens, width = draw.size(1, 3), draw.size(), draw.size()
    q, k, v = (graph.input(floats(1, heads, tokens, width)) for _ in range(3))
    scores = graph.node("MatMul", [q, graph.node("Transpose", [k], perm=(0, 1, 3, 2))])
    scaled = graph.node("Mul", [scores, graph.constant(0.5, F32)])
    graph.node("MatMul", [graph.node("Softmax", [scaled], axis=-1), v])
    return graph


@case
def grid_sample(draw: Draw) -> Graph:
    graph = Graph(draw.one(16, 20))
    graph.node(
        "GridSample", [graph.input(floats(1, 2, 4, 4)), graph.input(floats(1, draw.size(), draw.size(), 2))]
    )
    return graph


def activation_of_microsoft(op_type: str) -> None:
    def build(draw: Draw) -> Graph:
        graph = Graph(17)
        graph.node(op_type, [graph.input(floats(*draw.shape(3)))], domain=MICROSOFT)
        return graph

    CASES[op_type] = build


for _op in ("FastGelu", "QuickGelu"):
    activation_of_microsoft(_op)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


@settings(
    max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_counted_is_executed(name: str, data: st.DataObject) -> None:
    graph = CASES[name](Draw(data))
    model = graph.model()
    values, kernels = executed(model, graph.feeds)
    values |= graph.feeds | graph.constants
    assert sorted(int(event["args"]["node_index"]) for event in kernels) == list(range(len(graph.nodes)))
    layers = analyze(model).layers
    for layer, node in zip(layers, graph.nodes, strict=True):
        ins = [values[name] for name in node.input if name]
        outs = [values[name] for name in node.output]
        assert [dims for _, dims in layer.outputs] == [out.shape for out in outs]
        assert [dtype for dtype, _ in layer.outputs] == [str(out.dtype) for out in outs]
        assert layer.macc == (MACC[node.op_type](node, ins, outs) if node.op_type in MACC else 0)
        assert other_ops(node, ins, outs) in {None, layer.other_ops}
        assert layer.memory_bytes == moved(node, values, outs)
        assert not layer.uncounted
