"""What this installation can do, found out without importing anything heavy."""

from __future__ import annotations

import importlib.util

NATIVE = "native"
NETWORKS = "networks"


def capabilities() -> tuple[str, ...]:
    """Return `native` where the compiled kernels are there, `networks` where onnxruntime and onnx are."""
    from roof_agent.kernels.native import LIBRARY

    found = []
    if LIBRARY.exists():
        found.append(NATIVE)
    if not missing_for_networks():
        found.append(NETWORKS)
    return tuple(found)


def missing_for_networks() -> tuple[str, ...]:
    """Return the packages that measuring networks lacks."""
    return tuple(name for name in ("onnxruntime", "onnx") if importlib.util.find_spec(name) is None)
