"""Cache sizes where nothing tells them: from the steps of the latency over the working set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from roof_agent import child
from roof_agent.probes import Answer, Task
from roof_agent.probes.latency import Latency
from roof_agent.records import Cache, Cluster, Device

# Between two neighbouring sizes; less is a slope within a level (the TLB's, a replacement's).
_RISING = 1.12
# From a level's latency to the next one's; less is no cache.
_LEAST_STEP = 1.5
_MOST_LEVELS = 3

_SMALLEST_BYTES, _LARGEST_BYTES = 4 << 10, 64 << 20
_GROWTH = math.sqrt(2)
_LINE_BYTES = 64

Points = Sequence[tuple[int, float]]
Measure = Callable[[Sequence[Task]], list[Answer]]


def supplement(device: Device, available_bytes: int, measure: Measure = child.measure) -> Device:
    """Return the device with inferred caches where it has none, and unchanged where they can't be."""
    if device.caches or not device.clusters:
        return device
    found: list[Cache] = []
    for cluster in device.clusters:
        tasks = _tasks(cluster.cpus[0], min(_LARGEST_BYTES, available_bytes // 4))
        points = [
            (int(task.settings["working_set_bytes"]), min(answer.reading.repetitions))
            for task, answer in zip(tasks, measure(tasks), strict=True)
            if answer.reading
        ]
        found += _caches(cluster, cache_bytes(points))
    return replace(device, caches=tuple(sorted(found, key=lambda cache: (cache.level, cache.shared_cpus))))


def cache_bytes(points: Points) -> tuple[int, ...]:
    """Return the caches' sizes from (working set in bytes, latency in seconds), the smallest first.

    A cache ends where the latency has risen half its way (in logarithms) to the next level's; its size is
    then the nearest of 2^k and 3 * 2^k, which is how caches are built. Right to a factor of 1.5: a cache
    with random replacement ends softly.
    """
    smooth = _without_noise(points)
    sizes = []
    for rise in _rises(smooth):
        (_, low), (_, high) = rise[0], rise[-1]
        if high < low * _LEAST_STEP:
            continue
        middle = math.sqrt(low * high)
        for (size, before), (next_size, after) in itertools.pairwise(rise):
            if before <= middle <= after:
                share = math.log(middle / before) / math.log(after / before)
                sizes.append(_as_built(size * (next_size / size) ** share))
                break
    return tuple(sizes[:_MOST_LEVELS])


def _without_noise(points: Points) -> list[tuple[int, float]]:
    """Return the points with each latency at most its successors': noise only ever adds."""
    least = list(itertools.accumulate((seconds for _, seconds in reversed(points)), min))
    return [(size, seconds) for (size, _), seconds in zip(points, reversed(least), strict=True)]


def _rises(points: Points) -> list[list[tuple[int, float]]]:
    rises: list[list[tuple[int, float]]] = []
    rising = False
    for first, second in itertools.pairwise(points):
        if second[1] <= first[1] * _RISING:
            rising = False
        elif rising:
            rises[-1].append(second)
        else:
            rises.append([first, second])
            rising = True
    return rises


def _as_built(size: float) -> int:
    power = 1 << math.floor(math.log2(size))
    return min((power, power * 3 // 2, power * 2), key=lambda built: abs(math.log(built / size)))


def _caches(cluster: Cluster, sizes: Sequence[int]) -> list[Cache]:
    found = []
    for level, size in enumerate(sizes, 1):
        # The first level is every core's own; who shares the others the latency of one core doesn't tell.
        sharers = [(cpu,) for cpu in cluster.cpus] if level == 1 else [cluster.cpus]
        kind = "data" if level == 1 else "unified"
        found += [Cache(level, kind, size, _LINE_BYTES, shared, "ladder") for shared in sharers]
    return found


def _tasks(cpu: int, largest_bytes: int) -> list[Task]:
    count = int(math.log(max(largest_bytes / _SMALLEST_BYTES, 1), _GROWTH)) + 1
    sizes = [int(_SMALLEST_BYTES * _GROWTH**step) // 1024 * 1024 for step in range(count)]
    return [
        Task(
            probe=Latency.name,
            subject="latency",
            quantity=Latency.quantity,
            threads=1,
            cpus=(cpu,),
            seconds=0.2,
            settings={
                "kernel": "latency",
                "backend": "",
                "working_set_bytes": size,
                "warmup_seconds": 0.0 if index else 0.5,
                "budget_seconds": 0.03,
                "min_repetitions": 5,
                "repetition_seconds": 0.002,
            },
            batch="inference",
        )
        for index, size in enumerate(sizes)
    ]
