"""The roofline model: what the two ceilings of a device say about a layer and a network.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
A layer takes the longer of its arithmetic at the peak and its traffic at the bandwidth; a network
takes the sum of its layers. The maximum taken over the whole network at once is up to 40 % too low
near the ridge and is given for comparison alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Counted(Protocol):
    """What the model needs of a layer."""

    @property
    def macc(self) -> int:
        """Multiply-accumulates."""

    @property
    def memory_bytes(self) -> int:
        """Bytes moved with every cache ignored."""


@dataclass(frozen=True)
class Roofline:
    """A device as two ceilings: arithmetic in FLOP/s and memory traffic in B/s."""

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """Intensity in FLOP/byte from which on the arithmetic binds."""
        return self.flops_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        """Return min(peak, bandwidth * intensity) in FLOP/s."""
        return min(self.flops_per_s, self.bytes_per_s * intensity)


@dataclass(frozen=True)
class RooflineTime:
    """Time of one layer (or of a whole taken as one) in seconds; the larger side binds."""

    compute_seconds: float
    memory_seconds: float

    @property
    def seconds(self) -> float:
        """The longer of the two sides."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound(self) -> str:
        """Which side binds: compute or memory; on the ridge itself, compute."""
        return "compute" if self.compute_seconds >= self.memory_seconds else "memory"


def layer_time(layer: Counted, roofline: Roofline) -> RooflineTime:
    """Return what the ceilings allow one layer.

    The arithmetic side is 2*macc alone: the peak is one of multiply-adds, and what is not a
    multiply-accumulate doesn't run at it.
    """
    return RooflineTime(2 * layer.macc / roofline.flops_per_s, layer.memory_bytes / roofline.bytes_per_s)


def layers_seconds(layers: Iterable[Counted], roofline: Roofline) -> float:
    """Return the sum of the layers' own maxima: the network's roofline latency."""
    return sum(layer_time(layer, roofline).seconds for layer in layers)


def model_seconds(layers: Iterable[Counted], roofline: Roofline) -> float:
    """Return the maximum over the whole network taken as one layer (for comparison)."""
    times = [layer_time(layer, roofline) for layer in layers]
    return RooflineTime(
        sum(time.compute_seconds for time in times), sum(time.memory_seconds for time in times)
    ).seconds
