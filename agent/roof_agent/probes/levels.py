"""Levels of the memory: how large a working set lies in which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roof_agent.errors import MeasurementError
from roof_agent.probes import PlanContext
from roof_agent.records import Cache

MIB = 1 << 20
DRAM = "DRAM"

# STREAM's rule: each array at least four times the last cache.
_CACHES = 4
_SMALLEST_ARRAY_BYTES = 32 * MIB
_ARRAYS = 3
# Of what is available: a board must stay usable, and its OOM killer asleep.
_MEMORY_SHARE = 0.25

# A set is in a level where it fills no more than this of it (the rest of the program is there too) ...
_INSIDE = 0.75
# ... and exceeds the level before by this; what is in between lies in both.
_BEYOND = 2.0

SMALLEST_SET_BYTES = 4096
GROWTH = {"quick": 2.0, "default": 1.5, "rigorous": 1.2}


def array_bytes(last_level_cache_bytes: int | None, memory_bytes: int) -> int:
    """Return each array's size: max(4 x last cache, 32 MiB), three within a quarter of the memory.

    Raises MeasurementError where that leaves less than two megabytes.
    """
    wanted = max(_CACHES * (last_level_cache_bytes or 0), _SMALLEST_ARRAY_BYTES)
    allowed = int(memory_bytes * _MEMORY_SHARE) // _ARRAYS
    size = min(wanted, allowed)
    if size < 2 * MIB:
        raise MeasurementError(
            f"{memory_bytes // MIB} MiB of available memory are too few for arrays beyond a cache"
        )
    return size - size % 4096


def ladder(context: PlanContext, cpus: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield working sets from 4 KiB a thread to the size of one of STREAM's arrays, by the preset's factor.

    Each as (bytes of all threads together, level); the level is empty in between and where no cache
    size is known.
    """
    largest = array_bytes(context.last_level_cache_bytes, context.memory_bytes) // len(cpus)
    each = float(SMALLEST_SET_BYTES)
    while each < largest:
        # Whole lines; kernels round down to their own step.
        size = int(each) // 512 * 512
        yield size * len(cpus), level_of(size, cpus, context.device.caches)
        each *= GROWTH[context.preset]
    yield largest * len(cpus), level_of(largest, cpus, context.device.caches)


def capacities(cpus: Sequence[int], caches: Sequence[Cache]) -> list[tuple[str, float]]:
    """Return the levels of data caches of the first CPU, each with the bytes that one thread has of it."""
    own = [
        cache
        for cache in caches
        if cache.kind != "instruction" and (not cache.shared_cpus or cpus[0] in cache.shared_cpus)
    ]
    return [
        (f"L{cache.level}", cache.size_bytes / max(len(set(cpus).intersection(cache.shared_cpus)), 1))
        for cache in sorted(own, key=lambda cache: cache.level)
    ]


def level_of(bytes_per_thread: int, cpus: Sequence[int], caches: Sequence[Cache]) -> str:
    """Return the level that holds a thread's working set, empty in between and where none is known."""
    levels = capacities(cpus, caches)
    for name, capacity in levels:
        if bytes_per_thread <= _INSIDE * capacity:
            return name
        if bytes_per_thread < _BEYOND * capacity:
            return ""
    return DRAM if levels else ""


def middles(context: PlanContext, cpus: Sequence[int]) -> dict[str, int]:
    """Return a working set (all threads together) well inside each level, and one beyond all."""
    found = {}
    below = 0.0
    for name, capacity in capacities(cpus, context.device.caches):
        low, high = max(_BEYOND * below, SMALLEST_SET_BYTES), _INSIDE * capacity
        if low < high:
            found[name] = int((low * high) ** 0.5) * len(cpus)
        below = capacity
    return {**found, DRAM: _ARRAYS * array_bytes(context.last_level_cache_bytes, context.memory_bytes)}
