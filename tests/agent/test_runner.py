"""The run: three outcomes, order of records, quiet around the child, signals."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest

from roof_agent.errors import Exit, MeasurementError
from roof_agent.output import Results
from roof_agent.probes import Answer, Reading, Task, all_probes
from roof_agent.records import (
    Conditions,
    Device,
    Grade,
    Measurement,
    ModelPart,
    ModelRef,
    Outcome,
    RunEnd,
    RunStart,
    Work,
)
from roof_agent.runner import Runner, to_measurement
from roof_agent.stop import Stop, Stopped

START = RunStart(Device("f" * 64, "h", "x86_64"), "0", "quick", "b", 1, 2, 0)


def task(subject, seconds=1.0):
    return Task("peak", subject, "flops_per_s", 1, (0,), seconds, "float32", {"store": "plain"})


class Watcher:
    def __init__(self):
        self.seen = []

    def begins(self, done, planned, current, seconds_left):
        self.seen.append((done, planned, current, seconds_left))

    def ended(self, measurement):
        self.seen.append(measurement.outcome)


class Bench:
    """A runner whose tasks do what their subject says."""

    def __init__(self, readings, stop=None):
        self.readings = readings
        self.log = []
        self.watcher = Watcher()
        self.contents = []
        self.runner = Runner(
            [self],
            [self.watcher],
            stop=stop or Stop(),
            quiet=self.quiet,
            measure=self.measure,
        )

    def emit(self, content):
        self.contents.append(content)
        self.log.append("emit")

    @contextmanager
    def quiet(self):
        self.log.append("quiet")
        yield
        self.log.append("loud")

    def measure(self, tasks):
        self.log.append(f"measure {' '.join(task.subject for task in tasks)}")
        return [self.answer(task) for task in tasks]

    def answer(self, given):
        found = self.readings[given.subject]
        if callable(found):
            found()
        common = (Conditions(1), Conditions(2_000_000_001), 5, 2.0, 0.5)
        if isinstance(found, Reading):
            return Answer(*common, reading=found)
        return Answer(*common, **found)

    @property
    def measurements(self):
        return [content for content in self.contents if isinstance(content, Measurement)]


GOOD = Reading(
    (3.0, 1.0, 2.0),
    "native",
    "1.2",
    "avx2",
    "gcc",
    Work(flops=5.0),
    (0.99, 0.5, 1.0),
    7,
    {"huge_page_bytes": "0"},
)


def test_three_outcomes_and_the_run_goes_on():
    bench = Bench({"a": {"unavailable": "no such thing"}, "b": {"failed": "it broke"}, "c": GOOD})
    tally = bench.runner.run(START, [task("a"), task("b"), task("c")])
    assert [found.outcome for found in bench.measurements] == [
        Outcome.UNAVAILABLE,
        Outcome.FAILED,
        Outcome.OK,
    ]
    assert [found.reason for found in bench.measurements] == ["no such thing", "it broke", ""]
    assert (tally.ok, tally.unavailable, tally.failed) == (1, 1, 1)
    start, end = bench.contents[0], bench.contents[-1]
    assert isinstance(start, RunStart)
    assert start.planned_measurements == 3
    assert isinstance(end, RunEnd)
    assert (end.complete, end.ok, end.unavailable, end.failed) == (False, 1, 1, 1)


def test_a_reading_becomes_a_whole_measurement():
    bench = Bench({"c": GOOD})
    bench.runner.run(START, [task("c")])
    (found,) = bench.measurements
    assert found.repetitions == (3.0, 1.0, 2.0)
    assert (found.statistics.n, found.statistics.median, found.best) == (3, 2.0, 3.0)
    assert (found.backend, found.backend_version, found.isa, found.compiler) == (
        "native",
        "1.2",
        "avx2",
        "gcc",
    )
    assert found.parameters == {"store": "plain", "huge_page_bytes": "0"}
    assert (found.cpu_share, found.involuntary_switches) == (0.99, 7)
    assert found.work == Work(flops=5.0)
    assert found.grade is Grade.CLEAN
    assert (found.before, found.after) == (Conditions(1), Conditions(2_000_000_001))
    assert (found.started_monotonic_ns, found.elapsed_seconds) == (5, 2.0)
    assert bench.contents[-1].complete


def test_nothing_is_emitted_while_it_is_quiet():
    bench = Bench({"c": GOOD})
    bench.runner.run(START, [task("c")])
    assert bench.log == ["emit", "quiet", "measure c", "loud", "emit", "emit"]


def test_tasks_of_a_batch_share_a_child():
    bench = Bench({"a": GOOD, "b": GOOD, "c": GOOD, "d": GOOD})
    tasks = [task("a"), replace(task("b"), batch="x"), replace(task("c"), batch="x"), task("d"), task("a")]
    bench.runner.run(START, tasks)
    measured = [line for line in bench.log if line.startswith("measure")]
    assert measured == ["measure a", "measure b c", "measure d", "measure a"]
    assert [found.subject for found in bench.measurements] == ["a", "b", "c", "d", "a"]
    assert [seen[0] for seen in bench.watcher.seen if isinstance(seen, tuple)] == [0, 1, 3, 4]


def test_doubts_are_graded():
    busy = Answer(Conditions(0, busy_ticks=0), Conditions(10**9, busy_ticks=100), 0, 1.0, 0.0, reading=GOOD)
    found = to_measurement(task("c"), busy)
    assert found.grade is Grade.NOISY
    assert "other programs" in found.grade_reasons[0]
    assert to_measurement(task("c"), replace(busy, cpu_seconds=1.0)).grade is Grade.CLEAN


def test_a_network_s_graph_goes_before_the_measurement_that_names_it():
    part = ModelPart(ModelRef("net", "ab" * 32, 3), 0, b"abc")
    bench = Bench({"c": Reading((1.0,), "onnxruntime", models=(part,))})
    bench.runner.run(START, [task("c")])
    assert [type(content) for content in bench.contents] == [RunStart, ModelPart, Measurement, RunEnd]


def test_a_probe_without_a_plan_is_reported():
    bench = Bench({"c": GOOD})
    probe = all_probes()["bandwidth"]
    tally = bench.runner.run(START, [task("c")], [(probe, MeasurementError("too little memory"))])
    first, second = bench.measurements
    assert (first.probe, first.quantity, first.outcome) == ("bandwidth", "bytes_per_s", Outcome.FAILED)
    assert first.reason == "too little memory"
    assert second.outcome is Outcome.OK
    assert tally.failed == 1
    assert bench.contents[0].planned_measurements == 2


def test_watchers_hear_of_position_and_time_left():
    bench = Bench({"a": GOOD, "b": GOOD})
    bench.runner.run(START, [task("a", 2.0), task("b", 3.0)])
    assert bench.watcher.seen == [
        (0, 2, "peak a plain float32 1 thread", 5.0),
        Outcome.OK,
        (1, 2, "peak b plain float32 1 thread", 3.0),
        Outcome.OK,
    ]


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_a_signal_in_a_measurement_ends_the_run_with_its_last_record(signum, code):
    with Stop().listening() as stop:
        bench = Bench({"a": GOOD, "b": lambda: os.kill(os.getpid(), signum), "c": GOOD}, stop)
        tally = bench.runner.run(START, [task("a"), task("b"), task("c")])
    assert tally.stopped.exit_code == code
    assert [found.subject for found in bench.measurements] == ["a"]
    end = bench.contents[-1]
    assert not end.complete
    assert end.reason == f"stopped by {signum.name}"


def test_a_signal_between_measurements_tears_no_record():
    with Stop().listening() as stop:
        bench = Bench({"a": GOOD, "b": GOOD}, stop)
        emit = bench.emit

        def interrupted(content):
            if isinstance(content, Measurement):
                os.kill(os.getpid(), signal.SIGINT)
            emit(content)

        bench.emit = interrupted
        tally = bench.runner.run(START, [task("a"), task("b")])
    assert tally.stopped
    assert [found.subject for found in bench.measurements] == ["a"]
    assert isinstance(bench.contents[-1], RunEnd)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with Stop().listening():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_was_stopped_may_still_wait_until_stopped_again():
    with Stop().listening() as stop:
        with pytest.raises(Stopped), stop.interruptible():
            os.kill(os.getpid(), signal.SIGINT)
        with stop.interruptible(again=True):
            pass
        with pytest.raises(Stopped), stop.interruptible(again=True):
            os.kill(os.getpid(), signal.SIGINT)


def test_results_hold_what_is_shown():
    results = Results("r")
    bench = Bench({"c": GOOD})
    bench.runner.sinks = [results]
    bench.runner.run(START, [task("c")])
    document = results.document()
    assert document["schema"] == 1
    assert [found["subject"] for found in document["measurements"]] == ["c"]
    assert document["start"]["preset"] == "quick"
    assert document["end"]["complete"] is True
