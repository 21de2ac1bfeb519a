"""Cores: what they are called, which kinds there are, what instructions they have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from roof_agent.platform.files import cpu_list, integer, text
from roof_agent.records import Cluster, Device

# ARM Ltd's part numbers (implementer 0x41), as its Technical Reference Manuals give them (MIDR_EL1).
ARM_PARTS = {
    0xB76: "arm1176",
    0xC07: "cortex-a7",
    0xC08: "cortex-a8",
    0xC09: "cortex-a9",
    0xC0D: "cortex-a17",
    0xC0F: "cortex-a15",
    0xD03: "cortex-a53",
    0xD04: "cortex-a35",
    0xD05: "cortex-a55",
    0xD07: "cortex-a57",
    0xD08: "cortex-a72",
    0xD09: "cortex-a73",
    0xD0A: "cortex-a75",
    0xD0B: "cortex-a76",
    0xD0C: "neoverse-n1",
    0xD0D: "cortex-a77",
    0xD40: "neoverse-v1",
    0xD41: "cortex-a78",
    0xD46: "cortex-a510",
    0xD47: "cortex-a710",
    0xD49: "neoverse-n2",
}
ARM_LTD = 0x41

# The extensions that decide which kernels run, as /proc/cpuinfo spells them.
FEATURES = {
    "sse2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "avx512_fp16",
    "asimd", "asimdhp", "asimddp", "fphp", "sve", "i8mm", "bf16", "neon", "vfpv3", "vfpv4",
}  # fmt: skip


def blocks(root: Path) -> list[dict[str, str]]:
    """Return /proc/cpuinfo's processors as dictionaries of its own keys."""
    found: list[dict[str, str]] = []
    for part in (text(root / "proc/cpuinfo") or "").split("\n\n"):
        pairs = (line.partition(":") for line in part.splitlines())
        block = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        # A block without a processor is the board's ("Hardware", "Revision", "Serial").
        if "processor" in block:
            found.append(block)
    return found


def board(root: Path) -> dict[str, str]:
    """Return what /proc/cpuinfo says of the board itself ("Hardware", "Revision", "Serial")."""
    pairs = (line.partition(":") for line in (text(root / "proc/cpuinfo") or "").splitlines())
    found = {key.strip(): value.strip() for key, colon, value in pairs if colon}
    return {key: found[key] for key in ("Hardware", "Revision", "Serial") if key in found}


def features(root: Path) -> tuple[str, ...]:
    """Return the instruction set extensions that matter here and that every core has."""
    own = [set((block.get("flags") or block.get("Features") or "").split()) for block in blocks(root)]
    return tuple(sorted(FEATURES.intersection(*own))) if own else ()


def clusters(root: Path) -> tuple[Cluster, ...]:
    """Return the cores by kind: the same part (or model) at the same capacity."""
    system = root / "sys/devices/system/cpu"
    known = {int(block["processor"]): block for block in blocks(root) if block["processor"].isdigit()}
    online = cpu_list(text(system / "online")) or tuple(sorted(known))
    kinds: dict[tuple[str, int | None, int | None], list[int]] = {}
    tops: dict[int, int | None] = {}
    for cpu in online:
        block = known.get(cpu, {})
        tops[cpu] = integer(system / f"cpu{cpu}/cpufreq/cpuinfo_max_freq")
        # Equal x86 cores differ in what each may turbo to; equal ARM cores that do are two clusters.
        top = tops[cpu] if "CPU part" in block else None
        key = (_core(block), integer(system / f"cpu{cpu}/cpu_capacity"), top)
        kinds.setdefault(key, []).append(cpu)
    # sysfs is in kHz.
    return tuple(
        Cluster(core, tuple(cpus), max((top * 1e3 for cpu in cpus if (top := tops[cpu])), default=None))
        for (core, _, _), cpus in kinds.items()
    )


def core_count(device: Device) -> int:
    """Return how many CPUs the device has, 0 where none are known."""
    return sum(len(cluster.cpus) for cluster in device.clusters)


def spread(root: Path, cpus: Sequence[int]) -> tuple[int, ...]:
    """Return the CPUs with one of each core first: two threads belong on two cores before on one."""
    chosen = set(cpus)

    def rank(cpu: int) -> tuple[int, int]:
        siblings = cpu_list(text(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
        shared = sorted(chosen.intersection(siblings)) or [cpu]
        return shared.index(cpu), cpu

    return tuple(sorted(cpus, key=rank))


def _core(block: dict[str, str]) -> str:
    try:
        implementer, part = int(block["CPU implementer"], 16), int(block["CPU part"], 16)
    except (KeyError, ValueError):
        return block.get("model name", "")
    if implementer == ARM_LTD and part in ARM_PARTS:
        return ARM_PARTS[part]
    return f"arm-{implementer:#04x}-{part:#05x}"
