"""Levels: which working set lies in which cache, alone and shared."""

import itertools

import pytest

from roof_agent.probes import PlanContext
from roof_agent.probes.levels import DRAM, capacities, ladder, level_of, middles
from roof_agent.records import Cache, Cluster, Device

KIB, MIB = 1 << 10, 1 << 20
CACHES = (
    *(Cache(1, "data", 32 * KIB, 64, (cpu,)) for cpu in range(4)),
    *(Cache(1, "instruction", 64 * KIB, 64, (cpu,)) for cpu in range(4)),
    Cache(2, "unified", 512 * KIB, 64, (0, 1, 2, 3)),
)


def context(caches=CACHES, memory=1024 * MIB, preset="default"):
    device = Device("f" * 64, "h", "aarch64", clusters=(Cluster("a53", (0, 1, 2, 3)),), caches=caches)
    last = max((cache.size_bytes for cache in caches), default=None)
    return PlanContext(device, preset, (0, 1, 2, 3), (1, 4), memory, last)


def test_a_shared_cache_is_divided_among_the_threads_that_share_it():
    assert capacities((0,), CACHES) == [("L1", 32 * KIB), ("L2", 512 * KIB)]
    assert capacities((0, 1), CACHES) == [("L1", 32 * KIB), ("L2", 256 * KIB)]
    assert capacities((0, 1, 2, 3), CACHES) == [("L1", 32 * KIB), ("L2", 128 * KIB)]
    # Another core's cache is nobody's here.
    assert capacities((7,), CACHES) == []


@pytest.mark.parametrize(
    ("size", "threads", "level"),
    [
        (4 * KIB, 1, "L1"),
        (24 * KIB, 1, "L1"),
        (32 * KIB, 1, ""),
        (64 * KIB, 1, "L2"),
        (384 * KIB, 1, "L2"),
        (512 * KIB, 1, ""),
        (1024 * KIB, 1, DRAM),
        # Four threads have 128 KiB each of it.
        (96 * KIB, 4, "L2"),
        (128 * KIB, 4, ""),
        (256 * KIB, 4, DRAM),
    ],
)
def test_level(size, threads, level):
    assert level_of(size, tuple(range(threads)), CACHES) == level


def test_no_level_is_claimed_where_no_cache_is_known():
    assert level_of(4096, (0,), ()) == ""
    assert {level for _, level in ladder(context(()), (0,))} == {""}


@pytest.mark.parametrize("cpus", [(0,), (0, 1, 2, 3)])
@pytest.mark.parametrize("preset", ["quick", "default", "rigorous"])
def test_ladder_rises_from_4_kib_a_thread_to_beyond_the_caches(cpus, preset):
    found = list(ladder(context(preset=preset), cpus))
    sizes = [size for size, _ in found]
    assert sizes[0] == 4 * KIB * len(cpus)
    assert sizes == sorted(set(sizes))
    assert all(size % (512 * len(cpus)) == 0 for size in sizes[:-1])
    # STREAM's rule for a small last cache.
    assert sizes[-1] == 32 * MIB
    growth = {"quick": 2.0, "default": 1.5, "rigorous": 1.2}[preset]
    assert all(b / a <= growth * 1.2 for a, b in itertools.pairwise(sizes))
    assert [level for level in dict.fromkeys(level for _, level in found) if level] == ["L1", "L2", DRAM]


def test_middles_lie_in_their_level():
    for cpus in ((0,), (0, 1, 2, 3)):
        found = middles(context(), cpus)
        assert list(found) == ["L1", "L2", DRAM]
        for level, size in found.items():
            assert level_of(size // len(cpus), cpus, CACHES) == level


def test_a_small_board_s_ladder_stays_under_a_quarter_of_its_memory():
    for cpus in ((0,), (0, 1, 2, 3)):
        assert max(size for size, _ in ladder(context(memory=100 * MIB), cpus)) <= 25 * MIB
