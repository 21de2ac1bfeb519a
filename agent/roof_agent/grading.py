"""How far a measurement can be trusted, and why: its grade is never worse than a reason in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roof_agent.platform import throttle
from roof_agent.records import Conditions, Grade

# A thread that ran for less of the time was waiting for a CPU.
MIN_CPU_SHARE = 0.98
MAX_STEAL_SHARE = 0.005
# Other programs' use of the machine, in CPUs: they share caches and memory even from another core.
MAX_OTHER_CPUS = 0.1
# A clock that fell by more between before and after changed what was measured.
MAX_CLOCK_DROP = 0.05

_WORST = (Grade.CLEAN, Grade.NOISY, Grade.THROTTLED, Grade.LIMITED)

Finding = tuple[Grade, str]


@dataclass(frozen=True)
class Evidence:
    """What a grade is made from; None is not known and counts for nothing.

    `cpu_share`: its threads' CPU time by wall time, median. `other_cpus`: CPU time that others used,
    by wall time.
    """

    before: Conditions
    after: Conditions
    threads: int
    cpu_share: float | None = None
    other_cpus: float | None = None


def grade(evidence: Evidence) -> tuple[Grade, tuple[str, ...]]:
    """Return the grade and its reasons, none for clean."""
    found = [*_noise(evidence), *_throttling(evidence), *_limits(evidence)]
    worst = max((verdict for verdict, _ in found), key=_WORST.index, default=Grade.CLEAN)
    return worst, tuple(reason for _, reason in found)


def _noise(evidence: Evidence) -> Iterator[Finding]:
    before, after = evidence.before, evidence.after
    if evidence.cpu_share is not None and evidence.cpu_share < MIN_CPU_SHARE:
        yield Grade.NOISY, f"its threads had a CPU only {evidence.cpu_share:.1%} of the time"
    if evidence.other_cpus is not None and evidence.other_cpus > MAX_OTHER_CPUS:
        yield Grade.NOISY, f"other programs used {evidence.other_cpus:.2f} CPUs meanwhile"
    steal = _share(before.steal_ticks, after.steal_ticks, before.total_ticks, after.total_ticks)
    if steal is not None and steal > MAX_STEAL_SHARE:
        yield Grade.NOISY, f"the hypervisor took {steal:.1%} of the CPU time"


def _throttling(evidence: Evidence) -> Iterator[Finding]:
    before, after = evidence.before, evidence.after
    old, new = before.throttled_bits or 0, after.throttled_bits or 0
    # What has begun since boot and hadn't before the measurement happened in it, even if it is over.
    happened = (new & ~old) >> throttle.SINCE_BOOT_SHIFT if before.throttled_bits is not None else 0
    for bit, words in throttle.NOW.items():
        if (old | new | happened) >> bit & 1:
            yield Grade.THROTTLED, words
    first, last = before.clock_hz, after.clock_hz
    if first and last and last < first * (1 - MAX_CLOCK_DROP):
        yield Grade.THROTTLED, f"the measured clock fell from {first / 1e6:.0f} to {last / 1e6:.0f} MHz"
    for cpu, hz in before.frequency_hz.items():
        later = after.frequency_hz.get(cpu, hz)
        # Other governors lower an idle CPU's clock, which says nothing.
        if before.governor == "performance" and later < hz * (1 - MAX_CLOCK_DROP):
            yield Grade.THROTTLED, f"the clock of cpu {cpu} fell from {hz / 1e6:.0f} to {later / 1e6:.0f} MHz"


def _limits(evidence: Evidence) -> Iterator[Finding]:
    before, after = evidence.before, evidence.after
    if after.cgroup_cpus is not None and after.cgroup_cpus < evidence.threads:
        yield (
            Grade.LIMITED,
            f"the control group allows {after.cgroup_cpus:g} CPUs to {evidence.threads} threads",
        )
    held = (after.cgroup_throttled_us or 0) - (before.cgroup_throttled_us or 0)
    if held > 0:
        yield Grade.LIMITED, f"the control group's quota held it back for {held / 1e3:.1f} ms"


def _share(
    before: int | None, after: int | None, total_before: int | None, total_after: int | None
) -> float | None:
    if before is None or after is None or total_before is None or total_after is None:
        return None
    total = total_after - total_before
    return (after - before) / total if total > 0 else None
