"""What a board lacks and what would disturb its figures, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roof_agent.platform import throttle
from roof_agent.platform.capabilities import missing_for_networks
from roof_agent.platform.cpu import core_count
from roof_agent.platform.files import integer
from roof_agent.records import Conditions, Device

# Loads below it are the agent's own start and the usual background.
_MAX_IDLE_LOAD_PER_CPU = 0.2
_MAX_PRESSURE_PERCENT = 5.0
_LEAST_MEMORY_BYTES = 64 << 20
# Firmware of the usual boards throttles from 80 on; below this there is room for a run.
_WARM_CELSIUS = 70.0

# What a finding means for a run.
MISSING, DISTURBS, NOTE = "missing", "disturbs", "note"


@dataclass(frozen=True)
class Finding:
    """Something missing or disturbing, and what to do."""

    kind: str
    what: str
    advice: str


def examine(
    device: Device, state: Conditions, native_problem: str = "", root: Path = Path("/")
) -> list[Finding]:
    """Return what is missing and what will disturb. `native_problem`: why the kernels don't load."""
    return [*_missing(device, state, native_problem), *_disturbing(device, state, root)]


def _missing(device: Device, state: Conditions, native_problem: str) -> Iterator[Finding]:
    if native_problem:
        yield Finding(
            MISSING,
            f"no compiled kernels: {native_problem}; figures are numpy's and lower",
            "install a wheel of this platform, or a C compiler and install again",
        )
    packages = missing_for_networks()
    if packages:
        yield Finding(
            MISSING,
            f"networks can't be measured: {' and '.join(packages)} not installed",
            "there is none for 32-bit ARM; elsewhere: pip install 'roofline[models]'",
        )
    if not any(cache.kind != "instruction" for cache in device.caches):
        yield Finding(
            MISSING,
            "no cache sizes are known: arrays are sized by the 32 MiB rule alone",
            "nothing to do; the working-set ladder will show them",
        )
    if device.model.startswith("Raspberry Pi") and state.throttled_bits is None:
        yield Finding(
            MISSING,
            "throttling can't be seen: neither the firmware's file nor vcgencmd is there",
            "apt install raspi-utils (or libraspberrypi-bin)",
        )


def _disturbing(device: Device, state: Conditions, root: Path) -> Iterator[Finding]:
    yield from _clock(device, state, root)
    yield from _throttling(state)
    yield from _load(device, state)
    yield from _surroundings(device, state)


def _throttling(state: Conditions) -> Iterator[Finding]:
    bits = state.throttled_bits or 0
    for bit, words in throttle.NOW.items():
        if bits >> bit & 1:
            yield Finding(DISTURBS, f"the firmware reports {words}", "a better supply or better cooling")
        elif bits >> (bit + throttle.SINCE_BOOT_SHIFT) & 1:
            yield Finding(DISTURBS, f"{words} has occurred since boot", "a better supply or better cooling")
    for zone, celsius in state.temperature_celsius.items():
        if celsius > _WARM_CELSIUS:
            yield Finding(DISTURBS, f"{zone} is at {celsius:.0f} C already", "let it cool down, or cool it")


def _load(device: Device, state: Conditions) -> Iterator[Finding]:
    cpus = core_count(device) or 1
    if state.load_1m is not None and state.load_1m > _MAX_IDLE_LOAD_PER_CPU * cpus:
        yield Finding(
            DISTURBS, f"other programs are running (load {state.load_1m:.2f})", "stop them, or wait"
        )
    for name, value in (
        ("a CPU", state.pressure_cpu_some_avg10),
        ("memory", state.pressure_memory_some_avg10),
    ):
        if value is not None and value > _MAX_PRESSURE_PERCENT:
            yield Finding(
                DISTURBS, f"tasks waited for {name} {value:.0f} % of the time", "stop other programs"
            )


def _surroundings(device: Device, state: Conditions) -> Iterator[Finding]:
    cpus = core_count(device)
    if state.cgroup_cpus is not None and state.cgroup_cpus < cpus:
        yield Finding(
            DISTURBS,
            f"the control group allows {state.cgroup_cpus:g} of {cpus} CPUs",
            "run outside it (docker: without --cpus)",
        )
    if state.memory_available_bytes is not None and state.memory_available_bytes < _LEAST_MEMORY_BYTES:
        yield Finding(
            DISTURBS,
            f"{state.memory_available_bytes >> 20} MiB of memory are available",
            "stop other programs: arrays won't exceed the caches",
        )
    if device.virtualization not in {"", "none"}:
        yield Finding(
            NOTE,
            f"this is virtual ({device.virtualization}): neighbours on its host share caches and memory",
            "repeat the run; measurements with stolen time are graded noisy",
        )


def _clock(device: Device, state: Conditions, root: Path) -> Iterator[Finding]:
    if state.governor and state.governor != "performance":
        yield Finding(
            DISTURBS,
            f"the frequency governor is {state.governor}: the clock changes with the load",
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )
    for cluster in device.clusters:
        folder = root / f"sys/devices/system/cpu/cpu{cluster.cpus[0]}/cpufreq"
        top, allowed = integer(folder / "cpuinfo_max_freq"), integer(folder / "scaling_max_freq")
        if top and allowed and allowed < top:
            yield Finding(
                DISTURBS,
                f"{cluster.core} is capped to {allowed / 1e3:.0f} of {top / 1e3:.0f} MHz",
                f"echo {top} | sudo tee {folder}/scaling_max_freq",
            )
