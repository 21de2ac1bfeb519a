"""A small transformer encoder: BERT-mini's layers (Turc et al., arXiv 1908.08962).

The embeddings before them are a lookup, not a computation, and are left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

_TOKENS = 128
_WIDTH = 256
_HEADS = 4
_LAYERS = 4
_FEED_FORWARD = 4 * _WIDTH


def _attention(g: Graph, x: Tensor) -> Tensor:
    query = g.split_heads(g.linear(x, _WIDTH), _HEADS, (0, 2, 1, 3))
    key = g.split_heads(g.linear(x, _WIDTH), _HEADS, (0, 2, 3, 1))
    value = g.split_heads(g.linear(x, _WIDTH), _HEADS, (0, 2, 1, 3))
    scores = g.scale(g.matmul(query, key), 1 / math.sqrt(_WIDTH // _HEADS))
    return g.linear(g.merge_heads(g.matmul(g.softmax(scores), value)), _WIDTH)


def encoder(g: Graph) -> Tensor:
    """Return the encoded tokens [N, 128, 256]."""
    x = g.input
    for _ in range(_LAYERS):
        x = g.layer_norm(g.add(_attention(g, x), x))
        x = g.layer_norm(g.add(g.linear(g.gelu(g.linear(x, _FEED_FORWARD)), _WIDTH), x))
    return x


register(
    "transformer_encoder",
    "BERT-mini's encoder: 4 layers, 256 wide, 4 heads, 128 tokens",
    encoder,
    input_shape=(_TOKENS, _WIDTH),
)
