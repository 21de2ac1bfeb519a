"""Operator granularity: chains of layers that, tiled in space, keep what is between them in cache.

Executed layer by layer, every intermediate tensor is written to memory and read back. Executed tile
by tile of the chain's output, the intermediates stay in cache; the price is the halo: the overlap of
neighbouring tiles' inputs is read and computed again (Alwani et al., "Fused-layer CNN accelerators",
MICRO 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from roof_collector.analysis.roofline import Roofline

# Longer chains were never better on the zoo: the halo grows with each layer.
MAX_CHAIN = 8


@dataclass(frozen=True)
class Axis:
    """How a layer walks along one spatial axis; `kernel` with its dilation."""

    in_size: int
    out_size: int
    kernel: int
    stride: int
    pad: int

    def needs(self, start: int, end: int) -> tuple[int, int]:
        """Return the input's interval that outputs [start, end) are computed from."""
        first = max(0, start * self.stride - self.pad)
        last = min(self.in_size, (end - 1) * self.stride - self.pad + self.kernel)
        return first, max(first, last)


@dataclass(frozen=True)
class Stage:
    """A layer that works on a map: what it costs whole, and its two axes."""

    name: str
    rows: Axis
    columns: Axis
    macc: int
    input_bytes: int
    param_bytes: int
    output_bytes: int

    @property
    def memory_bytes(self) -> int:
        """Bytes moved when the layer runs alone."""
        return self.input_bytes + self.param_bytes + self.output_bytes

    def input_part(self, rows: int, columns: int) -> int:
        """Return the bytes of so many rows and columns of the input, rounded up."""
        return _part(self.input_bytes, rows * columns, self.rows.in_size * self.columns.in_size)

    def output_part(self, rows: int, columns: int) -> int:
        """Return the bytes of so many rows and columns of the output, rounded up."""
        return _part(self.output_bytes, rows * columns, self.rows.out_size * self.columns.out_size)

    def macc_part(self, rows: int, columns: int) -> int:
        """Return the multiply-accumulates of so many rows and columns of the output."""
        return _part(self.macc, rows * columns, self.rows.out_size * self.columns.out_size)


@dataclass(frozen=True)
class _Cut:
    """One axis cut in tiles: input lengths of each stage, summed over the tiles and the largest.

    The last entry is the output of the last stage.
    """

    tile: int
    tiles: int
    summed: tuple[int, ...]
    largest: tuple[int, ...]


@dataclass(frozen=True)
class Chain:
    """Layers that run as one operator, tile by tile; a chain of one layer runs as it is.

    `macc` and `memory_bytes` are with the halo; `before_*` those of the layers one by one. Times are
    those of the roofline: each layer the longer of its arithmetic and of what it moves.
    """

    names: tuple[str, ...]
    tile: tuple[int, int]
    tiles: int
    working_set_bytes: int
    macc: int
    before_macc: int
    memory_bytes: int
    before_bytes: int
    seconds: float
    before_seconds: float

    @property
    def saved_bytes(self) -> int:
        """Bytes that needn't go through memory."""
        return self.before_bytes - self.memory_bytes

    @property
    def halo_macc(self) -> int:
        """Multiply-accumulates that are done again where tiles overlap."""
        return self.macc - self.before_macc


def best_chains(stages: Sequence[Stage], cache_bytes: int, roofline: Roofline) -> list[Chain]:
    """Cut a linear sequence of layers into the chains that take least time within `cache_bytes`.

    Each stage reads what the one before it wrote, and nobody else reads that.
    """
    best: list[tuple[float, int, tuple[Chain, ...]]] = [(0.0, 0, ())]
    for end in range(1, len(stages) + 1):
        candidates = []
        for start in range(max(0, end - MAX_CHAIN), end):
            chain = fuse(stages[start:end], cache_bytes, roofline)
            if chain is not None:
                seconds, moved, chains = best[start]
                candidates.append((seconds + chain.seconds, moved + chain.memory_bytes, (*chains, chain)))
        best.append(min(candidates, key=lambda candidate: candidate[:2]))
    return list(best[-1][2])


