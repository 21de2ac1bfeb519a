"""What would change a whole network's cost: each question put to every layer that it fits.

A layer that an alternative doesn't fit stays as it is, and so does one that would be slower for it
where that is a choice of algorithm (Winograd, FFT, tiles), not of the network's design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onnx import ModelProto

from roof_agent.errors import UsageError
from roof_collector.analysis.convolution import (
    Convolution,
    Variant,
    bottleneck,
    depthwise_separable,
    grouped,
    plain,
    structured_sparsity,
    unstructured_sparsity,
)
from roof_collector.analysis.devices import Datasheet
from roof_collector.analysis.fast_convolution import fourier, winograd
from roof_collector.analysis.granularity import Chain, best_chains
from roof_collector.analysis.network import Network, Placed
from roof_collector.analysis.result import Analysis, Layer
from roof_collector.analysis.roofline import Roofline, RooflineTime, layer_time
from roof_collector.analysis.whatif import BASE_TYPE, Questions, Row, roofline_at

# Count a model under the preset in question: what retypes a network needs it anew.
Analyzer = Callable[[str | None], tuple[ModelProto, Analysis]]
Alternative = Callable[[Convolution], Variant | None]


@dataclass(frozen=True)
class _Cost:
    """A layer's, or the network's, cost under an alternative."""

    params: int
    macc: int
    flops: int
    memory_bytes: int
    seconds: float

    def __add__(self, other: _Cost) -> _Cost:
        return _Cost(
            self.params + other.params,
            self.macc + other.macc,
            self.flops + other.flops,
            self.memory_bytes + other.memory_bytes,
            self.seconds + other.seconds,
        )


_NOTHING = _Cost(0, 0, 0, 0, 0.0)


@dataclass(frozen=True)
class Answers:
    """The network as it is and under each alternative, and the chains that --cache found."""

    rows: list[Row]
    chains: list[Chain]


def network_alternatives(analyzed: Analyzer, questions: Questions, device: Datasheet) -> Answers:
    """Return the network as it is, and what was asked for, on the device.

    `analyzed` counts the network, as if of an element type where one is given.
    """
    model, analysis = analyzed(None)
    network = Network(model, analysis.require_numbers())
    roofline, peak_type = roofline_at(device, BASE_TYPE)
    base = _total(analysis.layers, roofline)
    rows = [_row("as it is", BASE_TYPE, peak_type, base, base, roofline, "")]
    for name, alternative, is_choice in _alternatives(questions, roofline):
        cost, changed = _replaced(network, base, roofline, alternative, is_choice=is_choice)
        note = f"{changed} of {sum(placed.conv is not None for placed in network.placed)} convolutions"
        rows.append(_row(name, BASE_TYPE, peak_type, cost, base, roofline, note))
    for element in questions.element_types:
        own_roofline, own_peak = roofline_at(device, element)
        cost = _total(analyzed(element)[1].layers, own_roofline)
        rows.append(_row(element, element, own_peak, cost, base, own_roofline, "activations and weights"))
    chains: list[Chain] = []
    if questions.cache_bytes is not None:
        chains = _chains(network, questions.cache_bytes, roofline)
        cost = _tiled(base, chains)
        note = f"{len(chains)} chains of {sum(len(chain.names) for chain in chains)} layers"
        rows.append(_row("tiled", BASE_TYPE, peak_type, cost, base, roofline, note))
    return Answers(rows, chains)


def _alternatives(questions: Questions, roofline: Roofline) -> Iterable[tuple[str, Alternative, bool]]:
    """Yield what to put in place of a convolution, and whether only where it is faster."""
    yield "bottleneck", lambda conv: bottleneck(conv, BASE_TYPE) if _is_dense(conv) else None, False
    yield (
        "depthwise separable",
        lambda conv: depthwise_separable(conv, BASE_TYPE) if _is_dense(conv) else None,
        False,
    )
    for count in questions.groups:
        yield f"{count} groups", _in_groups(count), False
    for outputs in questions.winograd:
        yield f"winograd {outputs}", _winograd(outputs), True
    if questions.fft:
        yield "fft", lambda conv: _possible(lambda: fourier(conv, BASE_TYPE, roofline)), True
    for share in questions.sparsity:
        yield f"structured sparsity {share:g}", _sparse(structured_sparsity, share), False
        yield f"unstructured sparsity {share:g}", _sparse(unstructured_sparsity, share), False


def _in_groups(count: int) -> Alternative:
    def alternative(conv: Convolution) -> Variant | None:
        # The first layer's three channels are nobody's to group.
        variants = grouped(conv, BASE_TYPE, (count,)) if conv.groups == 1 and conv.cin > 4 else []
        return variants[0] if variants else None

    return alternative


def _winograd(outputs: int) -> Alternative:
    return lambda conv: _possible(lambda: winograd(conv, BASE_TYPE, outputs)[0])


def _sparse(prune: Callable[[Convolution, str, float], Variant], share: float) -> Alternative:
    return lambda conv: prune(conv, BASE_TYPE, share)


def _possible(variant: Callable[[], Variant]) -> Variant | None:
    try:
        return variant()
    except UsageError:
        return None


def _is_dense(conv: Convolution) -> bool:
    return conv.groups == 1 and max(conv.kernel) > 1


def _replaced(
    network: Network, base: _Cost, roofline: Roofline, alternative: Alternative, *, is_choice: bool
) -> tuple[_Cost, int]:
    """Return the network's cost with the alternative in place, and how many layers that changed.

    The difference between alternative and plain convolution is added to the layer's own count, which
    may have a bias, or nodes fused in.
    """
    total, changed = base, 0
    for placed in network.placed:
        variant = alternative(placed.conv) if placed.conv is not None else None
        if placed.conv is None or variant is None:
            continue
        before = plain(placed.conv, BASE_TYPE)
        if variant.steps[0] == before.steps[0]:
            continue
        if is_choice and variant.seconds(roofline) >= before.seconds(roofline):
            continue
        total, changed = total + _difference(placed, before, variant, roofline), changed + 1
    return total, changed


def _difference(placed: Placed, before: Variant, after: Variant, roofline: Roofline) -> _Cost:
    """Return what a layer's cost grows by; the bytes that the layer has beside the plain one stay."""
    extra = placed.layer.memory_bytes - before.memory_bytes
    own = layer_time(placed.layer, roofline).seconds
    seconds = after.seconds(roofline) + max(0.0, own - before.seconds(roofline))
    if len(after.steps) == 1:
        step = after.steps[0]
        work = 2 * (step.macc + step.transform_instructions)
        seconds = RooflineTime(
            work / roofline.flops_per_s, (step.memory_bytes + extra) / roofline.bytes_per_s
        ).seconds
    return _Cost(
        after.params - before.params,
        after.macc - before.macc,
        after.flops - before.flops,
        after.memory_bytes - before.memory_bytes,
        seconds - own,
    )


