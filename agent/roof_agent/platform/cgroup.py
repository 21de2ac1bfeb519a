"""What control groups (version 2, version 1, or both side by side) allow this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roof_agent.platform.files import integer, text

# Version 1 says "no limit" with a number near 2^63.
_UNLIMITED = 1 << 60


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield this process's groups of a controller, the innermost first: a limit may sit on any of them.

    An empty controller stands for version 2.
    """
    for line in (text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(","):
            continue
        for name in (controllers, controller) if controller else ("", "unified"):
            base = root / "sys/fs/cgroup" / name
            # In a container the path may be the host's and its mount the container's own group.
            group = base / path.lstrip("/")
            while group != base:
                if group.is_dir():
                    yield group
                group = group.parent
            if base.is_dir():
                yield base
                break


def cpus(root: Path) -> float | None:
    """Return how many CPUs' worth of time the groups allow, None for no limit."""
    found = []
    for group in _groups(root, ""):
        quota, _, period = (text(group / "cpu.max") or "").partition(" ")
        if quota.isdigit() and period.isdigit():
            found.append(int(quota) / int(period))
    for group in _groups(root, "cpu"):
        quota_us, period_us = integer(group / "cpu.cfs_quota_us"), integer(group / "cpu.cfs_period_us")
        if quota_us and period_us and quota_us > 0:
            found.append(quota_us / period_us)
    return min(found, default=None)


def memory_limit_bytes(root: Path) -> int | None:
    """Return the tightest memory limit, None for none."""
    found = [integer(group / "memory.max") for group in _groups(root, "")]
    found += [integer(group / "memory.limit_in_bytes") for group in _groups(root, "memory")]
    return min((limit for limit in found if limit is not None and limit < _UNLIMITED), default=None)


def throttled_us(root: Path) -> int | None:
    """Return how long quotas have held this process's groups back, in microseconds."""
    found = []
    for controller, key, us in (("", "throttled_usec", 1.0), ("cpu", "throttled_time", 1e-3)):
        for group in _groups(root, controller):
            for line in (text(group / "cpu.stat") or "").splitlines():
                name, _, value = line.partition(" ")
                if name == key and value.isdigit():
                    found.append(int(int(value) * us))
    # A group's time holds that of the groups in it only where they are throttled by it: take the longest.
    return max(found, default=None)
