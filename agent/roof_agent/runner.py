"""The run: has each task measured, stamps its conditions, grades it, and passes it on.

Every measurement has one of three outcomes: a result, not available here (why), failed (error). None
of them ends the run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from roof_agent import child
from roof_agent.errors import RoofError, Unavailable
from roof_agent.grading import Evidence, grade
from roof_agent.platform.conditions import other_cpus
from roof_agent.probes import Answer, Probe, Task, label
from roof_agent.records import Content, Grade, Measurement, Outcome, RunEnd, RunStart
from roof_agent.statistics import quantile, summarize
from roof_agent.stop import Stop, Stopped


class Sink(Protocol):
    """Takes a run's contents in order."""

    def emit(self, content: Content) -> None:
        """Take one content."""


class Watcher(Protocol):
    """Is told how far the run is."""

    def begins(self, done: int, planned: int, current: str, seconds_left: float) -> None:
        """Take note that measuring `current` begins."""

    def ended(self, measurement: Measurement) -> None:
        """Take note of a measurement."""


@dataclass
class Tally:
    """What became of the measurements."""

    ok: int = 0
    unavailable: int = 0
    failed: int = 0
    graded: int = 0
    stopped: Stopped | None = None

    def add(self, measurement: Measurement) -> None:
        """Count one."""
        self.ok += measurement.outcome is Outcome.OK
        self.unavailable += measurement.outcome is Outcome.UNAVAILABLE
        self.failed += measurement.outcome is Outcome.FAILED
        self.graded += measurement.grade not in {None, Grade.CLEAN}


@dataclass
class Runner:
    """Measures tasks one after the other; what it calls is injected."""

    sinks: Sequence[Sink]
    watchers: Sequence[Watcher]
    stop: Stop = field(default_factory=Stop)
    quiet: Callable[[], AbstractContextManager[None]] = nullcontext
    measure: Callable[[Sequence[Task]], list[Answer]] = child.measure
    monotonic_ns: Callable[[], int] = time.monotonic_ns

    def run(
        self, start: RunStart, tasks: Sequence[Task], refused: Sequence[tuple[Probe, RoofError]] = ()
    ) -> Tally:
        """Measure; the sinks get RunStart, the measurements, RunEnd, the last even where it was stopped."""
        tally = Tally()
        planned = len(tasks) + len(refused)
        self._emit(replace(start, planned_measurements=planned))
        for probe, error in refused:
            outcome, reason = _outcome(error)
            self._conclude(tally, Measurement(probe.name, "", probe.quantity, outcome, reason=reason))
        left = sum(task.seconds for task in tasks)
        done = len(refused)
        try:
            for batch in batches(tasks):
                for watcher in self.watchers:
                    watcher.begins(done, planned, label(batch[0]), left)
                self._batch(tally, batch)
                left -= sum(task.seconds for task in batch)
                done += len(batch)
        except Stopped as stopped:
            tally.stopped = stopped
        self._emit(
            RunEnd(
                complete=not tally.failed and not tally.stopped,
                reason=str(tally.stopped or ""),
                monotonic_ns=self.monotonic_ns(),
                ok=tally.ok,
                unavailable=tally.unavailable,
                failed=tally.failed,
            )
        )
        return tally

    def _batch(self, tally: Tally, batch: Sequence[Task]) -> None:
        with self.quiet(), self.stop.interruptible():
            answers = self.measure(batch)
        for task, answer in zip(batch, answers, strict=True):
            for part in answer.reading.models if answer.reading else ():
                self._emit(part)
            self._conclude(tally, to_measurement(task, answer))

    def _conclude(self, tally: Tally, measurement: Measurement) -> None:
        tally.add(measurement)
        self._emit(measurement)
        for watcher in self.watchers:
            watcher.ended(measurement)

    def _emit(self, content: Content) -> None:
        for sink in self.sinks:
            sink.emit(content)


def batches(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield the tasks that share a child, in order."""
    for name, group in itertools.groupby(tasks, key=lambda task: task.batch):
        if name:
            yield list(group)
        else:
            yield from ([task] for task in group)


def _outcome(error: RoofError) -> tuple[Outcome, str]:
    return (Outcome.UNAVAILABLE if isinstance(error, Unavailable) else Outcome.FAILED), str(error)


def to_measurement(task: Task, answer: Answer) -> Measurement:
    """Return the measurement that an answer makes of a task: summarised and graded."""
    measurement = Measurement(
        probe=task.probe,
        subject=task.subject,
        quantity=task.quantity,
        outcome=Outcome.UNAVAILABLE if answer.unavailable else Outcome.FAILED,
        reason=answer.unavailable or answer.failed,
        element_type=task.element_type,
        threads=task.threads,
        cpus=task.cpus,
        parameters=task.parameters,
        before=answer.before,
        after=answer.after,
        started_monotonic_ns=answer.started_monotonic_ns,
        elapsed_seconds=answer.elapsed_seconds,
    )
    reading = answer.reading
    if reading is None:
        return measurement
    cpu_share = quantile(sorted(reading.cpu_shares), 0.5) if reading.cpu_shares else None
    verdict, reasons = grade(
        Evidence(
            answer.before,
            answer.after,
            task.threads,
            cpu_share=cpu_share,
            other_cpus=other_cpus(answer.before, answer.after, answer.cpu_seconds),
        )
    )
    return replace(
        measurement,
        outcome=Outcome.OK,
        reason="",
        backend=reading.backend,
        backend_version=reading.backend_version,
        isa=reading.isa,
        compiler=reading.compiler,
        parameters={**task.parameters, **reading.parameters},
        grade=verdict,
        grade_reasons=reasons,
        statistics=summarize(reading.repetitions),
        repetitions=reading.repetitions,
        work=reading.work,
        cpu_share=cpu_share,
        involuntary_switches=reading.involuntary_switches,
        network=reading.network,
    )
