"""Cache sizes: from sysfs, else the device tree, else a table by kind of core; each says which."""

from __future__ import annotations

from pathlib import Path

from roof_agent.platform.files import cpu_list, device_tree, integer, text
from roof_agent.records import Cache, Cluster

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_KIB = 1 << 10

# Where neither sysfs nor the device tree tells: sizes that the core or its usual chip fixes, and
# whether each core has its own. cortex-a53 as in BCM2837, a57 as in Tegra X1, a72 as in BCM2711, a76
# as in BCM2712 (each chip's data sheet); the first level is the core's (Technical Reference Manuals).
_BY_CORE: dict[str, tuple[tuple[int, str, int, bool], ...]] = {
    "cortex-a53": (
        (1, "data", 32 * _KIB, True),
        (1, "instruction", 32 * _KIB, True),
        (2, "unified", 512 * _KIB, False),
    ),
    "cortex-a57": (
        (1, "data", 32 * _KIB, True),
        (1, "instruction", 48 * _KIB, True),
        (2, "unified", 2048 * _KIB, False),
    ),
    "cortex-a72": (
        (1, "data", 32 * _KIB, True),
        (1, "instruction", 48 * _KIB, True),
        (2, "unified", 1024 * _KIB, False),
    ),
    "cortex-a76": (
        (1, "data", 64 * _KIB, True),
        (1, "instruction", 64 * _KIB, True),
        (2, "unified", 512 * _KIB, True),
        (3, "unified", 2048 * _KIB, False),
    ),
}


def caches(root: Path, clusters: tuple[Cluster, ...]) -> tuple[Cache, ...]:
    """Return the distinct caches, the smallest level first; empty where nothing tells."""
    cpus = tuple(cpu for cluster in clusters for cpu in cluster.cpus)
    return _sysfs(root, cpus) or _device_tree(root, cpus) or _core_table(clusters)


def last_level_bytes(found: tuple[Cache, ...]) -> int | None:
    """Return the size of the largest data-holding cache, None where none is known."""
    sizes = [cache.size_bytes for cache in found if cache.kind != "instruction"]
    return max(sizes, default=None)


def _sysfs(root: Path, cpus: tuple[int, ...]) -> tuple[Cache, ...]:
    found: dict[tuple[int, str, tuple[int, ...]], Cache] = {}
    for cpu in cpus:
        for index in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
            level, kind = integer(index / "level"), (text(index / "type") or "").lower()
            size = _size(text(index / "size"))
            if not level or not kind or not size:
                continue
            shared = cpu_list(text(index / "shared_cpu_list")) or (cpu,)
            cache = Cache(level, kind, size, integer(index / "coherency_line_size"), shared, "sysfs")
            found.setdefault((level, kind, shared), cache)
    return tuple(found[key] for key in sorted(found))


def _device_tree(root: Path, cpus: tuple[int, ...]) -> tuple[Cache, ...]:
    base = device_tree(root, "cpus")
    found = []
    for cpu, node in zip(cpus, sorted(base.glob("cpu@*")), strict=False):
        for kind, name in (("data", "d-cache"), ("instruction", "i-cache")):
            size = _cell(node / f"{name}-size")
            if size:
                found.append(Cache(1, kind, size, _cell(node / f"{name}-line-size"), (cpu,), "device-tree"))
    for node in sorted(base.glob("*l2-cache*")):
        size = _cell(node / "cache-size")
        if size:
            found.append(Cache(2, "unified", size, _cell(node / "cache-line-size"), cpus, "device-tree"))
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind, cache.shared_cpus)))


def _core_table(clusters: tuple[Cluster, ...]) -> tuple[Cache, ...]:
    found = []
    for cluster in clusters:
        for level, kind, size, own in _BY_CORE.get(cluster.core, ()):
            sharers = [(cpu,) for cpu in cluster.cpus] if own else [cluster.cpus]
            found += [Cache(level, kind, size, 64, shared, "core-table") for shared in sharers]
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind, cache.shared_cpus)))


def _size(content: str | None) -> int | None:
    """Return the bytes of a size such as 512K."""
    if not content:
        return None
    digits, unit = (content[:-1], content[-1]) if content[-1] in _UNITS else (content, "")
    return int(digits) * _UNITS.get(unit, 1) if digits.isdigit() else None


def _cell(path: Path) -> int | None:
    """Return a device tree's big-endian 32-bit cell."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return int.from_bytes(data[:4], "big") if len(data) >= 4 else None
