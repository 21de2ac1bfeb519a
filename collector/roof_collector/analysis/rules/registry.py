"""Where the counting rules register themselves, by operator and domain."""

from __future__ import annotations

from collections.abc import Callable

from roof_collector.analysis.node import Cost, Node

Rule = Callable[[Node], Cost]
RULES: dict[tuple[str, str], Rule] = {}

STANDARD = ""
MICROSOFT = "com.microsoft"
NCHWC = "com.microsoft.nchwc"
# onnxruntime's own NHWC operators, as its optimiser writes them.
NHWC = "com.ms.internal.nhwc"


def rule(*op_types: str, domain: str = STANDARD) -> Callable[[Rule], Rule]:
    """Register the decorated function for these operators; one twice is a mistake in the program."""

    def register(function: Rule) -> Rule:
        for op_type in op_types:
            if (domain, op_type) in RULES:
                raise ValueError(f"{domain or 'ai.onnx'}:{op_type} has two counting rules")
            RULES[domain, op_type] = function
        return function

    return register
