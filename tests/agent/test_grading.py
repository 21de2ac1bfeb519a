"""Grades: each cause alone, its words, and which cause wins."""

import pytest

from roof_agent.grading import Evidence, grade
from roof_agent.records import Conditions, Grade


def judged(before=None, after=None, threads=2, **evidence):
    return grade(
        Evidence(Conditions(0, **(before or {})), Conditions(1, **(after or {})), threads, **evidence)
    )


@pytest.mark.parametrize(
    ("evidence", "verdict", "words"),
    [
        ({}, Grade.CLEAN, []),
        ({"cpu_share": 0.985}, Grade.CLEAN, []),
        ({"cpu_share": 0.97}, Grade.NOISY, ["97.0%"]),
        ({"other_cpus": 0.05}, Grade.CLEAN, []),
        ({"other_cpus": 0.5}, Grade.NOISY, ["0.50 CPUs"]),
        ({"before": {"clock_hz": 1.2e9}, "after": {"clock_hz": 1.19e9}}, Grade.CLEAN, []),
        (
            {"before": {"clock_hz": 1.2e9}, "after": {"clock_hz": 0.6e9}},
            Grade.THROTTLED,
            ["from 1200 to 600 MHz"],
        ),
        ({"after": {"throttled_bits": 0b101}}, Grade.THROTTLED, ["under-voltage", "throttled"]),
        ({"before": {"throttled_bits": 2}, "after": {"throttled_bits": 0}}, Grade.THROTTLED, ["capped"]),
        # Long before: no reason to distrust this measurement. Begun during it: over, but it happened.
        (
            {"before": {"throttled_bits": 0x10000}, "after": {"throttled_bits": 0x10000}},
            Grade.CLEAN,
            [],
        ),
        (
            {"before": {"throttled_bits": 0}, "after": {"throttled_bits": 0x80000}},
            Grade.THROTTLED,
            ["soft temperature limit"],
        ),
        (
            {
                "before": {"steal_ticks": 0, "total_ticks": 1000},
                "after": {"steal_ticks": 4, "total_ticks": 2000},
            },
            Grade.CLEAN,
            [],
        ),
        (
            {
                "before": {"steal_ticks": 0, "total_ticks": 1000},
                "after": {"steal_ticks": 30, "total_ticks": 2000},
            },
            Grade.NOISY,
            ["hypervisor took 3.0%"],
        ),
        ({"after": {"cgroup_cpus": 0.5}}, Grade.LIMITED, ["0.5 CPUs to 2 threads"]),
        ({"after": {"cgroup_cpus": 2.0}}, Grade.CLEAN, []),
        (
            {"before": {"cgroup_throttled_us": 1000}, "after": {"cgroup_throttled_us": 26000}},
            Grade.LIMITED,
            ["25.0 ms"],
        ),
        (
            {
                "before": {"governor": "performance", "frequency_hz": {0: 1.2e9}},
                "after": {"frequency_hz": {0: 0.9e9}},
            },
            Grade.THROTTLED,
            ["cpu 0 fell from 1200 to 900 MHz"],
        ),
        # An ondemand governor lowers the clock of a CPU that has nothing to do.
        (
            {
                "before": {"governor": "ondemand", "frequency_hz": {0: 1.2e9}},
                "after": {"frequency_hz": {0: 0.6e9}},
            },
            Grade.CLEAN,
            [],
        ),
    ],
)
def test_causes(evidence, verdict, words):
    found, reasons = judged(**evidence)
    assert found is verdict
    assert len(reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_the_worst_cause_gives_the_grade_and_all_are_said():
    found, reasons = judged(after={"throttled_bits": 4, "cgroup_cpus": 0.5}, cpu_share=0.5)
    assert found is Grade.LIMITED
    assert len(reasons) == 3
