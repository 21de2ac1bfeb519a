"""A network's nodes, timed: profiled repetitions joined with the graph that the runtime executed.

Profiling slows a network down, so a profile's own wall time is never the network's latency.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from roof_agent.models.inputs import Feeds
from roof_agent.models.session import (
    Configuration,
    Options,
    Repetitions,
    Source,
    Warmup,
    open_session,
    reasons,
)
from roof_agent.models.tensors import subgraphs
from roof_agent.records import NodeTime
from roof_agent.statistics import quantile, summarize

_KERNEL = "_kernel_time"
_RUN = "model_run"
# Weights of the saved graph go to a file of their own, which nobody reads.
_SAVE_WEIGHTS_APART = {
    "session.optimized_model_external_initializers_file_name": "executed.weights",
    "session.optimized_model_external_initializers_min_size_in_bytes": "64",
}


@dataclass(frozen=True)
class Profile:
    """Profiled repetitions joined with the executed graph (large weights left out); see NetworkDetail."""

    nodes: tuple[NodeTime, ...]
    unjoined_seconds: float
    profiled_seconds: float
    executed: onnx.ModelProto


@dataclass(frozen=True)
class NodeEvent:
    """One node's kernel in one run of the profile; times in microseconds, as the runtime rounds them."""

    index: int
    name: str
    op_type: str
    begin_us: int
    us: int

    @property
    def end_us(self) -> int:
        """Return when it ended."""
        return self.begin_us + self.us


@dataclass(frozen=True)
class ProfiledRun:
    """One run of the profile."""

    seconds: float
    events: tuple[NodeEvent, ...]


def profile(
    source: Source,
    configuration: Configuration,
    feeds: Feeds,
    repetitions: Repetitions,
    warmup: Warmup,
    folder: Path,
) -> Profile:
    """Return each executed node's times and the graph they belong to; `folder` takes temporary files."""
    optimized = folder / "executed.onnx"
    options = Options(str(folder / "profile"), str(optimized), _SAVE_WEIGHTS_APART)
    session = open_session(source, configuration, options)
    (folder / "executed.weights").unlink(missing_ok=True)
    with reasons("the runtime can't run it"):
        dropped = warmup.run(lambda: session.run(None, feeds))
        repetitions.run(lambda: session.run(None, feeds))
        trace = Path(session.end_profiling())
    executed = onnx.load(str(optimized), load_external_data=False)
    runs = split_runs(_events(trace))[dropped:]
    nodes, unjoined = join(executed, runs)
    walls = sorted(run.seconds for run in runs)
    return Profile(nodes, unjoined, quantile(walls, 0.5), executed)


def _events(trace: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a profile: one to a line, since a long profile whole would fill a small board."""
    with trace.open(encoding="utf-8") as file:
        for line in file:
            event = line.strip().rstrip(",")
            if event not in {"", "[", "]"}:
                yield json.loads(event)


def split_runs(events: Iterable[dict[str, Any]]) -> list[ProfiledRun]:
    """Return the profile's runs: the runtime writes a run's nodes before the run itself."""
    runs: list[ProfiledRun] = []
    nodes: list[NodeEvent] = []
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith(_KERNEL):
            arguments = event["args"]
            name = event["name"].removesuffix(_KERNEL)
            index = int(arguments.get("node_index", -1))
            nodes.append(
                NodeEvent(index, name, arguments.get("op_name", ""), int(event["ts"]), int(event["dur"]))
            )
        elif event["name"] == _RUN:
            runs.append(ProfiledRun(event["dur"] / 1e6, tuple(nodes)))
            nodes = []
    return runs


def join(executed: onnx.ModelProto, runs: Sequence[ProfiledRun]) -> tuple[tuple[NodeTime, ...], float]:
    """Return the executed graph's node times, and the seconds a run that belong to no node of it.

    By name and operator; where several nodes share both, in the order of execution, which is that of
    the graph. A time is joined only where the graph and the run have the same number of such nodes. What
    ran inside a node (a branch, a body) is within that node's own time and isn't counted again.
    """
    positions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, node in enumerate(executed.graph.node):
        positions[node.name, node.op_type].append(position)
    containers = {(node.name, node.op_type) for node in executed.graph.node if any(subgraphs(node))}
    times: dict[int, list[float]] = defaultdict(list)
    unjoined: list[float] = []
    for run in runs:
        found: dict[tuple[str, str], list[NodeEvent]] = defaultdict(list)
        for event in _outermost(run.events, containers):
            found[_key(event, positions)].append(event)
        lost = 0
        for key, own in found.items():
            places = positions.get(key, [])
            if len(places) == len(own):
                for position, event in zip(places, own, strict=True):
                    times[position].append(event.us / 1e6)
            else:
                lost += sum(event.us for event in own)
        unjoined.append(lost / 1e6)
    nodes = tuple(
        NodeTime(position, node.name, node.op_type, summarize(times[position]))
        for position, node in enumerate(executed.graph.node)
        if times[position]
    )
    return nodes, statistics.fmean(unjoined) if unjoined else 0.0


def _key(event: NodeEvent, positions: dict[tuple[str, str], list[int]]) -> tuple[str, str]:
    """Return the node's key; the runtime calls a node without a name by its operator and index."""
    key = (event.name, event.op_type)
    if key not in positions and event.name == f"{event.op_type}_{event.index}":
        return "", event.op_type
    return key


def _outermost(events: Iterable[NodeEvent], containers: set[tuple[str, str]]) -> Iterable[NodeEvent]:
    """Yield events in their order without those that ran inside a node with a graph of its own."""
    until = -math.inf
    # Of two that begin together the longer contains the other.
    for event in sorted(events, key=lambda event: (event.begin_us, -event.us)):
        if event.end_us <= until and event.begin_us < until:
            continue
        if (event.name, event.op_type) in containers:
            until = event.end_us
        yield event
