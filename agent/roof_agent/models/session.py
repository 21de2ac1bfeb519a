"""A network in onnxruntime, and its latency: unprofiled repetitions. Runs in the measuring child."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnxruntime as ort

from roof_agent.errors import MeasurementError
from roof_agent.models.inputs import Feeds

CPU_PROVIDER = "CPUExecutionProvider"
OPTIMIZATIONS = ("all", "none")

_LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_FATAL_ONLY = 4
# Never fewer: the first runs allocate, the second still warm caches.
MIN_WARMUPS = 2
# A median with something on either side of it.
_FEWEST = 3
# How far a slow network may go over its budget to reach its number of repetitions.
_OVERRUN = 3.0

_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
# The runtime names its own source file and function before what it says.
_SOURCE = re.compile(r"\S*/onnxruntime\S*:\d+ .*?(?=[A-Z(])")


@dataclass(frozen=True)
class Source:
    """A network to load: its file, or its bytes with the folder of its external data."""

    model: Path | bytes
    folder: Path | None = None


@dataclass(frozen=True)
class Configuration:
    """How a network is run. Results of different ones are never mixed."""

    threads: int
    optimization: str = "all"
    provider: str = CPU_PROVIDER


@dataclass(frozen=True)
class Latency:
    """Unprofiled repetitions in seconds: wall time, CPU time of the process, and its involuntary switches."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    switches: tuple[int, ...]

    @property
    def clean(self) -> tuple[float, ...]:
        """Return the wall times of the repetitions in which nobody took a CPU away."""
        return tuple(wall for wall, switches in zip(self.wall, self.switches, strict=True) if not switches)


@dataclass
class Repetitions:
    """How often: `minimum` times and for `budget_seconds`, the minimum given up far over the budget."""

    budget_seconds: float
    minimum: int = 10
    maximum: int = 1000
    clock: Callable[[], float] = time.monotonic

    def run(self, once: Callable[[], object]) -> None:
        """Call `once` as often as that allows."""
        begin = self.clock()
        for count in range(self.maximum):
            used = (self.clock() - begin) / self.budget_seconds
            if (count >= self.minimum and used >= 1) or (count >= _FEWEST and used >= _OVERRUN):
                return
            once()


@dataclass
class Warmup:
    """Runs that are dropped: two at least, and until `seconds` have passed (a clock that has to rise)."""

    seconds: float
    clock: Callable[[], float] = time.monotonic

    def run(self, once: Callable[[], object]) -> int:
        """Call `once` so often; return how often."""
        begin = self.clock()
        count = 0
        while count < MIN_WARMUPS or self.clock() - begin < self.seconds:
            once()
            count += 1
        return count


@dataclass
class Options:
    """What a session is opened with besides its configuration."""

    profile_prefix: str = ""
    optimized_path: str = ""
    entries: dict[str, str] = field(default_factory=dict)


def open_session(
    source: Source, configuration: Configuration, options: Options | None = None
) -> ort.InferenceSession:
    """Load a network. Raises MeasurementError with the runtime's reason in one line."""
    options = options or Options()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = configuration.threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.log_severity_level = _FATAL_ONLY
    settings.graph_optimization_level = _LEVELS[configuration.optimization]
    if options.profile_prefix:
        settings.enable_profiling = True
        settings.profile_file_prefix = options.profile_prefix
    if options.optimized_path:
        settings.optimized_model_filepath = options.optimized_path
    entries = dict(options.entries)
    if source.folder:
        entries["session.model_external_initializers_file_folder_path"] = str(source.folder)
    for key, value in entries.items():
        settings.add_session_config_entry(key, value)
    if configuration.provider not in ort.get_available_providers():
        has = ", ".join(ort.get_available_providers())
        raise MeasurementError(f"this onnxruntime has no {configuration.provider}: it has {has}")
    model = source.model if isinstance(source.model, bytes) else str(source.model)
    with reasons("the runtime can't load it"):
        return ort.InferenceSession(model, settings, providers=[configuration.provider])


def measure_latency(
    session: ort.InferenceSession, feeds: Feeds, repetitions: Repetitions, warmup: Warmup
) -> Latency:
    """Return unprofiled repetitions, the warm-ups dropped. Raises MeasurementError."""
    wall: list[float] = []
    cpu: list[float] = []
    switches: list[int] = []

    def once() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        cpu_begin, begin = time.process_time(), time.perf_counter()
        session.run(None, feeds)
        end, cpu_end = time.perf_counter(), time.process_time()
        wall.append(end - begin)
        cpu.append(cpu_end - cpu_begin)
        switches.append(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before)

    with reasons("the runtime can't run it"):
        warmup.run(lambda: session.run(None, feeds))
        repetitions.run(once)
    return Latency(tuple(wall), tuple(cpu), tuple(switches))


def pin(cpus: Sequence[int]) -> None:
    """Keep this process and the runtime's threads on `cpus`. Raises MeasurementError."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise MeasurementError(f"cpus {list(cpus)}: {error.strerror}") from error


@contextlib.contextmanager
def reasons(what: str) -> Iterator[None]:
    """Turn the runtime's exceptions, which have no base class of their own, into MeasurementError."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise MeasurementError(f"{what}: {one_line(str(error))}") from error


def one_line(message: str) -> str:
    """Return the runtime's message in one line, without the place in its own sources."""
    message = " ".join(message.split())
    if "Failed to allocate memory" in message or "bad_alloc" in message:
        return f"not enough memory ({message[-160:]})"
    return _SOURCE.sub("", _PREFIX.sub("", message))[:400]
