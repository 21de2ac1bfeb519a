"""Calibration, warm-up and the end of a measurement, with made-up times."""

import pytest

from roof_agent.kernels import Request
from roof_agent.kernels.harness import Repetition, _Schedule, spread


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def drive(request: Request, rate: float, noise: list[float]) -> _Schedule:
    """Run a schedule on a machine that does `rate` calls a second."""
    clock = Clock()
    schedule = _Schedule(request, clock)
    step = 0
    while not schedule.done:
        wall = schedule.calls / rate * noise[step % len(noise)]
        clock.now += wall
        schedule.judge([Repetition(wall, wall), Repetition(wall / 2, wall / 4)])
        step += 1
    return schedule


REQUEST = Request("copy", "float32", (0, 1), warmup_seconds=0.5, budget_seconds=2.0)


def test_calls_are_calibrated_to_the_wanted_length() -> None:
    schedule = drive(REQUEST, 1e5, [1.0])
    assert min(schedule.seconds) >= REQUEST.repetition_seconds
    assert max(schedule.seconds) < 3 * REQUEST.repetition_seconds


def test_a_steady_machine_stops_at_the_fewest_repetitions() -> None:
    assert len(drive(REQUEST, 1e5, [1.0]).seconds) == REQUEST.min_repetitions


def test_a_noisy_machine_uses_its_budget_and_no_more() -> None:
    schedule = drive(REQUEST, 1e5, [1.0, 1.3])
    assert len(schedule.seconds) > REQUEST.min_repetitions
    assert sum(schedule.seconds) == pytest.approx(REQUEST.budget_seconds, rel=0.05)


def test_a_repetition_is_as_long_as_its_slowest_thread_and_as_disturbed_as_its_most_disturbed() -> None:
    schedule = drive(REQUEST, 1e5, [1.0])
    assert set(schedule.cpu_shares) == {0.5}


def test_spread_is_the_interquartile_range_by_the_median() -> None:
    assert spread([1.0, 2.0, 3.0]) == pytest.approx(1.0)
