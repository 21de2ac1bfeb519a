"""How far a measurement can be trusted, and why: its grade is never worse than a reason in words."""

from __future__ import annotations

from roof_agent.platform.conditions import THROTTLE_BITS
from roof_agent.records import Conditions, Grade

# A thread that ran for less of the time was waiting for a CPU.
MIN_CPU_SHARE = 0.98
MAX_STEAL_SHARE = 0.005
# A clock that fell by more between before and after changed what was measured.
MAX_CLOCK_DROP = 0.05

_WORST = (Grade.CLEAN, Grade.NOISY, Grade.THROTTLED, Grade.LIMITED)


def grade(
    before: Conditions, after: Conditions, cpu_share_median: float | None, threads: int
) -> tuple[Grade, tuple[str, ...]]:
    """Return the grade and its reasons (none for clean). `cpu_share_median`: thread CPU by wall time."""
    found: list[tuple[Grade, str]] = []
    if cpu_share_median is not None and cpu_share_median < MIN_CPU_SHARE:
        found.append((Grade.NOISY, f"its threads had a CPU only {cpu_share_median:.1%} of the time"))
    steal = _share(before.steal_ticks, after.steal_ticks, before.total_ticks, after.total_ticks)
    if steal is not None and steal > MAX_STEAL_SHARE:
        found.append((Grade.NOISY, f"the hypervisor took {steal:.1%} of the CPU time"))
    bits = (before.throttled_bits or 0) | (after.throttled_bits or 0)
    found += [(Grade.THROTTLED, words) for bit, words in THROTTLE_BITS.items() if bits >> bit & 1]
    for cpu, hz in before.frequency_hz.items():
        later = after.frequency_hz.get(cpu, hz)
        if before.governor == "performance" and later < hz * (1 - MAX_CLOCK_DROP):
            found.append(
                (Grade.THROTTLED, f"the clock of cpu {cpu} fell from {hz / 1e6:.0f} to {later / 1e6:.0f} MHz")
            )
    if after.cgroup_cpus is not None and after.cgroup_cpus < threads:
        found.append(
            (Grade.LIMITED, f"the control group allows {after.cgroup_cpus:g} CPUs to {threads} threads")
        )
    held = (after.cgroup_throttled_us or 0) - (before.cgroup_throttled_us or 0)
    if held > 0:
        found.append((Grade.LIMITED, f"the control group's quota held it back for {held / 1e3:.1f} ms"))
    worst = max((grade for grade, _ in found), key=_WORST.index, default=Grade.CLEAN)
    return worst, tuple(reason for _, reason in found)


def _share(
    before: int | None, after: int | None, total_before: int | None, total_after: int | None
) -> float | None:
    if before is None or after is None or total_before is None or total_after is None:
        return None
    total = total_after - total_before
    return (after - before) / total if total > 0 else None
