"""Running a network in onnxruntime: its latency unprofiled, its nodes' times profiled, the graph that ran.

Runs in the measuring child. The profile slows a network down, so its wall time is never the latency.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from roof_agent.errors import MeasurementError
from roof_agent.records import NodeTime
from roof_agent.statistics import quantile, summarize

PROVIDER = "CPUExecutionProvider"
_LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
WARMUPS = 2
_ERRORS_ONLY = 3
_KERNEL = "_kernel_time"

Feeds = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Latency:
    """Unprofiled repetitions in seconds: wall time, and CPU time of the process."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    involuntary_switches: int


@dataclass(frozen=True)
class Profile:
    """Profiled repetitions joined with the executed graph; see NetworkDetail."""

    nodes: tuple[NodeTime, ...]
    unjoined_seconds: float
    profiled_seconds: float
    executed: onnx.ModelProto


@dataclass
class Repetitions:
    """When to stop: after `minimum` repetitions and `budget_seconds`, and at `maximum` in any case."""

    budget_seconds: float
    minimum: int = 10
    maximum: int = 1000
    clock: Callable[[], float] = time.monotonic

    def run(self, once: Callable[[], None]) -> None:
        """Call `once` as often as that allows."""
        begin = self.clock()
        for count in range(self.maximum):
            if count >= self.minimum and self.clock() - begin >= self.budget_seconds:
                return
            once()


def name_nodes(model: onnx.ModelProto) -> None:
    """Give every node of the main graph a name of its own: the profile knows nodes by theirs."""
    taken: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node.name
        if not name or name in taken:
            name = f"{node.name or node.op_type}#{index}"
        taken.add(name)
        node.name = name


def make_feeds(session: ort.InferenceSession, seed: int = 0) -> Feeds:
    """Return seeded inputs of the types and dims the session asks for; an open dim is 1."""
    generator = np.random.default_rng(seed)
    return {wanted.name: _feed(wanted.type, wanted.shape, generator) for wanted in session.get_inputs()}


def _feed(kind: str, shape: Sequence[int | str | None], generator: np.random.Generator) -> NDArray[Any]:
    dims = tuple(dim if isinstance(dim, int) and dim > 0 else 1 for dim in shape)
    name = kind.removeprefix("tensor(").removesuffix(")")
    types = {"float": "float32", "double": "float64", "float16": "float16", "string": "object"}
    try:
        element = np.dtype(types.get(name, name))
    except TypeError as error:
        raise MeasurementError(f"an input of type {kind} can't be made up") from error
    if element == np.dtype(object):
        return np.full(dims, "", element)
    if element == np.dtype(bool):
        return np.ones(dims, element)
    if np.issubdtype(element, np.integer):
        # Small enough for any vocabulary, never negative.
        return generator.integers(0, 2, dims).astype(element)
    return generator.standard_normal(dims).astype(element)


