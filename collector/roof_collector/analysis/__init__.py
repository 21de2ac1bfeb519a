"""Counting, devices and what-if. `analyze` and `load_model` count a network; they need onnx.

The two load on first use: the roofline model alone is had without onnx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roof_collector.analysis.counting import analyze
    from roof_collector.analysis.loading import load_model, parse_model
    from roof_collector.analysis.result import Analysis, Layer, Totals

__all__ = ["Analysis", "Layer", "Totals", "analyze", "load_model", "parse_model"]

_HOMES = {
    "analyze": "counting",
    "load_model": "loading",
    "parse_model": "loading",
    "Analysis": "result",
    "Layer": "result",
    "Totals": "result",
}


def __getattr__(name: str) -> Any:
    """Load the counting engine when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
