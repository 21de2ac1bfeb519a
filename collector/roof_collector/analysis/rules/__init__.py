"""The counting rules: one module a family, each registering its operators."""

from roof_collector.analysis.rules import (
    attention,
    control,
    convolution,
    elementwise,
    gather,
    generator,
    matmul,
    movement,
    normalisation,
    pooling,
    quantised,
    recurrent,
    reduction,
    resize,
    signal,
    view,
)
from roof_collector.analysis.rules.registry import RULES

__all__ = [
    "RULES",
    "attention",
    "control",
    "convolution",
    "elementwise",
    "gather",
    "generator",
    "matmul",
    "movement",
    "normalisation",
    "pooling",
    "quantised",
    "recurrent",
    "reduction",
    "resize",
    "signal",
    "view",
]