def open_session(
    model: bytes, *, threads: int, optimization: str, profile_prefix: str = "", optimized_path: str = ""
) -> ort.InferenceSession:
    """Load a network. Raises MeasurementError with the runtime's reason in one line."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.graph_optimization_level = _LEVELS[optimization]
    if profile_prefix:
        options.enable_profiling = True
        options.profile_file_prefix = profile_prefix
    if optimized_path:
        options.optimized_model_filepath = optimized_path
    try:
        return ort.InferenceSession(model, options, providers=[PROVIDER])
    except Exception as error:
        raise MeasurementError(f"the runtime can't load it: {_one_line(error)}") from error


def measure_latency(session: ort.InferenceSession, feeds: Feeds, repetitions: Repetitions) -> Latency:
    """Return unprofiled repetitions, the warm-ups dropped."""
    wall: list[float] = []
    cpu: list[float] = []

    def once() -> None:
        cpu_begin, begin = time.process_time(), time.perf_counter()
        session.run(None, feeds)
        wall.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - cpu_begin)

    _guarded(lambda: [session.run(None, feeds) for _ in range(WARMUPS)])
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    _guarded(lambda: repetitions.run(once))
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches
    return Latency(tuple(wall), tuple(cpu), switches)


def profile(
    model: bytes, feeds: Feeds, *, threads: int, optimization: str, repetitions: Repetitions
) -> Profile:
    """Return each executed node's times and the graph they belong to, its weights still in it."""
    with tempfile.TemporaryDirectory(prefix="roof-agent-") as folder:
        optimized = str(Path(folder) / "executed.onnx")
        session = open_session(
            model,
            threads=threads,
            optimization=optimization,
            profile_prefix=str(Path(folder) / "profile"),
            optimized_path=optimized,
        )
        _guarded(lambda: [session.run(None, feeds) for _ in range(WARMUPS)])
        _guarded(lambda: repetitions.run(lambda: session.run(None, feeds)))
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        executed = onnx.load(optimized)
    runs = split_runs(events)[WARMUPS:]
    nodes, unjoined = join(executed, runs)
    walls = sorted(run.seconds for run in runs)
    return Profile(nodes, unjoined, quantile(walls, 0.5), executed)


@dataclass(frozen=True)
class NodeEvent:
    """One node's kernel in one run of the profile."""

    index: int
    name: str
    op_type: str
    begin_us: float
    seconds: float


@dataclass(frozen=True)
class ProfiledRun:
    """One run of the profile."""

    seconds: float
    events: tuple[NodeEvent, ...]


def split_runs(events: Iterable[dict[str, Any]]) -> list[ProfiledRun]:
    """Return the profile's runs: the runtime writes a run's nodes before the run itself."""
    runs: list[ProfiledRun] = []
    nodes: list[NodeEvent] = []
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith(_KERNEL):
            arguments = event["args"]
            nodes.append(
                NodeEvent(
                    int(arguments.get("node_index", -1)),
                    event["name"].removesuffix(_KERNEL),
                    arguments.get("op_name", ""),
                    event["ts"],
                    event["dur"] / 1e6,
                )
            )
        elif event["name"] == "model_run":
            runs.append(ProfiledRun(event["dur"] / 1e6, tuple(nodes)))
            nodes = []
    return runs


def join(executed: onnx.ModelProto, runs: Sequence[ProfiledRun]) -> tuple[tuple[NodeTime, ...], float]:
    """Return the executed graph's node times, and the seconds a run that belong to no node of it.

    By name and operator; where several nodes share both, in the order of execution, which is that of
    the graph. A time is joined only where the graph and every run have the same number of such nodes.
    """
    positions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, node in enumerate(executed.graph.node):
        positions[node.name, node.op_type].append(position)
    times: dict[int, list[float]] = defaultdict(list)
    unjoined: list[float] = []
    for run in runs:
        found: dict[tuple[str, str], list[NodeEvent]] = defaultdict(list)
        for event in sorted(run.events, key=lambda event: event.begin_us):
            found[event.name, event.op_type].append(event)
        lost = 0.0
        for key, own in found.items():
            places = positions.get(key, [])
            if len(places) == len(own):
                for position, event in zip(places, own, strict=True):
                    times[position].append(event.seconds)
            else:
                lost += sum(event.seconds for event in own)
        unjoined.append(lost)
    nodes = tuple(
        NodeTime(position, node.name, node.op_type, summarize(times[position]))
        for position, node in enumerate(executed.graph.node)
        if times[position]
    )
    return nodes, statistics.median(unjoined) if unjoined else 0.0


def pin(cpus: Sequence[int]) -> None:
    """Keep this process and the runtime's threads on `cpus`. Raises MeasurementError."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise MeasurementError(f"cpus {list(cpus)}: {error.strerror}") from error


def _guarded(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:
        raise MeasurementError(f"the runtime can't run it: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    """Return the runtime's message without its line breaks and the address of its own sources."""
    return " ".join(str(error).split())[:400]