def _total(layers: Iterable[Layer], roofline: Roofline) -> _Cost:
    return sum(
        (
            _Cost(
                layer.params,
                layer.macc,
                layer.flops,
                layer.memory_bytes,
                layer_time(layer, roofline).seconds,
            )
            for layer in layers
        ),
        start=_NOTHING,
    )


def _chains(network: Network, cache_bytes: int, roofline: Roofline) -> list[Chain]:
    """Return the chains of more than one layer, in the order of the graph."""
    found = []
    for run in network.linear_runs():
        stages = [placed.stage for placed in run if placed.stage is not None]
        found += [chain for chain in best_chains(stages, cache_bytes, roofline) if len(chain.names) > 1]
    return found


def _tiled(base: _Cost, chains: Iterable[Chain]) -> _Cost:
    return sum(
        (
            _Cost(
                0,
                chain.halo_macc,
                2 * chain.halo_macc,
                -chain.saved_bytes,
                chain.seconds - chain.before_seconds,
            )
            for chain in chains
        ),
        start=base,
    )


def _row(
    name: str, element: str, peak_type: str, cost: _Cost, base: _Cost, roofline: Roofline, note: str
) -> Row:
    sides = RooflineTime(2 * cost.macc / roofline.flops_per_s, cost.memory_bytes / roofline.bytes_per_s)
    return Row(
        name=name,
        element_type=element,
        params=cost.params,
        macc=cost.macc,
        flops=cost.flops,
        memory_bytes=cost.memory_bytes,
        intensity=cost.flops / cost.memory_bytes if cost.memory_bytes else None,
        seconds=cost.seconds,
        bound=sides.bound,
        peak_type=peak_type,
        flops_ratio=cost.flops / base.flops if base.flops else 1.0,
        bytes_ratio=cost.memory_bytes / base.memory_bytes if base.memory_bytes else 1.0,
        seconds_ratio=cost.seconds / base.seconds if base.seconds else 1.0,
        note=note,
    )
