"""The state of the board at one moment, read before and after a measurement, never inside one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from roof_agent.platform import cgroup, throttle
from roof_agent.platform.discovery import meminfo_bytes
from roof_agent.platform.files import cpu_list, integer, text
from roof_agent.records import Conditions

# Zones whose reading isn't a temperature: a Jetson's PMIC-Die says 100.0 for ever.
_UNREAL_ZONES = {"PMIC-Die"}


def sample(
    root: Path = Path("/"),
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ask: Callable[[], str | None] = throttle.vcgencmd,
) -> Conditions:
    """Return the board's state now. What no file tells is None or empty."""
    system = root / "sys/devices/system/cpu"
    online = cpu_list(text(system / "online"))
    frequencies = {cpu: integer(system / f"cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in online}
    governors = sorted({text(system / f"cpu{cpu}/cpufreq/scaling_governor") or "" for cpu in online} - {""})
    ticks = _ticks(root)
    load = (text(root / "proc/loadavg") or "").split()
    return Conditions(
        monotonic_ns=monotonic_ns(),
        # sysfs is in kHz.
        frequency_hz={cpu: khz * 1e3 for cpu, khz in frequencies.items() if khz},
        governor="+".join(governors),
        temperature_celsius=temperatures(root),
        throttled_bits=throttle.bits(root, ask),
        load_1m=float(load[0]) if load else None,
        steal_ticks=ticks[0] if ticks else None,
        busy_ticks=ticks[1] if ticks else None,
        total_ticks=ticks[2] if ticks else None,
        memory_available_bytes=meminfo_bytes(root, "MemAvailable"),
        pressure_cpu_some_avg10=_pressure(root, "cpu"),
        pressure_memory_some_avg10=_pressure(root, "memory"),
        cgroup_cpus=cgroup.cpus(root),
        cgroup_throttled_us=cgroup.throttled_us(root),
        cgroup_memory_bytes=cgroup.memory_limit_bytes(root),
    )


def other_cpus(before: Conditions, after: Conditions, own_cpu_seconds: float) -> float | None:
    """Return how many CPUs' worth of time others used between two samples, None where nothing tells."""
    elapsed = (after.monotonic_ns - before.monotonic_ns) / 1e9
    if before.busy_ticks is None or after.busy_ticks is None or elapsed <= 0:
        return None
    busy = (after.busy_ticks - before.busy_ticks) / os.sysconf("SC_CLK_TCK")
    return max(busy - own_cpu_seconds, 0.0) / elapsed


def temperatures(root: Path) -> dict[str, float]:
    """Return each thermal zone's temperature by its type."""
    found: dict[str, float] = {}
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        name, milli = text(zone / "type") or zone.name, integer(zone / "temp")
        if milli is not None and name not in _UNREAL_ZONES:
            # Boards have several zones of one type.
            found[name if name not in found else f"{name} {zone.name}"] = milli / 1e3
    if not found:
        # Some Raspberry Pi kernels have the sensor but no zone (raspberrypi/linux#4077).
        for sensor in sorted((root / "sys/class/hwmon").glob("hwmon*/temp1_input")):
            milli = integer(sensor)
            if milli is not None:
                found[text(sensor.parent / "name") or sensor.parent.name] = milli / 1e3
    return found


def _ticks(root: Path) -> tuple[int, int, int] | None:
    """Return (steal, busy, total) jiffies of all CPUs."""
    first = (text(root / "proc/stat") or "").split("\n", 1)[0].split()
    if len(first) < 9 or first[0] != "cpu":
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = (int(field) for field in first[1:9])
    busy = user + nice + system + irq + softirq
    return steal, busy, busy + idle + iowait + steal


def _pressure(root: Path, resource: str) -> float | None:
    found = re.search(r"^some avg10=([\d.]+)", text(root / f"proc/pressure/{resource}") or "", re.MULTILINE)
    return float(found[1]) if found else None
