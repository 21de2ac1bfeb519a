"""Devices as their data sheets have them: peaks, bandwidths and caches, each figure with its source.

A data sheet is one TOML file of `datasheets/`, named as the device. What no public source states is
left out of it, never estimated. These are limits on paper: on small boards they are two to three
times too optimistic, which is what measuring is for.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from roof_agent.errors import UsageError
from roof_collector.analysis.roofline import Roofline

# Spellings that people use for element types.
_ELEMENT_TYPES = {
    "fp64": "float64",
    "double": "float64",
    "fp32": "float32",
    "float": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "u8": "uint8",
}


def element_type(text: str) -> str:
    """Return the element type that `text` ("fp16", "float16", "int8") means, as ONNX names it."""
    return _ELEMENT_TYPES.get(text.lower(), text.lower())


@dataclass(frozen=True)
class Peak:
    """Arithmetic at one element type, FLOP/s (integer operations where the type is one)."""

    element_type: str
    flops_per_s: float
    source: str


@dataclass(frozen=True)
class Bandwidth:
    """Traffic to one level of the memory ("dram", "l2", ...), B/s."""

    level: str
    bytes_per_s: float
    source: str


@dataclass(frozen=True)
class CacheSize:
    """One cache; `shared_by` is the number of cores that share it, None where nobody says."""

    level: int
    size_bytes: int
    source: str
    shared_by: int | None = None


@dataclass(frozen=True)
class Datasheet:
    """A device on paper. `headline` is the element type of the peak that its maker quotes."""

    name: str
    title: str
    headline: str
    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]
    caches: tuple[CacheSize, ...]

    def peak(self, element: str | None = None) -> Peak:
        """Return the peak at `element`, or the headline's; one that isn't stated is a UsageError."""
        wanted = self.headline if element is None else element_type(element)
        for peak in self.peaks:
            if peak.element_type == wanted:
                return peak
        stated = ", ".join(peak.element_type for peak in self.peaks)
        raise UsageError(f"the data sheet of {self.name} states no peak for {wanted}; it has {stated}")

    def states(self, element: str) -> bool:
        """Return whether the data sheet has a peak at `element`."""
        return any(peak.element_type == element_type(element) for peak in self.peaks)

    def bandwidth(self, level: str = "dram") -> Bandwidth:
        """Return the bandwidth of one level of the memory; one that isn't stated is a UsageError."""
        for bandwidth in self.bandwidths:
            if bandwidth.level == level:
                return bandwidth
        raise UsageError(f"the data sheet of {self.name} states no bandwidth of {level}")

    def roofline(self, element: str | None = None, level: str = "dram") -> Roofline:
        """Return the two ceilings at an element type (the headline's if None) and a memory level."""
        return Roofline(self.peak(element).flops_per_s, self.bandwidth(level).bytes_per_s)

    @property
    def last_cache_bytes(self) -> int | None:
        """Size of the cache that stands before the memory, None where nobody says."""
        return max(self.caches, key=lambda cache: cache.level).size_bytes if self.caches else None


def datasheet_names() -> tuple[str, ...]:
    """Return the names of the devices that have a data sheet, sorted."""
    folder = files("roof_collector.analysis") / "datasheets"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir()))


@cache
def datasheet(name: str) -> Datasheet:
    """Return the data sheet `name` ("rpi3", "RPi3-1core"); an unknown one is a UsageError."""
    wanted = name.lower().replace("-", "_")
    if wanted not in datasheet_names():
        raise UsageError(f"there is no data sheet of {name!r}; there are {', '.join(datasheet_names())}")
    file = files("roof_collector.analysis") / "datasheets" / f"{wanted}.toml"
    return _read(wanted, tomllib.loads(file.read_text(encoding="utf-8")))


def _read(name: str, table: dict[str, Any]) -> Datasheet:
    return Datasheet(
        name=name,
        title=table["title"],
        headline=table["headline"],
        peaks=tuple(Peak(**peak) for peak in table["peak"]),
        bandwidths=tuple(Bandwidth(**bandwidth) for bandwidth in table["bandwidth"]),
        caches=tuple(CacheSize(**cache) for cache in table.get("cache", ())),
    )
