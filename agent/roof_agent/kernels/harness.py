"""How a kernel is measured: pinned threads, first touch, calibration, repetitions, verification.

The back ends give a `Worker` for each thread; everything else is the same for both, so that their
figures differ by the kernels alone.
"""

from __future__ import annotations

import abc
import os
import resource
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roof_agent.errors import MeasurementError
from roof_agent.kernels import KernelSpec, Request, Result
from roof_agent.kernels.memory import element_bytes
from roof_agent.records import Work

Clock = Callable[[], float]


@dataclass
class Repetition:
    """One thread's share of a repetition, in seconds."""

    wall: float
    cpu: float


class Worker(abc.ABC):
    """One thread's kernel on its own data; every method runs on that thread."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Allocate and touch the data (first touch decides where pages lie)."""

    @abc.abstractmethod
    def repeat(self, calls: int) -> Repetition:
        """Wait for the other threads, run the kernel `calls` times and time that."""

    @abc.abstractmethod
    def errors(self) -> int:
        """Return how many results are not what the kernel's definition gives."""

    def huge_page_bytes(self) -> int:
        """Return how much of the data the system put on huge pages."""
        return 0


class _Schedule:
    """What comes after each repetition: calibration, warm-up, repetitions, the end.

    Read by all threads between two barriers, changed by one of them.
    """

    def __init__(self, request: Request, clock: Clock) -> None:
        self._request = request
        self._clock = clock
        self._begin = clock()
        self._warm = False
        self.calls = 1
        self.done = False
        self.seconds: list[float] = []
        self.cpu_shares: list[float] = []

    def judge(self, last: Sequence[Repetition]) -> None:
        """Take in one repetition of all threads; it lasted as long as its slowest thread."""
        request = self._request
        wall = max(share.wall for share in last)
        elapsed = self._clock() - self._begin
        if not self.seconds and wall < request.repetition_seconds and not self._warm:
            # Aim above the goal, so that a faster repetition still reaches it; at most tenfold, since
            # the first calls are the slowest.
            growth = min(1.2 * request.repetition_seconds / max(wall, 1e-9), 10.0)
            self.calls = max(self.calls + 1, int(self.calls * growth))
            return
        if not self._warm:
            self._warm = elapsed >= request.warmup_seconds
            if self._warm:
                self._begin = self._clock()
            return
        self.seconds.append(wall)
        self.cpu_shares.append(min(share.cpu / share.wall for share in last))
        n = len(self.seconds)
        steady = n >= request.min_repetitions and spread(self.seconds) < request.spread
        # Three are the fewest that have a median and something on either side of it.
        self.done = steady or (elapsed >= request.budget_seconds and n >= min(3, request.min_repetitions))


def spread(seconds: Sequence[float]) -> float:
    """Return the interquartile range by the median."""
    low, middle, high = statistics.quantiles(seconds, n=4)
    return (high - low) / middle


def measure(
    spec: KernelSpec,
    request: Request,
    isa: str,
    workers: Sequence[Worker],
    elements: int,
    clock: Clock = time.monotonic,
) -> Result:
    """Measure `spec` with one worker a CPU of `request`; `elements` is each worker's n.

    Raises MeasurementError where a result is wrong or a CPU can't be had.
    """
    threads = len(workers)
    schedule = _Schedule(request, clock)
    turn = threading.Barrier(threads)
    shares: list[list[Repetition]] = [[] for _ in workers]
    problems: list[str] = []
    huge = [0] * threads
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

    def run(index: int) -> None:
        worker = workers[index]
        try:
            os.sched_setaffinity(0, {request.cpus[index]})
            worker.prepare()
            while not schedule.done:
                turn.wait()
                shares[index].append(worker.repeat(schedule.calls))
                if turn.wait() == 0:
                    # One thread judges while the others wait at the next turn.
                    schedule.judge([own[-1] for own in shares])
                turn.wait()
            huge[index] = worker.huge_page_bytes()
            wrong = worker.errors()
            if wrong:
                problems.append(f"{wrong} of {elements} results are wrong")
        except threading.BrokenBarrierError:
            pass
        except (OSError, MemoryError) as error:
            problems.append(f"cpu {request.cpus[index]}: {error}")
            turn.abort()

    pool = [threading.Thread(target=run, args=(index,)) for index in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    if problems:
        raise MeasurementError(f"{spec.name} {spec.element_type} ({isa}): {problems[0]}")
    amount = float(elements) * schedule.calls * threads
    return Result(
        seconds=tuple(schedule.seconds),
        cpu_shares=tuple(schedule.cpu_shares),
        work=Work(
            stream_bytes=spec.stream_bytes * amount,
            bus_bytes=spec.bus_bytes * amount,
            flops=spec.flops * amount,
            working_set_bytes=spec.arrays * elements * threads * (element_bytes(spec) if spec.arrays else 0),
        ),
        isa=isa,
        involuntary_switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        huge_page_bytes=sum(huge),
        balance=_balance(shares, len(schedule.seconds)),
        steps=spec.steps * elements * schedule.calls,
    )


def _balance(shares: list[list[Repetition]], repetitions: int) -> float:
    medians = [statistics.median(share.wall for share in own[-repetitions:]) for own in shares]
    return sum(1 / median for median in medians) * max(medians) / len(medians)
