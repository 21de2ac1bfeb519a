"""What would change a layer's cost: each alternative in operations, in bytes, and in time on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roof_collector.analysis.convolution import (
    Convolution,
    Variant,
    bottleneck,
    bottleneck_layers,
    depthwise_separable,
    grouped,
    plain,
    separable_layers,
    structured_sparsity,
    unstructured_sparsity,
)
from roof_collector.analysis.devices import Datasheet
from roof_collector.analysis.fast_convolution import fourier, winograd
from roof_collector.analysis.granularity import Axis, Chain, Stage, best_chains
from roof_collector.analysis.roofline import Roofline, RooflineTime

BASE_TYPE = "float32"
WINOGRAD_OUTPUTS = (2, 4, 6)


@dataclass(frozen=True)
class Questions:
    """What to ask. `groups` that don't divide the channels are left out; empty asks nothing."""

    groups: Sequence[int] = (2, 4, 8)
    element_types: Sequence[str] = ()
    winograd: Sequence[int] = ()
    fft: bool = False
    sparsity: Sequence[float] = ()
    cache_bytes: int | None = None


@dataclass(frozen=True)
class Row:
    """One way to compute the layer. Ratios are to the plain one: below 1 is better.

    `peak_type` is the element type whose peak the time supposes: another than the row's own where
    the data sheet states none for that.
    """

    name: str
    element_type: str
    params: int
    macc: int
    flops: int
    memory_bytes: int
    intensity: float | None
    seconds: float
    bound: str
    peak_type: str
    flops_ratio: float
    bytes_ratio: float
    seconds_ratio: float
    note: str = ""


def alternatives(conv: Convolution, questions: Questions, device: Datasheet) -> list[Row]:
    """Return the plain convolution and what was asked for, each on the device."""
    roofline, _ = roofline_at(device, BASE_TYPE)
    base = plain(conv, BASE_TYPE)
    variants = [
        base,
        bottleneck(conv, BASE_TYPE),
        depthwise_separable(conv, BASE_TYPE),
        *grouped(conv, BASE_TYPE, questions.groups),
        *(
            Variant(element, plain(conv, element).steps, element, "activations and weights")
            for element in questions.element_types
        ),
        *(variant for outputs in questions.winograd for variant in winograd(conv, BASE_TYPE, outputs)),
        *([fourier(conv, BASE_TYPE, roofline)] if questions.fft else []),
    ]
    for share in questions.sparsity:
        variants.append(structured_sparsity(conv, BASE_TYPE, share))
        variants.append(unstructured_sparsity(conv, BASE_TYPE, share))
    rows = [_row(variant, base, device) for variant in variants]
    if questions.cache_bytes is not None:
        rows += _tiled(conv, questions.cache_bytes, device, rows)
    return rows


def _row(variant: Variant, base: Variant, device: Datasheet) -> Row:
    roofline, peak_type = roofline_at(device, variant.element_type)
    base_seconds = base.seconds(roofline_at(device, base.element_type)[0])
    seconds = variant.seconds(roofline)
    return Row(
        name=variant.name,
        element_type=variant.element_type,
        params=variant.params,
        macc=variant.macc,
        flops=variant.flops,
        memory_bytes=variant.memory_bytes,
        intensity=variant.intensity,
        seconds=seconds,
        bound=variant.bound(roofline),
        peak_type=peak_type,
        flops_ratio=variant.flops / base.flops,
        bytes_ratio=variant.memory_bytes / base.memory_bytes,
        seconds_ratio=seconds / base_seconds,
        note=variant.note,
    )


def roofline_at(device: Datasheet, element_type: str) -> tuple[Roofline, str]:
    """Return the ceilings at the type; at the base type's or the headline's peak where none is stated."""
    for candidate in (element_type, BASE_TYPE):
        if device.states(candidate):
            return device.roofline(candidate), candidate
    return device.roofline(), device.headline


def _tiled(conv: Convolution, cache_bytes: int, device: Datasheet, rows: Sequence[Row]) -> list[Row]:
    """Return the alternatives of several layers with what is between them kept in cache."""
    roofline, _ = roofline_at(device, BASE_TYPE)
    layers = {"bottleneck": bottleneck_layers(conv), "depthwise separable": separable_layers(conv)}
    return [
        _tiled_row(
            best_chains([stage(layer, part) for part, layer in layers[row.name]], cache_bytes, roofline),
            row,
            rows[0],
            roofline,
        )
        for row in rows
        if row.name in layers
    ]


def _tiled_row(chains: Sequence[Chain], whole: Row, base: Row, roofline: Roofline) -> Row:
    macc = sum(chain.macc for chain in chains)
    moved = sum(chain.memory_bytes for chain in chains)
    seconds = sum(chain.seconds for chain in chains)
    return replace(
        whole,
        name=f"{whole.name}, tiled",
        macc=macc,
        flops=2 * macc,
        memory_bytes=moved,
        intensity=2 * macc / moved,
        seconds=seconds,
        bound=RooflineTime(2 * macc / roofline.flops_per_s, moved / roofline.bytes_per_s).bound,
        flops_ratio=2 * macc / base.flops,
        bytes_ratio=moved / base.memory_bytes,
        seconds_ratio=seconds / base.seconds,
        note="; ".join(describe(chain) for chain in chains if len(chain.names) > 1)
        or "no tile within the cache saves traffic",
    )


def describe(chain: Chain) -> str:
    """Return a chain's tile, what it saves and what it costs, in words."""
    return (
        f"{' + '.join(chain.names)}: {chain.tiles} tiles of {chain.tile[0]}x{chain.tile[1]} on "
        f"{chain.working_set_bytes / 1024:.0f} KiB, {chain.saved_bytes / 1e6:.3f} MB saved, "
        f"{chain.halo_macc / 1e6:.3f} M macc again"
    )


def stage(conv: Convolution, name: str, element_type: str = BASE_TYPE) -> Stage:
    """Return the convolution as a stage of a chain."""
    step = conv.step(element_type)
    return Stage(
        name,
        rows=Axis(conv.height, conv.out_height, conv.kernel[0], conv.stride, conv.pads[0]),
        columns=Axis(conv.width, conv.out_width, conv.kernel[1], conv.stride, conv.pads[1]),
        macc=step.macc,
        input_bytes=step.input_bytes,
        param_bytes=step.param_bytes,
        output_bytes=step.output_bytes,
    )
