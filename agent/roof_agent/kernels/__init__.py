"""The measuring kernels behind one interface: the native library, or its numpy twin.

Runs in the measuring child only. `load()` chooses the back end; which one it was is part of every
measurement.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

from roof_agent.errors import Unavailable
from roof_agent.records import Work


@dataclass(frozen=True)
class KernelSpec:
    """A kernel and its cost, as data; counts are per element and call.

    `stream_bytes` is what STREAM counts; `bus_bytes` adds the write-allocate read of each line that
    a plain store causes (a non-temporal one doesn't). An element of a compute kernel is one pass of
    its unrolled loop body.
    """

    name: str
    # bandwidth, peak, sweep, latency or clock
    family: str
    element_type: str
    # plain or nontemporal; empty where nothing is stored. There is no non-temporal update: its line was
    # read already.
    store: str
    arrays: int
    stream_bytes: float
    bus_bytes: float
    flops: float
    help: str
    # What must happen one after the other: additions of the clock loop, loads of the latency walk.
    steps: float = 0.0


@dataclass(frozen=True)
class Request:
    """What to measure and for how long. One thread a CPU of `cpus`, pinned to it.

    `working_set_bytes` is the sum over all threads and arrays; 0 for kernels in registers.
    Repetitions last at least `repetition_seconds`, and go on until there are `min_repetitions` and
    their interquartile spread is below `spread`, or until `budget_seconds` are used.
    """

    kernel: str
    element_type: str
    cpus: tuple[int, ...]
    store: str = ""
    isa: str = ""
    working_set_bytes: int = 0
    repetition_seconds: float = 0.02
    min_repetitions: int = 10
    spread: float = 0.02
    warmup_seconds: float = 0.5
    budget_seconds: float = 2.0


@dataclass(frozen=True)
class Result:
    """Repetitions of one kernel, verified. A repetition's time is that of its slowest thread.

    Clock in Hz: `steps` by seconds of the kernel clock. Latency in seconds: seconds by `steps` of latency.
    """

    seconds: tuple[float, ...]
    # Smallest thread CPU time by wall time of each repetition.
    cpu_shares: tuple[float, ...]
    # Of one repetition, all threads together.
    work: Work
    isa: str
    involuntary_switches: int
    huge_page_bytes: int = 0
    # Each thread's own median rate summed, by the rate of the slowest thread times threads (mixed cores).
    balance: float = 1.0
    # Of one repetition and one thread; see KernelSpec.
    steps: float = 0.0


class Backend(abc.ABC):
    """Kernels of one kind."""

    # native or numpy
    name: str
    version: str
    compiler: str

    @abc.abstractmethod
    def specs(self) -> tuple[KernelSpec, ...]:
        """Return the kernels that run on this machine."""

    @abc.abstractmethod
    def isas(self, kernel: str, element_type: str, store: str = "") -> tuple[str, ...]:
        """Return the instruction sets that `kernel` has on this machine, the preferred one first."""

    @abc.abstractmethod
    def run(self, request: Request) -> Result:
        """Measure. Raises Unavailable for a kernel this machine lacks, MeasurementError if wrong."""


def load(name: str = "") -> Backend:
    """Return the back end `name`, or the native one where it loads and the numpy twin elsewhere.

    Raises Unavailable where `name` can't be had.
    """
    from roof_agent.kernels.native import Native

    if name not in ("", "native", "numpy"):
        raise Unavailable(f"there is no back end {name!r}: native and numpy are there")
    if name != "numpy":
        try:
            return Native()
        except Unavailable:
            if name == "native":
                raise
    from roof_agent.kernels.numpy_twin import NumpyTwin

    return NumpyTwin()
