"""One convolution by its geometry, and what its alternatives cost.

Bytes are those of one pass with every cache ignored: read the input and the weights once, write the
output once; bias, normalisation and activation are folded in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from roof_agent.errors import UsageError
from roof_collector.analysis.roofline import Roofline, RooflineTime

# Bits of an element; what is below a byte is packed. By name and not by number (as in tensor.py), so that
# questions about one layer are answered without loading onnx.
ELEMENT_BITS = {
    "float64": 64,
    "float32": 32,
    "float16": 16,
    "bfloat16": 16,
    "int8": 8,
    "uint8": 8,
    "int4": 4,
    "uint4": 4,
}


def packed_bytes(elements: int, element_type: str) -> int:
    """Return the bytes of `elements` packed elements, rounded up."""
    if element_type not in ELEMENT_BITS:
        raise UsageError(f"no element type {element_type!r}; there are {', '.join(ELEMENT_BITS)}")
    return -(-elements * ELEMENT_BITS[element_type] // 8)


@dataclass(frozen=True)
class Step:
    """Work that is done between reading from memory and writing back.

    `transform_instructions` are additions or multiply-adds of a transform: each takes the place of
    one multiply-accumulate in the arithmetic unit, but saves none, so it is counted apart.
    """

    name: str
    macc: int
    params: int
    input_bytes: int
    param_bytes: int
    output_bytes: int
    transform_instructions: int = 0

    @property
    def memory_bytes(self) -> int:
        """Bytes read and written, caches ignored."""
        return self.input_bytes + self.param_bytes + self.output_bytes

    def time(self, roofline: Roofline) -> RooflineTime:
        """Return what the ceilings allow, the transforms' instructions included."""
        work = 2 * (self.macc + self.transform_instructions)
        return RooflineTime(work / roofline.flops_per_s, self.memory_bytes / roofline.bytes_per_s)


@dataclass(frozen=True)
class Variant:
    """One way to compute a layer, as steps that each go through memory; `note` says its terms."""

    name: str
    steps: tuple[Step, ...]
    element_type: str
    note: str = ""

    @property
    def macc(self) -> int:
        """Multiply-accumulates of all steps."""
        return sum(step.macc for step in self.steps)

    @property
    def transform_instructions(self) -> int:
        """Transforms' instructions of all steps."""
        return sum(step.transform_instructions for step in self.steps)

    @property
    def params(self) -> int:
        """Weights and biases of all steps."""
        return sum(step.params for step in self.steps)

    @property
    def flops(self) -> int:
        """Twice the multiply-accumulates, and the transforms' instructions."""
        return 2 * self.macc + self.transform_instructions

    @property
    def memory_bytes(self) -> int:
        """Bytes of all steps."""
        return sum(step.memory_bytes for step in self.steps)

    @property
    def intensity(self) -> float | None:
        """FLOP/byte."""
        return self.flops / self.memory_bytes if self.memory_bytes else None

    def seconds(self, roofline: Roofline) -> float:
        """Return the sum of the steps' roofline times."""
        return sum(step.time(roofline).seconds for step in self.steps)

    def bound(self, roofline: Roofline) -> str:
        """Return what binds the step that takes longest."""
        longest = max(self.steps, key=lambda step: step.time(roofline).seconds)
        return longest.time(roofline).bound


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution; `pad` rows and columns of zeros on each side."""

    cin: int
    cout: int
    height: int
    width: int
    kernel: tuple[int, int] = (3, 3)
    stride: int = 1
    pad: tuple[int, int] | None = None
    groups: int = 1
    batch: int = 1
    bias: bool = False

    def __post_init__(self) -> None:
        """Refuse a geometry that gives no convolution (UsageError)."""
        sizes = (
            self.cin,
            self.cout,
            self.height,
            self.width,
            *self.kernel,
            self.stride,
            self.groups,
            self.batch,
        )
        if min(sizes) < 1:
            raise UsageError(
                "a convolution's channels, sizes, kernel, stride, groups and batch are 1 or more"
            )
        if self.cin % self.groups or self.cout % self.groups:
            raise UsageError(
                f"{self.groups} groups don't divide {self.cin} input and {self.cout} output channels"
            )
        if min(self.out_height, self.out_width) < 1:
            raise UsageError("the kernel is larger than the padded input")

    @property
    def pads(self) -> tuple[int, int]:
        """Padding of each side; unless given, half the kernel, which keeps the size at stride 1."""
        return (self.kernel[0] // 2, self.kernel[1] // 2) if self.pad is None else self.pad

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return (self.height + 2 * self.pads[0] - self.kernel[0]) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return (self.width + 2 * self.pads[1] - self.kernel[1]) // self.stride + 1

    @property
    def input_elements(self) -> int:
        """Elements of the input."""
        return self.batch * self.cin * self.height * self.width

    @property
    def output_elements(self) -> int:
        """Elements of the output."""
        return self.batch * self.cout * self.out_height * self.out_width

    @property
    def weights(self) -> int:
        """Elements of the weight tensor, without bias."""
        return self.cout * self.cin // self.groups * math.prod(self.kernel)

    @property
    def params(self) -> int:
        """Weights and bias."""
        return self.weights + (self.cout if self.bias else 0)

    @property
    def macc(self) -> int:
        """Multiply-accumulates: N * Cin/g * prod(K) * Cout * prod(out)."""
        return self.output_elements * self.cin // self.groups * math.prod(self.kernel)

    def step(self, element_type: str, name: str = "conv") -> Step:
        """Return the convolution computed directly, all its tensors at `element_type`."""
        return Step(
            name,
            macc=self.macc,
            params=self.params,
            input_bytes=packed_bytes(self.input_elements, element_type),
            param_bytes=packed_bytes(self.params, element_type),
            output_bytes=packed_bytes(self.output_elements, element_type),
        )


def plain(conv: Convolution, element_type: str) -> Variant:
    """Return the convolution as it is."""
    return Variant("plain", (conv.step(element_type),), element_type)


Layers = tuple[tuple[str, Convolution], ...]


def bottleneck_layers(conv: Convolution, *, reduction: int = 4) -> Layers:
    """Return ResNet's bottleneck: 1x1 down to Cout/reduction, the kernel there, 1x1 up to Cout.

    He et al., arXiv 1512.03385.
    """
    width = max(1, conv.cout // reduction)
    down = replace(conv, cout=width, kernel=(1, 1), pad=None, stride=1, groups=1)
    middle = replace(conv, cin=width, cout=width, groups=1)
    return ("1x1 down", down), ("conv", middle), ("1x1 up", _pointwise(middle, conv.cout))


def separable_layers(conv: Convolution) -> Layers:
    """Return MobileNet's block: depthwise with the kernel, then 1x1 (Howard et al., arXiv 1704.04861)."""
    depthwise = replace(conv, cout=conv.cin, groups=conv.cin)
    return ("depthwise", depthwise), ("pointwise", _pointwise(depthwise, conv.cout))


