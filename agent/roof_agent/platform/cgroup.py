"""What a control group (version 2, else version 1) allows this process."""

from __future__ import annotations

from pathlib import Path

from roof_agent.platform.files import integer, text

# Version 1 says "no limit" with a number near 2^63.
_UNLIMITED = 1 << 60


def _own(root: Path) -> list[Path]:
    """Return this process's version 2 groups, the innermost first: a limit may sit on any of them."""
    for line in (text(root / "proc/self/cgroup") or "").splitlines():
        if line.startswith("0::"):
            inner = root / "sys/fs/cgroup" / line[3:].lstrip("/")
            top = root / "sys/fs/cgroup"
            return [inner, *(parent for parent in inner.parents if parent == top or top in parent.parents)]
    return []


def cpus(root: Path) -> float | None:
    """Return how many CPUs' worth of time the group may use, None for no limit."""
    found = []
    for group in _own(root):
        quota, _, period = (text(group / "cpu.max") or "").partition(" ")
        if quota.isdigit() and period.isdigit():
            found.append(int(quota) / int(period))
    old = root / "sys/fs/cgroup/cpu"
    quota_us, period_us = integer(old / "cpu.cfs_quota_us"), integer(old / "cpu.cfs_period_us")
    if quota_us and period_us and quota_us > 0:
        found.append(quota_us / period_us)
    return min(found, default=None)


def memory_limit_bytes(root: Path) -> int | None:
    """Return the group's memory limit, None for none."""
    found = [integer(group / "memory.max") for group in _own(root)]
    found.append(integer(root / "sys/fs/cgroup/memory/memory.limit_in_bytes"))
    return min((limit for limit in found if limit is not None and limit < _UNLIMITED), default=None)


def throttled_us(root: Path) -> int | None:
    """Return how long the quota has held this group's tasks back, in microseconds."""
    for group in _own(root):
        for line in (text(group / "cpu.stat") or "").splitlines():
            key, _, value = line.partition(" ")
            if key == "throttled_usec" and value.isdigit():
                return int(value)
    return None
