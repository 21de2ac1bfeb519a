"""Cache sizes from latencies: synthetic boards with noise, and this machine."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roof_agent.child import native_problem
from roof_agent.inference import cache_bytes, supplement
from roof_agent.platform.discovery import discover
from roof_agent.probes import Answer
from roof_agent.records import Cache, Cluster, Conditions, Device

KIB = 1 << 10
# The first curve: a Zen 3 with 32 KiB, 512 KiB, and its share of a larger third level.
MEASURED = [
    (4, 1.24), (5, 1.23), (8, 1.25), (11, 1.23), (16, 1.24), (22, 1.23), (32, 1.30), (45, 3.78), (64, 3.80),
    (90, 3.72), (128, 3.73), (181, 3.75), (256, 4.40), (362, 5.32), (512, 8.60), (724, 12.24), (1024, 14.01),
    (1448, 19.62), (2048, 15.57), (2896, 16.21), (4096, 16.52), (5792, 17.17), (8192, 17.83), (11585, 176.58),
    (16384, 215.95), (23170, 239.32), (32768, 226.33), (46340, 242.11),
]  # fmt: skip


def curve(sizes_kib, latencies_ns, noise=lambda: 1.0, sharpness=4):
    """A set that exceeds a cache hits it the less the more: softly (random replacement) or sharply."""
    points, size = [], 4 * KIB
    while size <= 64 << 20:
        seconds, left = 0.0, 1.0
        for cache, latency in zip(sizes_kib, latencies_ns, strict=False):
            hit = min(left, (cache * KIB / size) ** sharpness) if size > cache * KIB else left
            seconds += hit * latency
            left -= hit
        seconds += left * latencies_ns[-1]
        points.append((size, seconds * 1e-9 * noise()))
        size = int(size * math.sqrt(2)) // KIB * KIB or size + KIB
    return points


def test_measured_curve():
    assert cache_bytes([(size * KIB, ns * 1e-9) for size, ns in MEASURED])[:2] == (32 * KIB, 512 * KIB)


@pytest.mark.parametrize(
    ("sizes", "latencies"),
    [
        ([32, 512], [2.5, 12.5, 150]),  # as a Pi 3
        ([32, 1024], [2.0, 12.0, 110]),  # as a Pi 4
        ([64, 512, 2048], [1.7, 5.0, 14.0, 110]),  # as a Pi 5
        ([48, 2048], [1.2, 5.0, 80]),
        ([16], [5, 100]),
    ],
)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_synthetic_boards_with_noise(sizes, latencies, data):
    """Noise adds up to 5 % to any point: neighbours, interrupts, never less time than it takes."""
    noise = st.floats(1.0, 1.05)
    sharpness = data.draw(st.sampled_from([3, 6, 20]))
    found = cache_bytes(curve(sizes, latencies, lambda: data.draw(noise), sharpness))
    assert len(found) == len(sizes)
    assert all(2 / 3 <= size / (known * KIB) <= 1.5 for size, known in zip(found, sizes, strict=True))


@pytest.mark.parametrize("at", range(4, 20))
def test_one_disturbed_point_is_no_cache(at):
    points = curve([32, 512], [2.5, 12.5, 150], sharpness=20)
    size, seconds = points[at]
    points[at] = (size, 3 * seconds)
    assert [size // KIB for size in cache_bytes(points)] == [32, 512]


def test_a_flat_curve_has_no_caches():
    assert cache_bytes([(size, 1e-9) for size in (4096, 8192, 16384)]) == ()
    assert cache_bytes([]) == ()


BARE = Device("f" * 64, "h", "riscv64", clusters=(Cluster("", (0, 1)),))


def test_supplement_names_where_the_sizes_come_from():
    by_size = dict(curve([32, 512], [2.5, 12.5, 150], sharpness=20))

    def measure(tasks):
        assert {task.cpus for task in tasks} == {(0,)}
        sizes = [task.settings["working_set_bytes"] for task in tasks]
        state = Conditions(0)
        near = [min(by_size, key=lambda known, size=size: abs(known - size)) for size in sizes]
        return [Answer(state, state, 0, 1.0, 1.0, reading=FakeReading((by_size[size], 1.0))) for size in near]

    assert supplement(BARE, 1 << 30, measure).caches == (
        Cache(1, "data", 32 * KIB, 64, (0,), "ladder"),
        Cache(1, "data", 32 * KIB, 64, (1,), "ladder"),
        Cache(2, "unified", 512 * KIB, 64, (0, 1), "ladder"),
    )


class FakeReading:
    def __init__(self, repetitions):
        self.repetitions = repetitions


def test_known_caches_are_left_alone():
    known = replace(BARE, caches=(Cache(1, "data", 32 * KIB),))

    def measure(tasks):
        raise AssertionError

    assert supplement(known, 1 << 30, measure) is known


def test_where_nothing_can_be_measured_nothing_is_claimed():
    def measure(tasks):
        return [Answer(Conditions(0), Conditions(1), 0, 1.0, 1.0, unavailable="no kernel") for _ in tasks]

    assert supplement(BARE, 1 << 30, measure).caches == ()


@pytest.mark.skipif(bool(native_problem()), reason="the compiled kernels aren't here")
def test_this_machine_s_first_level():
    """Loosely: it shares its host with others. The first level is nobody else's."""
    device = discover()
    known = {cache.size_bytes for cache in device.caches if cache.level == 1 and cache.kind == "data"}
    found = supplement(replace(device, caches=()), 64 << 20)
    first = {cache.size_bytes for cache in found.caches if cache.level == 1}
    assert len(first) == 1
    if known:
        assert 0.5 <= first.pop() / known.pop() <= 2
