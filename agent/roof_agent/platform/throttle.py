"""Raspberry Pi's throttling: the firmware's bits, from wherever this kernel shows them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from roof_agent.platform.files import integer, text

# Bits of get_throttled: now, and the same 16 higher for "has occurred since boot".
NOW = {
    0: "under-voltage",
    1: "frequency capped",
    2: "throttled",
    3: "soft temperature limit",
}
SINCE_BOOT_SHIFT = 16

# Where kernels have put it; looking through all of sysfs would take longer than a measurement.
_PLACES = ("soc/soc:firmware", "soc*/*firmware*", "*firmware*", "soc*/*/*firmware*")


def vcgencmd() -> str | None:
    """Return what the firmware's own tool says, None where there is none or it fails."""
    tool = shutil.which("vcgencmd")
    if tool is None:
        return None
    try:
        done = subprocess.run([tool, "get_throttled"], capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def bits(root: Path, ask: Callable[[], str | None] = vcgencmd) -> int | None:
    """Return the bits, None where nothing tells.

    The file in sysfs has wrongly read 0 (raspberrypi/linux#2367), so a 0 is asked again with the
    firmware's tool. The kernel's own watch of the supply voltage adds its alarm.
    """
    found = _sysfs(root)
    if not found:
        # "throttled=0x50005"
        _, _, value = (ask() or "").strip().partition("=")
        found = int(value, 16) if value.startswith("0x") else found
    # A supply that is fine says nothing of the other bits.
    return (found or 0) | 1 if _voltage_alarm(root) else found


def _sysfs(root: Path) -> int | None:
    for place in _PLACES:
        for path in sorted((root / "sys/devices/platform").glob(f"{place}/get_throttled")):
            value = integer(path, 16)
            if value is not None:
                return value
    return None


def _voltage_alarm(root: Path) -> bool:
    sensors = sorted((root / "sys/class/hwmon").glob("hwmon*"))
    return any(
        integer(sensor / "in0_lcrit_alarm") for sensor in sensors if text(sensor / "name") == "rpi_volt"
    )
