"""Chains of tiled layers: the halo against a simulation, the cache never overrun, no chain that loses."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roof_collector.analysis.devices import datasheet
from roof_collector.analysis.granularity import Axis, Stage, best_chains, fuse
from roof_collector.analysis.roofline import Roofline

PI = datasheet("rpi3").roofline()
FREE_ARITHMETIC = Roofline(1e30, 1e9)


def stage(
    name: str, cin: int, cout: int, size: int, kernel: int, *, stride: int = 1, groups: int = 1
) -> Stage:
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    axis = Axis(size, out, kernel, stride, pad)
    weights = cin // groups * cout * kernel**2
    return Stage(
        name, axis, axis, weights * out**2, 4 * cin * size**2, 4 * weights, 4 * cout * out**2
    )  # fmt: skip


def inverted_residual(size: int = 56, width: int = 24) -> list[Stage]:
    return [
        stage("expand", width, 6 * width, size, 1),
        stage("depthwise", 6 * width, 6 * width, size, 3, groups=6 * width),
        stage("project", 6 * width, width, size, 1),
    ]


def test_an_inverted_residual_keeps_its_wide_middle_in_cache() -> None:
    stages = inverted_residual()
    chain = fuse(stages, 512 * 1024, PI)
    assert chain is not None
    assert chain.working_set_bytes <= 512 * 1024
    ends = stages[0].input_bytes + stages[-1].output_bytes + sum(one.param_bytes for one in stages)
    assert ends <= chain.memory_bytes < 2 * ends
    assert chain.memory_bytes < chain.before_bytes / 4
    assert chain.seconds < chain.before_seconds


def test_with_a_cache_for_everything_only_the_ends_move() -> None:
    stages = inverted_residual()
    chain = fuse(stages, 1 << 40, PI)
    assert chain is not None
    assert chain.tiles == 1
    assert chain.halo_macc == 0
    assert chain.memory_bytes == stages[0].input_bytes + stages[-1].output_bytes + sum(
        one.param_bytes for one in stages
    )
    assert chain.saved_bytes == sum(one.output_bytes * 2 for one in stages[:-1])


def test_weights_that_do_not_fit_are_read_for_each_tile() -> None:
    """An inverted residual of 96 channels on 14x14 has 452 KiB of weights."""
    stages = inverted_residual(14, 96)
    weights = sum(one.param_bytes for one in stages)
    chain = fuse(stages, 350 * 1024, FREE_ARITHMETIC)
    assert chain is not None
    assert chain.tiles > 1
    _, pixels = simulated(stages, chain.tile)
    assert chain.memory_bytes == 4 * 96 * pixels + weights * chain.tiles + stages[-1].output_bytes
    assert chain.working_set_bytes < weights


def test_no_cache_no_chain() -> None:
    stages = inverted_residual()
    assert fuse(stages, 100, PI) is None
    chains = best_chains(stages, 100, PI)
    assert [chain.names for chain in chains] == [("expand",), ("depthwise",), ("project",)]
    assert sum(chain.memory_bytes for chain in chains) == sum(one.memory_bytes for one in stages)


def simulated(stages: list[Stage], tile: tuple[int, int]) -> tuple[int, int]:
    """Count macc and input pixels tile by tile, marking every pixel that is needed."""
    macc = pixels = 0
    last = stages[-1]
    for top in range(0, last.rows.out_size, tile[0]):
        for left in range(0, last.columns.out_size, tile[1]):
            rows = set(range(top, min(last.rows.out_size, top + tile[0])))
            columns = set(range(left, min(last.columns.out_size, left + tile[1])))
            for one in reversed(stages):
                macc += one.macc * len(rows) * len(columns) // (one.rows.out_size * one.columns.out_size)
                rows, columns = needed(one.rows, rows), needed(one.columns, columns)
            pixels += len(rows) * len(columns)
    return macc, pixels


def needed(axis: Axis, outputs: set[int]) -> set[int]:
    taps = {at * axis.stride - axis.pad + k for at in outputs for k in range(axis.kernel)}
    return {tap for tap in taps if 0 <= tap < axis.in_size}


@st.composite
def sequences(draw: st.DrawFn) -> list[Stage]:
    size, channels = draw(st.integers(5, 24)), 4
    stages = []
    for index in range(draw(st.integers(2, 4))):
        kernel, stride = draw(st.sampled_from([(1, 1), (3, 1), (3, 2), (5, 1)]))
        stages.append(stage(f"layer {index}", channels, channels, size, kernel, stride=stride))
        size = stages[-1].rows.out_size
    return stages


@settings(max_examples=60, deadline=None)
@given(sequences(), st.integers(300, 20_000))
def test_the_halo_is_what_a_simulation_counts(stages: list[Stage], cache_bytes: int) -> None:
    chain = fuse(stages, cache_bytes, FREE_ARITHMETIC)
    if chain is None:
        return
    assert chain.working_set_bytes <= cache_bytes
    macc, pixels = simulated(stages, chain.tile)
    assert chain.macc == macc
    weights = sum(one.param_bytes for one in stages)
    moved = 16 * pixels + stages[-1].output_bytes
    assert chain.memory_bytes in {moved + weights, moved + weights * chain.tiles}


@settings(max_examples=40, deadline=None)
@given(sequences(), st.integers(0, 20_000))
def test_cutting_in_chains_never_loses(stages: list[Stage], cache_bytes: int) -> None:
    chains = best_chains(stages, cache_bytes, PI)
    assert [name for chain in chains for name in chain.names] == [one.name for one in stages]
    before = sum(chain.before_seconds for chain in chains)
    assert sum(chain.seconds for chain in chains) <= before * (1 + 1e-12)
    assert all(chain.working_set_bytes <= cache_bytes for chain in chains if len(chain.names) > 1)


def test_a_larger_cache_is_never_slower() -> None:
    stages = inverted_residual()
    times = [
        sum(chain.seconds for chain in best_chains(stages, size * 1024, PI))
        for size in (8, 32, 128, 512, 2048)
    ]
    assert times == sorted(times, reverse=True)
