"""A run as a Chrome trace: what was measured when, and each network's layers, to be seen in Perfetto.

The format: Google's "Trace Event Format", complete events ("ph": "X") with times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roof_agent.errors import UsageError
from roof_agent.probes import label
from roof_agent.records import Content, Measurement, NetworkDetail

_MEASUREMENTS, _LAYERS = 1, 2


class Trace:
    """Writes the run's measurements, and under each network the median times of its layers in turn."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises UsageError where it can't be written."""
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"can't write {path}: {error.strerror}") from error
        self._events: list[dict[str, Any]] = [
            _named("process_name", 0, "roof-agent"),
            _named("thread_name", _MEASUREMENTS, "measurements"),
            _named("thread_name", _LAYERS, "layers (profiled medians)"),
        ]

    def emit(self, content: Content) -> None:
        """Take note of a measurement."""
        if not isinstance(content, Measurement) or not content.started_monotonic_ns:
            return
        begin_us = content.started_monotonic_ns / 1e3
        arguments = {
            "outcome": content.outcome.value,
            "grade": content.grade.value if content.grade else "",
            "reason": content.reason,
            "median": content.statistics.median if content.statistics else None,
            "quantity": content.quantity,
        }
        self._events.append(
            _event(label(content), _MEASUREMENTS, begin_us, content.elapsed_seconds * 1e6, arguments)
        )
        if content.network:
            self._events += _layers(content.network, begin_us)

    def close(self) -> None:
        """Write the file."""
        with self._file:
            json.dump({"traceEvents": self._events, "displayTimeUnit": "ms"}, self._file)


def _layers(network: NetworkDetail, begin_us: float) -> Iterator[dict[str, Any]]:
    for node in network.nodes:
        microseconds = node.seconds.median * 1e6
        arguments = {"index": node.index, "op_type": node.op_type, "n": node.seconds.n}
        yield _event(node.name or node.op_type, _LAYERS, begin_us, microseconds, arguments)
        begin_us += microseconds


def _event(name: str, track: int, begin_us: float, us: float, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "cat": "roof", "ph": "X", "pid": 1, "tid": track, "ts": begin_us, "dur": us,
        "args": arguments,
    }  # fmt: skip


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}
