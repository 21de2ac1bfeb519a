"""Normalisations: 2 operations an element, as batch normalisation at inference."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import axis_of, like
from roof_collector.analysis.symbols import Dim
from roof_collector.analysis.tensor import FLOAT, Shape, Tensor


@rule("BatchNormalization")
def batch_normalisation(node: Node) -> Cost:
    """Gamma and beta are learnt; the stored mean and variance are read too, but are no params."""
    x = node.input(0)
    shape = node.shape(0)
    scale = node.shape(1, 1)
    channels = shape[1] if len(shape) > 1 else 1
    if isinstance(channels, int) and isinstance(scale[0], int) and channels != scale[0]:
        raise InvalidNodeError(f"normalises {channels} channels with {scale[0]} factors")
    outputs = [like(x), *(Tensor(x.dtype, scale) for _ in node.outputs[1:])]
    return Cost(outputs, "normalisation", other_ops=node.elements(0) * 2, weights=(1, 2))


@rule("InstanceNormalization", "GroupNormalization")
def affine_normalisation(node: Node) -> Cost:
    """Normalise with statistics of the data itself, then scale and shift."""
    return Cost([like(node.input(0))], "normalisation", other_ops=node.elements(0) * 2, weights=(1, 2))


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
@rule("LayerNormalization", "SimplifiedLayerNormalization", domain=MICROSOFT)
def layer_normalisation(node: Node) -> Cost:
    """Normalise the axes from `axis` on; may write mean and inverse deviation."""
    x, shape = node.input(0), node.shape(0)
    axis = axis_of(node.integer("axis", -1), len(shape))
    statistics = Tensor(FLOAT, (*shape[:axis], *[1] * (len(shape) - axis)))
    outputs = [like(x), *(like(statistics) for _ in node.outputs[1:])]
    return Cost(outputs, "normalisation", other_ops=node.elements(0) * 2, weights=(1, 2))


@rule("MeanVarianceNormalization", "LpNormalization")
def plain_normalisation(node: Node) -> Cost:
    """Normalise with no weights."""
    return Cost([like(node.input(0))], "normalisation", other_ops=node.elements(0) * 2)


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_layer_normalisation(node: Node) -> Cost:
    """Add the residual (and a bias), then normalise: 3 operations an element, 4 with the bias."""
    simplified = node.op_type == "SkipSimplifiedLayerNormalization"
    bias = node.optional(3 if simplified else 4) is not None
    shape = node.shape(0)
    statistics: Shape = (*shape[:-1], 1)
    outputs = [
        like(node.input(0)) if index in {0, 3} else Tensor(FLOAT, statistics)
        for index in range(len(node.outputs))
    ]
    work: Dim = node.elements(0) * (4 if bias else 3)
    return Cost(outputs, "normalisation", other_ops=work, weights=(2, 3, 4))


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalisation(node: Node) -> Cost:
    """Look up to three embeddings up, add and normalise them: reads the rows that it writes."""
    ids, table = node.shape(0, 2), node.shape(2, 2)
    out = (*ids, table[1])
    elements = ids[0] * ids[1] * table[1]
    segments = node.optional(4) is not None
    outputs = [
        Tensor(node.input(2).dtype, out),
        Tensor(node.input(0).dtype, ids[:1]),
        Tensor(node.input(2).dtype, out),
    ]
    reads: dict[int, Dim] = {2: elements, 3: ids[1] * table[1]}
    if segments:
        reads[4] = elements
    work = elements * (4 if segments else 3)
    return Cost(
        outputs[: len(node.outputs)], "normalisation", other_ops=work, weights=(2, 3, 4, 5, 6), reads=reads
    )


@rule("GroupNorm", "SkipGroupNorm", domain=MICROSOFT)
def group_norm(node: Node) -> Cost:
    """Onnxruntime's channels-last group normalisation, with its optional residual."""
    skip = node.op_type == "SkipGroupNorm"
    outputs = [like(node.input(0)) for _ in node.outputs]
    return Cost(outputs, "normalisation", other_ops=node.elements(0) * (3 if skip else 2), weights=(1, 2))
