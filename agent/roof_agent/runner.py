"""The run: has each task measured, stamps its conditions, grades it, and passes it on.

Every measurement has one of three outcomes: a result, not available here (why), failed (error). None
of them ends the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from roof_agent import child
from roof_agent.errors import MeasurementError, RoofError, Unavailable
from roof_agent.grading import Evidence, grade
from roof_agent.platform import conditions
from roof_agent.platform.conditions import other_cpus, own_and_childrens_cpu_seconds
from roof_agent.probes import Probe, Reading, Task, label
from roof_agent.records import Conditions, Content, Grade, Measurement, Outcome, RunEnd, RunStart
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
    measure: Callable[[Task], Reading] = child.measure
    sample: Callable[[], Conditions] = conditions.sample
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    cpu_seconds: Callable[[], float] = own_and_childrens_cpu_seconds

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
        try:
            for done, task in enumerate(tasks, len(refused)):
                for watcher in self.watchers:
                    watcher.begins(done, planned, label(task), left)
                self._task(tally, task)
                left -= task.seconds
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

    def _task(self, tally: Tally, task: Task) -> None:
        with self.quiet():
            before = self.sample()
            own_cpu_seconds = -self.cpu_seconds()
            begin_ns = self.monotonic_ns()
            error: RoofError | None = None
            reading: Reading | None = None
            try:
                with self.stop.interruptible():
                    reading = self.measure(task)
            except (Unavailable, MeasurementError) as found:
                error = found
            elapsed = (self.monotonic_ns() - begin_ns) / 1e9
            own_cpu_seconds += self.cpu_seconds()
            after = self.sample()
        measurement = Measurement(
            probe=task.probe,
            subject=task.subject,
            quantity=task.quantity,
            outcome=Outcome.OK,
            element_type=task.element_type,
            threads=task.threads,
            cpus=task.cpus,
            parameters=task.parameters,
            before=before,
            after=after,
            started_monotonic_ns=begin_ns,
            elapsed_seconds=elapsed,
        )
        if reading is None:
            outcome, reason = _outcome(error)
            self._conclude(tally, replace(measurement, outcome=outcome, reason=reason))
            return
        for part in reading.models:
            self._emit(part)
        self._conclude(tally, _with_reading(measurement, reading, own_cpu_seconds))

    def _conclude(self, tally: Tally, measurement: Measurement) -> None:
        tally.add(measurement)
        self._emit(measurement)
        for watcher in self.watchers:
            watcher.ended(measurement)

    def _emit(self, content: Content) -> None:
        for sink in self.sinks:
            sink.emit(content)


def _outcome(error: RoofError | None) -> tuple[Outcome, str]:
    return (Outcome.UNAVAILABLE if isinstance(error, Unavailable) else Outcome.FAILED), str(error)


def _with_reading(measurement: Measurement, reading: Reading, own_cpu_seconds: float) -> Measurement:
    cpu_share = quantile(sorted(reading.cpu_shares), 0.5) if reading.cpu_shares else None
    assert measurement.before is not None
    assert measurement.after is not None
    verdict, reasons = grade(
        Evidence(
            measurement.before,
            measurement.after,
            measurement.threads,
            cpu_share=cpu_share,
            other_cpus=other_cpus(measurement.before, measurement.after, own_cpu_seconds),
        )
    )
    return replace(
        measurement,
        backend=reading.backend,
        backend_version=reading.backend_version,
        isa=reading.isa,
        compiler=reading.compiler,
        parameters={**measurement.parameters, **reading.parameters},
        grade=verdict,
        grade_reasons=reasons,
        statistics=summarize(reading.repetitions),
        repetitions=reading.repetitions,
        work=reading.work,
        cpu_share=cpu_share,
        involuntary_switches=reading.involuntary_switches,
        network=reading.network,
    )
