"""A small writer of weightless ONNX graphs: nodes by kind, shapes tracked, no weight ever made.

Tensors are NCHW. A node and its output share one name, "<kind>_<n>", n counting the nodes that do
work; the views between them (Flatten, Reshape) take the name of the node that they serve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto, helper

OPSET = 17
# The IR that belongs to opset 17: every onnxruntime since 1.12 loads it.
IR_VERSION = 8

ELEMENT_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float64": TensorProto.DOUBLE,
}

Pair = int | tuple[int, int]


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph under construction; `shape` leads with the batch."""

    name: str
    shape: tuple[int, ...]

    @property
    def channels(self) -> int:
        """Size of the second axis."""
        return self.shape[1]


class Graph:
    """One network under construction."""

    def __init__(self, name: str, input_shape: Sequence[int], *, batch: int, element_type: str) -> None:
        self.name = name
        self._element = ELEMENT_TYPES[element_type]
        self.input = Tensor("input", (batch, *input_shape))
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._works = 0

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: Pair,
        *,
        stride: int = 1,
        pad: Pair = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Tensor:
        """Convolve to `channels`; kernel and pad are (height, width) or one number for both."""
        name = self._next("conv")
        kernels, pads = _pair(kernel), _pair(pad)
        inputs = [x.name, self._weight(f"{name}.weight", (channels, x.channels // groups, *kernels))]
        if bias:
            inputs.append(self._weight(f"{name}.bias", (channels,)))
        size = _window(x.shape[2:], kernels, stride, pads)
        self._node(
            "Conv", name, inputs, kernel_shape=kernels, strides=(stride, stride), pads=pads * 2, group=groups
        )
        return Tensor(name, (x.shape[0], channels, *size))

    def batch_norm(self, x: Tensor) -> Tensor:
        """Normalise with stored statistics."""
        name = self._next("bn")
        stored = [self._weight(f"{name}.{part}", (x.channels,)) for part in ("scale", "bias", "mean", "var")]
        self._node("BatchNormalization", name, [x.name, *stored])
        return Tensor(name, x.shape)

    def relu(self, x: Tensor) -> Tensor:
        """Rectify."""
        return self._same("Relu", "relu", x)

    def sigmoid(self, x: Tensor) -> Tensor:
        """Squash to (0, 1)."""
        return self._same("Sigmoid", "sigmoid", x)

    def softmax(self, x: Tensor, axis: int = -1) -> Tensor:
        """Normalise exponentials along `axis`; a feature map of one pixel is flattened first."""
        name = self._next("softmax")
        flat = self._flatten(x, name) if x.shape[2:] == (1, 1) else x
        self._node("Softmax", name, [flat.name], axis=axis)
        return Tensor(name, flat.shape)

    def lrn(self, x: Tensor, *, size: int) -> Tensor:
        """Normalise over `size` neighbouring channels (AlexNet's constants)."""
        name = self._next("lrn")
        self._node("LRN", name, [x.name], size=size, alpha=1e-4, beta=0.75, bias=1.0)
        return Tensor(name, x.shape)

    def max_pool(self, x: Tensor, kernel: int, *, stride: int, pad: int = 0, ceil: bool = False) -> Tensor:
        """Take each window's maximum; `ceil` keeps the last, partial window."""
        return self._pool("MaxPool", x, kernel, stride, pad, ceil_mode=int(ceil))

    def average_pool(self, x: Tensor, kernel: int, *, stride: int, pad: int = 0) -> Tensor:
        """Average each window, padding included."""
        return self._pool("AveragePool", x, kernel, stride, pad, count_include_pad=1)

    def global_average_pool(self, x: Tensor) -> Tensor:
        """Average each channel to one pixel."""
        name = self._next("gap")
        self._node("GlobalAveragePool", name, [x.name])
        return Tensor(name, (*x.shape[:2], 1, 1))

    def fully_connected(self, x: Tensor, features: int) -> Tensor:
        """Multiply by a matrix [features, in] and add a bias; a feature map is flattened first."""
        name = self._next("fc")
        flat = self._flatten(x, name) if len(x.shape) > 2 else x
        weight = self._weight(f"{name}.weight", (features, flat.channels))
        self._node("Gemm", name, [flat.name, weight, self._weight(f"{name}.bias", (features,))], transB=1)
        return Tensor(name, (x.shape[0], features))

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """Add two tensors of one shape."""
        return self._same("Add", "add", a, b)

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply, `b` broadcast to `a`."""
        return self._same("Mul", "mul", a, b)

    def concat(self, *parts: Tensor) -> Tensor:
        """Join along the channels."""
        name = self._next("concat")
        self._node("Concat", name, [part.name for part in parts], axis=1)
        return Tensor(name, (parts[0].shape[0], sum(part.channels for part in parts), *parts[0].shape[2:]))

    def slice_channels(self, x: Tensor, start: int, end: int) -> Tensor:
        """Take channels [start, end)."""
        name = self._next("slice")
        bounds = [
            self._integers(f"{name}.{part}", [value])
            for part, value in (("starts", start), ("ends", end), ("axes", 1))
        ]
        self._node("Slice", name, [x.name, *bounds])
        return Tensor(name, (x.shape[0], end - start, *x.shape[2:]))

    def shuffle(self, x: Tensor, groups: int) -> Tensor:
        """Interleave the channels of `groups` groups: the Transpose works, two Reshapes are views."""
        name = self._next("shuffle")
        height, width = x.shape[2:]
        split = self._reshape(x.name, f"{name}.split", (0, groups, x.channels // groups, height, width))
        self._node("Transpose", name, [split], perm=(0, 2, 1, 3, 4))
        return Tensor(self._reshape(name, f"{name}.merge", (0, x.channels, height, width)), x.shape)

    def layer_norm(self, x: Tensor) -> Tensor:
        """Normalise the last axis."""
        name = self._next("ln")
        width = (x.shape[-1],)
        weights = [self._weight(f"{name}.scale", width), self._weight(f"{name}.bias", width)]
        self._node("LayerNormalization", name, [x.name, *weights], axis=-1, epsilon=1e-12)
        return Tensor(name, x.shape)

    def linear(self, x: Tensor, features: int) -> Tensor:
        """Multiply the last axis by a matrix [in, features], then add a bias (MatMul and Add)."""
        name = self._next("matmul")
        self._node("MatMul", name, [x.name, self._weight(f"{name}.weight", (x.shape[-1], features))])
        product = Tensor(name, (*x.shape[:-1], features))
        bias = self._next("add")
        self._node("Add", bias, [product.name, self._weight(f"{bias}.bias", (features,))])
        return Tensor(bias, product.shape)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply the last two axes."""
        name = self._next("matmul")
        self._node("MatMul", name, [a.name, b.name])
        return Tensor(name, (*a.shape[:-1], b.shape[-1]))

    def split_heads(self, x: Tensor, heads: int, perm: tuple[int, int, int, int]) -> Tensor:
        """[N, T, D] to [N, T, heads, D/heads] (a view), then to the order `perm`."""
        name = self._next("heads")
        shape = (x.shape[0], x.shape[1], heads, x.shape[2] // heads)
        split = self._reshape(x.name, f"{name}.split", (0, *shape[1:]))
        self._node("Transpose", name, [split], perm=perm)
        return Tensor(name, tuple(shape[axis] for axis in perm))

    def merge_heads(self, x: Tensor) -> Tensor:
        """[N, heads, T, W] to [N, T, heads*W]."""
        name = self._next("heads")
        batch, heads, tokens, width = x.shape
        self._node("Transpose", name, [x.name], perm=(0, 2, 1, 3))
        merged = self._reshape(name, f"{name}.merge", (0, tokens, heads * width))
        return Tensor(merged, (batch, tokens, heads * width))

    def scale(self, x: Tensor, factor: float) -> Tensor:
        """Multiply by a constant."""
        return self._with_scalar("Mul", "scale", x, factor)

    def gelu(self, x: Tensor) -> Tensor:
        """Return x * (1 + erf(x / sqrt 2)) / 2, spelled as exporters spelled it before opset 20."""
        inner = self._with_scalar("Div", "gelu", x, math.sqrt(2))
        erf = self._same("Erf", "gelu", inner)
        shifted = self._with_scalar("Add", "gelu", erf, 1.0)
        return self._with_scalar("Mul", "gelu", self._same("Mul", "gelu", x, shifted), 0.5)

    def model(self, result: Tensor) -> onnx.ModelProto:
        """Return the network; `result`, the last node's tensor, becomes "output"."""
        assert self._nodes[-1].output[0] == result.name
        self._nodes[-1].output[0] = "output"
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info("input", self._element, self.input.shape)],
            [helper.make_tensor_value_info("output", self._element, result.shape)],
            self._initializers,
        )
        return helper.make_model(
            graph,
            producer_name="roofline",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )

    def _next(self, kind: str) -> str:
        self._works += 1
        return f"{kind}_{self._works}"

    def _node(self, op_type: str, name: str, inputs: Sequence[str], **attributes: Any) -> None:
        self._nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))

    def _same(self, op_type: str, kind: str, x: Tensor, *others: Tensor) -> Tensor:
        name = self._next(kind)
        self._node(op_type, name, [x.name, *(other.name for other in others)])
        return Tensor(name, x.shape)

    def _with_scalar(self, op_type: str, kind: str, x: Tensor, value: float) -> Tensor:
        name = self._next(kind)
        # A scalar that the graph's meaning hangs on keeps its value: it is no weight.
        self._initializers.append(helper.make_tensor(f"{name}.value", self._element, (), [value]))
        self._node(op_type, name, [x.name, f"{name}.value"])
        return Tensor(name, x.shape)

    def _pool(self, op_type: str, x: Tensor, kernel: int, stride: int, pad: int, **attributes: int) -> Tensor:
        name = self._next("pool")
        ceil = bool(attributes.get("ceil_mode"))
        size = _window(x.shape[2:], (kernel, kernel), stride, (pad, pad), ceil=ceil)
        shapes = {"kernel_shape": (kernel, kernel), "strides": (stride, stride), "pads": (pad,) * 4}
        self._node(op_type, name, [x.name], **shapes, **attributes)
        return Tensor(name, (*x.shape[:2], *size))

    def _flatten(self, x: Tensor, owner: str) -> Tensor:
        name = f"{owner}.flat"
        self._node("Flatten", name, [x.name], axis=1)
        return Tensor(name, (x.shape[0], math.prod(x.shape[1:])))

    def _reshape(self, x: str, name: str, shape: Sequence[int]) -> str:
        # A leading 0 copies the batch, so that another batch can be bound to the finished graph.
        self._node("Reshape", name, [x, self._integers(f"{name}.shape", shape)])
        return name

    def _weight(self, name: str, dims: Sequence[int]) -> str:
        self._initializers.append(TensorProto(name=name, data_type=self._element, dims=dims))
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        self._initializers.append(helper.make_tensor(name, TensorProto.INT64, (len(values),), values))
        return name


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _window(
    size: Sequence[int], kernel: tuple[int, int], stride: int, pad: tuple[int, int], *, ceil: bool = False
) -> tuple[int, ...]:
    spans = [length + 2 * p - k for length, k, p in zip(size, kernel, pad, strict=True)]
    return tuple((-(-span // stride) if ceil else span // stride) + 1 for span in spans)