def _pointwise(before: Convolution, channels: int) -> Convolution:
    size = before.out_height, before.out_width
    return Convolution(before.cout, channels, *size, (1, 1), batch=before.batch, bias=before.bias)


def bottleneck(conv: Convolution, element_type: str) -> Variant:
    """Return the bottleneck in place of the convolution."""
    layers = bottleneck_layers(conv)
    widths = [conv.cin, *(layer.cout for _, layer in layers)]
    return _sequence("bottleneck", layers, element_type, "-".join(map(str, widths)))


def depthwise_separable(conv: Convolution, element_type: str) -> Variant:
    """Return the depthwise-separable block in place of the convolution."""
    return _sequence("depthwise separable", separable_layers(conv), element_type, "two layers")


def _sequence(name: str, layers: Layers, element_type: str, note: str) -> Variant:
    steps = tuple(layer.step(element_type, part) for part, layer in layers)
    return Variant(name, steps, element_type, note)


def grouped(conv: Convolution, element_type: str, groups: Iterable[int]) -> list[Variant]:
    """Return the convolution in each number of groups that divides its channels."""
    return [
        Variant(f"{count} groups", (replace(conv, groups=count).step(element_type),), element_type)
        for count in groups
        if count != conv.groups and conv.cin % count == 0 and conv.cout % count == 0
    ]


def structured_sparsity(conv: Convolution, element_type: str, sparsity: float) -> Variant:
    """Return the convolution with that share of its output channels pruned: smaller, still dense."""
    kept = max(1, round(conv.cout * (1 - _share(sparsity)) / conv.groups)) * conv.groups
    step = replace(conv, cout=kept).step(element_type)
    return Variant(
        f"structured sparsity {sparsity:g}", (step,), element_type, f"{kept} of {conv.cout} channels"
    )


def unstructured_sparsity(conv: Convolution, element_type: str, sparsity: float) -> Variant:
    """Return the convolution with that share of single weights zero and skipped.

    The weights are stored as values and a mask of one bit each. The time supposes that the skipping
    itself is free and keeps the peak, which no CPU kernel does: it is a lower bound.
    """
    kept = conv.weights - round(conv.weights * _share(sparsity))
    dense = conv.step(element_type)
    params = kept + conv.params - conv.weights
    step = replace(
        dense,
        macc=conv.output_elements // conv.cout * kept,
        params=params,
        param_bytes=packed_bytes(params, element_type) + -(-conv.weights // 8),
    )
    return Variant(
        f"unstructured sparsity {sparsity:g}", (step,), element_type, "values and a bit mask; a lower bound"
    )


def _share(sparsity: float) -> float:
    if not 0 <= sparsity < 1:
        raise UsageError(f"a sparsity of {sparsity:g} isn't possible; it is 0 or more and below 1")
    return sparsity
