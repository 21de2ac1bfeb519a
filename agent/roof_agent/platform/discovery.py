"""The board as the agent finds it, under a root that tests replace by recorded trees."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from roof_agent.platform import cpu
from roof_agent.platform.caches import caches
from roof_agent.platform.cgroup import memory_limit_bytes
from roof_agent.platform.files import device_tree, text
from roof_agent.records import Device

# Chips by the device tree's compatible string.
_SOCS = {
    "brcm,bcm2835": "BCM2835",
    "brcm,bcm2836": "BCM2836",
    "brcm,bcm2837": "BCM2837",
    "brcm,bcm2711": "BCM2711",
    "brcm,bcm2712": "BCM2712",
    "nvidia,tegra210": "Tegra X1",
    "nvidia,tegra194": "Tegra Xavier",
    "nvidia,tegra234": "Tegra Orin",
}


def discover(
    root: Path = Path("/"),
    uname: os.uname_result | None = None,
    page_bytes: int | None = None,
    labels: dict[str, str] | None = None,
) -> Device:
    """Return what the board is. Facts that no file tells stay empty."""
    system = uname or os.uname()
    clusters = cpu.clusters(root)
    return Device(
        fingerprint=fingerprint(root),
        hostname=system.nodename,
        architecture=system.machine,
        model=_model(root),
        soc=_soc(root),
        os=_os(root),
        kernel=system.release,
        memory_bytes=meminfo_bytes(root, "MemTotal") or 0,
        page_bytes=page_bytes or os.sysconf("SC_PAGE_SIZE"),
        clusters=clusters,
        caches=caches(root, clusters),
        isa_features=cpu.features(root),
        virtualization=_virtualization(root),
        container=_container(root),
        labels=labels or {},
    )


def fingerprint(root: Path) -> str:
    """Return a stable identity of the machine: the same over reboots and reinstalls of the agent.

    The installation's id AND the board's own serial number: two boards with one cloned SD card
    differ, and so do two installations on one board. Host names and network addresses change; a
    PC's serial numbers are shown to root alone, and would make two machines of one.
    """
    serial = text(device_tree(root, "serial-number")) or cpu.board(root).get("Serial", "")
    facts = [
        text(root / "etc/machine-id") or text(root / "var/lib/dbus/machine-id") or "",
        # A firmware that has none says zeros.
        serial if serial.strip("0") else "",
    ]
    # Nothing else tells this machine from others: at least the kind of board isn't mixed up.
    return hashlib.sha256("\0".join(facts if any(facts) else [_model(root)]).encode()).hexdigest()


def boot_id(root: Path = Path("/")) -> str:
    """Return the kernel's id of this boot; the monotonic clock counts from it."""
    return text(root / "proc/sys/kernel/random/boot_id") or ""


def meminfo_bytes(root: Path, key: str) -> int | None:
    """Return a line of /proc/meminfo in bytes, None where there is none."""
    found = re.search(rf"^{key}:\s+(\d+) kB", text(root / "proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the memory that may be used now: what the system has free, or less if a cgroup says so."""
    limits = (meminfo_bytes(root, "MemAvailable"), memory_limit_bytes(root))
    return min((limit for limit in limits if limit is not None), default=None)


def _model(root: Path) -> str:
    return (
        text(device_tree(root, "model"))
        or " ".join(
            part
            for part in (
                text(root / "sys/class/dmi/id/sys_vendor"),
                text(root / "sys/class/dmi/id/product_name"),
            )
            if part
        )
        or next((block["model name"] for block in cpu.blocks(root) if "model name" in block), "")
    )


def _soc(root: Path) -> str:
    for name in (text(device_tree(root, "compatible")) or "").split("\0"):
        if name in _SOCS:
            return _SOCS[name]
    return ""


def _os(root: Path) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text(root / "etc/os-release") or "", re.MULTILINE)
    return found[1] if found else ""


def _virtualization(root: Path) -> str:
    """Return the hypervisor or emulator, none, or empty where nothing tells."""
    maps = text(root / "proc/self/maps") or ""
    if "qemu-" in maps:
        return "qemu-user"
    vendor = (text(root / "sys/class/dmi/id/sys_vendor") or "").lower()
    for word, name in (("qemu", "kvm"), ("vmware", "vmware"), ("microsoft", "hyperv"), ("xen", "xen")):
        if word in vendor:
            return name
    own = cpu.blocks(root)
    if any("hypervisor" in block.get("flags", "").split() for block in own):
        return "virtual machine"
    return "none" if own else ""


def _container(root: Path) -> str:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    found = re.search(r"(?:^|\0)container=([^\0]+)", text(root / "proc/1/environ") or "")
    return found[1] if found else "none"