def fuse(stages: Sequence[Stage], cache_bytes: int, roofline: Roofline) -> Chain | None:
    """Return the chain on its best tile; None where no tile that fits the cache saves traffic.

    The weights of all layers stay in cache too, or, where that leaves too little, are read anew for
    each tile; whichever is faster.
    """
    if len(stages) == 1:
        return _alone(stages[0], roofline)
    rows = _cuts(tuple(stage.rows for stage in stages))
    columns = _cuts(tuple(stage.columns for stage in stages))
    weights = sum(stage.param_bytes for stage in stages)
    best: Chain | None = None
    for row_cut in rows:
        for column_cut in columns:
            buffers = _buffers(stages, row_cut, column_cut)
            for resident in (True, False):
                working_set = buffers + (weights if resident else 0)
                if working_set <= cache_bytes:
                    chain = _chain(stages, (row_cut, column_cut), working_set, roofline, resident=resident)
                    if chain.saved_bytes > 0 and (best is None or _rank(chain) < _rank(best)):
                        best = chain
    return best


def _rank(chain: Chain) -> tuple[float, int, int]:
    return chain.seconds, chain.memory_bytes, chain.working_set_bytes


def _alone(stage: Stage, roofline: Roofline) -> Chain:
    seconds = _seconds(stage.macc, stage.memory_bytes, roofline)
    return Chain(
        names=(stage.name,),
        tile=(stage.rows.out_size, stage.columns.out_size),
        tiles=1,
        working_set_bytes=0,
        macc=stage.macc,
        before_macc=stage.macc,
        memory_bytes=stage.memory_bytes,
        before_bytes=stage.memory_bytes,
        seconds=seconds,
        before_seconds=seconds,
    )


@cache
def _cuts(axes: tuple[Axis, ...]) -> tuple[_Cut, ...]:
    """Return every distinct way to cut the last axis' output into equal tiles."""
    size = axes[-1].out_size
    return tuple(_cut(axes, tile) for tile in sorted({-(-size // count) for count in range(1, size + 1)}))


def _cut(axes: tuple[Axis, ...], tile: int) -> _Cut:
    size = axes[-1].out_size
    lengths: list[list[int]] = []
    for start in range(0, size, tile):
        interval = (start, min(size, start + tile))
        own = [interval[1] - interval[0]]
        for axis in reversed(axes):
            interval = axis.needs(*interval)
            own.append(interval[1] - interval[0])
        lengths.append(own[::-1])
    return _Cut(
        tile,
        len(lengths),
        tuple(sum(column) for column in zip(*lengths, strict=True)),
        tuple(max(column) for column in zip(*lengths, strict=True)),
    )


def _buffers(stages: Sequence[Stage], rows: _Cut, columns: _Cut) -> int:
    """Bytes of the largest tile's input and output, whichever layer has most."""
    return max(
        stage.input_part(rows.largest[at], columns.largest[at])
        + stage.output_part(rows.largest[at + 1], columns.largest[at + 1])
        for at, stage in enumerate(stages)
    )


def _chain(
    stages: Sequence[Stage], cuts: tuple[_Cut, _Cut], working_set: int, roofline: Roofline, *, resident: bool
) -> Chain:
    rows, columns = cuts
    tiles = rows.tiles * columns.tiles
    macc, moved, seconds = 0, 0, 0.0
    for at, stage in enumerate(stages):
        own_macc = stage.macc_part(rows.summed[at + 1], columns.summed[at + 1])
        own_bytes = stage.param_bytes * (1 if resident else tiles)
        if at == 0:
            own_bytes += stage.input_part(rows.summed[0], columns.summed[0])
        if at == len(stages) - 1:
            own_bytes += stage.output_bytes
        macc += own_macc
        moved += own_bytes
        seconds += _seconds(own_macc, own_bytes, roofline)
    return Chain(
        names=tuple(stage.name for stage in stages),
        tile=(rows.tile, columns.tile),
        tiles=tiles,
        working_set_bytes=working_set,
        macc=macc,
        before_macc=sum(stage.macc for stage in stages),
        memory_bytes=moved,
        before_bytes=sum(stage.memory_bytes for stage in stages),
        seconds=seconds,
        before_seconds=sum(_seconds(stage.macc, stage.memory_bytes, roofline) for stage in stages),
    )


def _part(whole: int, part: int, of: int) -> int:
    return -(-whole * part // of) if whole else 0


def _seconds(macc: int, moved: int, roofline: Roofline) -> float:
    return max(2 * macc / roofline.flops_per_s, moved / roofline.bytes_per_s)
