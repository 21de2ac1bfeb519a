"""Attention in one operator: QK^T and AV for each query head, and its projections where it holds them."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, Node, OpenShapeError
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import like
from roof_collector.analysis.symbols import Dim, floor_divide, product
from roof_collector.analysis.tensor import Shape, Tensor


def attended(
    batch: Dim, heads: Dim, queries: Dim, keys: Dim, width: Dim, value_width: Dim
) -> tuple[Dim, Dim]:
    """Return macc (scores and weighted sum) and other operations (softmax, one a score)."""
    scores = batch * heads * queries * keys
    return scores * (width + value_width), scores


def _present(node: Node, batch: Dim, heads: Dim, keys: Dim, width: Dim) -> Tensor:
    return Tensor(node.input(0).dtype, (batch, heads, keys, width))


@rule("Attention")
def attention(node: Node) -> Cost:
    """ONNX's own (opset 23): Q, K, V of [N, heads, T, W] or [N, T, heads*W]; past and present cache."""
    query, key, value = node.shape(0), node.shape(1), node.shape(2)
    flat = len(query) == 3
    if flat:
        heads, kv_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
        queries, keys = query[1], key[1]
        width, value_width = floor_divide(query[2], heads), floor_divide(value[2], kv_heads)
    else:
        heads, kv_heads = query[1], key[1]  # type: ignore[assignment]
        queries, keys, width, value_width = query[2], key[2], query[3], value[3]
    if (past := node.optional(4)) is not None and past.shape is not None:
        keys = keys + past.shape[2]
    macc, scores = attended(query[0], heads, queries, keys, width, value_width)
    out: Shape = (query[0], queries, heads * value_width) if flat else (*query[:3], value_width)
    outputs = [
        Tensor(node.input(0).dtype, out),
        _present(node, query[0], kv_heads, keys, width),
        _present(node, query[0], kv_heads, keys, value_width),
        Tensor(node.input(0).dtype, (query[0], heads, queries, keys)),
    ]
    return Cost(outputs[: len(node.outputs)], "attention", macc, scores)


@rule("Attention", "QAttention", domain=MICROSOFT)
def packed_attention(node: Node) -> Cost:
    """onnxruntime's: the projection [D, 3*D] of the input, then attention."""
    x, weight = node.shape(0, 3), node.shape(1, 2)
    heads = node.integer("num_heads", 1)
    sizes = node.integers("qkv_hidden_sizes")
    third = floor_divide(weight[1], 3)
    query_size, _, value_size = sizes or (third, third, third)
    quantised = node.op_type == "QAttention"
    past = node.optional(8 if quantised else 4)
    keys = x[1]
    if past is not None and past.shape is not None:
        keys = keys + past.shape[-2]
    projection = x[0] * x[1] * weight[0] * weight[1]
    width, value_width = floor_divide(query_size, heads), floor_divide(value_size, heads)
    macc, scores = attended(x[0], heads, x[1], keys, width, value_width)
    dtype = node.input(3 if quantised else 0).dtype
    outputs = [Tensor(dtype, (*x[:2], value_size)), Tensor(dtype, (2, x[0], heads, keys, width))]
    kind = "quantised-attention" if quantised else "attention"
    return Cost(outputs[: len(node.outputs)], kind, projection + macc, scores, weights=(1, 2))


@rule("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> Cost:
    """Q [N, T, D]; K, V [N, S, D] or already [N, heads, S, W]; or all packed into Q [N, T, heads, 3, W]."""
    query, heads = node.shape(0), node.integer("num_heads", 1)
    key, value = node.optional(1), node.optional(2)
    if len(query) == 5:
        width = value_width = query[4]
        keys = query[1]
    elif key is not None and key.shape is not None:
        width = floor_divide(query[2], heads)
        keys = key.shape[2] if len(key.shape) == 4 else key.shape[1]
        if value is None or value.shape is None:
            value_width = width
        else:
            value_width = value.shape[3] if len(value.shape) == 4 else floor_divide(value.shape[2], heads)
    else:
        raise OpenShapeError("the shape of its keys is unknown")
    past = node.optional(6 if node.op_type == "MultiHeadAttention" else 5)
    if past is not None and past.shape is not None:
        keys = keys + past.shape[2]
    macc, scores = attended(query[0], heads, query[1], keys, width, value_width)
    outputs = [
        Tensor(node.input(0).dtype, (query[0], query[1], heads * value_width)),
        _present(node, query[0], heads, keys, width),
        _present(node, query[0], heads, keys, value_width),
    ]
    return Cost(outputs[: len(node.outputs)], "attention", macc, scores, weights=(3,))


@rule("GroupQueryAttention", "SparseAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> Cost:
    """Fewer key heads than query heads; counted for each query head."""
    query, heads, kv_heads = node.shape(0, 3), node.integer("num_heads", 1), node.integer("kv_num_heads", 1)
    key = node.optional(1)
    packed = key is None or key.shape is None
    width = floor_divide(query[2], heads + 2 * kv_heads if packed else heads)
    keys = query[1]
    past = node.optional(3)
    total = node.values(6)
    if total is not None and isinstance(total[0], int):
        keys = total[0]
    elif past is not None and past.shape is not None:
        keys = keys + past.shape[2]
    macc, scores = attended(query[0], heads, query[1], keys, width, width)
    outputs = [
        Tensor(node.input(0).dtype, (*query[:2], heads * width)),
        _present(node, query[0], kv_heads, keys, width),
        _present(node, query[0], kv_heads, keys, width),
    ]
    return Cost(outputs[: len(node.outputs)], "attention", macc, scores)


@rule("LinearAttention")
@rule("LinearAttention", domain=MICROSOFT)
def linear_attention(node: Node) -> Cost:
    """Recurrent: a token's outer product for each key head, its read of the state for each query head.

    The delta rules read the state once more for each key head.
    """
    query, key, value = node.shape(0, 3), node.shape(1, 3), node.shape(2, 3)
    heads, kv_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    width, value_width = floor_divide(key[2], kv_heads), floor_divide(value[2], kv_heads)
    delta = 2 if node.text("update_rule", "gated_delta").endswith("delta") else 1
    macc = query[0] * query[1] * width * value_width * (heads + kv_heads * delta)
    outputs = [
        Tensor(node.input(0).dtype, (*query[:2], heads * value_width)),
        _present(node, query[0], kv_heads, width, value_width),
    ]
    return Cost(outputs[: len(node.outputs)], "attention", macc)


@rule("RotaryEmbedding")
@rule("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node) -> Cost:
    """Rotate pairs: three operations an element (two products and a sum)."""
    return Cost([like(node.input(0))], "elementwise", other_ops=node.elements(0) * 3)


@rule("GemmaRotaryEmbedding", domain=MICROSOFT)
def gemma_rotary_embedding(node: Node) -> Cost:
    """Rotate queries and keys."""
    outputs = [like(node.input(1)), like(node.input(3))]
    return Cost(outputs, "elementwise", other_ops=(node.elements(1) + node.elements(3)) * 3)


@rule("RelativePositionBias", domain=MICROSOFT)
def relative_position_bias(node: Node) -> Cost:
    """Look a bias up for each pair of positions."""
    table, queries, keys = node.shape(0, 2), node.values(1), node.values(2)
    if queries is None or keys is None:
        raise OpenShapeError("the lengths depend on data")
    out: Shape = (1, table[1], queries[0], keys[0])
    return Cost([Tensor(node.input(0).dtype, out)], "gather", weights=(0,), reads={0: product(out)})
