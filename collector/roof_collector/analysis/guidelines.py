"""ShuffleNet v2's four guidelines as an adviser: which layers break which, and what it costs.

Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design", ECCV 2018
(arXiv 1807.11164). What a roofline can price is priced in bytes and in time at a device's ceilings;
the start of each further operator (G3) can't be, and is only counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from roof_collector.analysis.convolution import ELEMENT_BITS
from roof_collector.analysis.network import Network, Placed
from roof_collector.analysis.result import Layer
from roof_collector.analysis.roofline import Roofline, RooflineTime, layer_time

GUIDELINES = {
    "G1": "equal channel widths minimise traffic",
    "G2": "excessive group convolution increases traffic",
    "G3": "fragmentation reduces parallelism",
    "G4": "element-wise operations are not negligible",
}
# From this ratio of channel widths on a pointwise layer is named.
UNBALANCED = 2.0
JOINS = frozenset({"Concat", "Add", "Sum", "Mul"})
ELEMENTWISE = frozenset({"elementwise", "activation", "normalisation"})


@dataclass(frozen=True)
class Finding:
    """One layer (or block) that breaks a guideline.

    `cost_bytes` and `cost_seconds` are what it takes above the layer that would keep to the guideline
    with the same multiply-accumulates: for G3 what joining its branches takes, for G4 all that it takes.
    """

    guideline: str
    layer: str
    what: str
    cost_bytes: int
    cost_seconds: float


def advise(network: Network, roofline: Roofline) -> list[Finding]:
    """Return what breaks the guidelines, by guideline and then by cost, the dearest first."""
    findings = [
        *_unbalanced(network, roofline),
        *_grouped(network, roofline),
        *_fragmented(network, roofline),
        *_elementwise(network, roofline),
    ]
    return sorted(findings, key=lambda found: (found.guideline, -found.cost_seconds, -found.cost_bytes))


def _unbalanced(network: Network, roofline: Roofline) -> Iterable[Finding]:
    """G1: hw(c1 + c2) + c1*c2 is least, for one product c1*c2, where c1 = c2."""
    for placed in network.placed:
        conv = placed.conv
        if conv is None or conv.kernel != (1, 1) or conv.groups != 1 or conv.stride != 1:
            continue
        ratio = max(conv.cin, conv.cout) / min(conv.cin, conv.cout)
        if ratio < UNBALANCED:
            continue
        pixels = conv.batch * conv.height * conv.width
        spared = pixels * (conv.cin + conv.cout - 2 * math.sqrt(conv.cin * conv.cout))
        yield _finding(
            "G1",
            placed,
            f"1x1 of {conv.cin} to {conv.cout} channels, 1:{ratio:.3g}; "
            f"{math.sqrt(conv.cin * conv.cout):.0f} to as many is the same work",
            _bytes(spared, placed.layer),
            roofline,
        )


def _grouped(network: Network, roofline: Roofline) -> Iterable[Finding]:
    """G2: at equal input and work, g groups write g times the outputs that one would."""
    for placed in network.placed:
        conv = placed.conv
        if conv is None or conv.groups in {1, conv.cin}:
            continue
        spared = conv.output_elements * (1 - 1 / conv.groups)
        yield _finding(
            "G2",
            placed,
            f"{conv.groups} groups, {conv.cin} to {conv.cout} channels; without groups the same work gives "
            f"{conv.cout // conv.groups} channels",
            _bytes(spared, placed.layer),
            roofline,
        )


def _fragmented(network: Network, roofline: Roofline) -> Iterable[Finding]:
    """G3: branches that work side by side and are joined again."""
    for placed in network.placed:
        if placed.layer.op_type not in JOINS:
            continue
        branches = [_branch(network, name) for name in network.data_inputs(placed.node)]
        working = [branch for branch in branches if branch]
        if len(working) < 2:
            continue
        operators = sum(map(len, working))
        yield Finding(
            "G3",
            placed.label,
            f"joins {len(working)} branches of {operators} convolutions; the start of {operators - 1} more "
            "operators is for measuring",
            placed.layer.memory_bytes,
            layer_time(placed.layer, roofline).seconds,
        )


def _elementwise(network: Network, roofline: Roofline) -> Iterable[Finding]:
    """G4: operators with little work for much traffic (the paper counts depthwise among them)."""
    for placed in network.placed:
        layer = placed.layer
        if not layer.memory_bytes or not (layer.layer_class in ELEMENTWISE or _is_depthwise(placed)):
            continue
        kind = "depthwise convolution" if _is_depthwise(placed) else layer.op_type
        yield Finding(
            "G4",
            placed.label,
            f"{kind}: {layer.macc / layer.memory_bytes:.2g} macc a byte",
            layer.memory_bytes,
            layer_time(layer, roofline).seconds,
        )


def _branch(network: Network, tensor: str) -> list[str]:
    """Return the convolutions on the way back to where the tensor's branch left the others."""
    found: list[str] = []
    while True:
        maker = network.maker(tensor)
        if maker is None or len(set(network.readers(tensor))) > 1:
            return found
        if maker.conv is not None:
            found.append(maker.label)
        inputs = network.data_inputs(maker.node)
        if len(inputs) != 1:
            return found
        tensor = inputs[0]


def _is_depthwise(placed: Placed) -> bool:
    return placed.conv is not None and placed.conv.groups == placed.conv.cin > 1


def _bytes(elements: float, layer: Layer) -> int:
    return round(elements * ELEMENT_BITS[layer.inputs[0][0]] / 8)


def _finding(guideline: str, placed: Placed, what: str, spared: int, roofline: Roofline) -> Finding:
    """Price the bytes that a layer moves above the one that keeps to the guideline, at equal work."""
    layer = placed.layer
    kept = max(0, layer.memory_bytes - spared)
    better = RooflineTime(2 * layer.macc / roofline.flops_per_s, kept / roofline.bytes_per_s).seconds
    saved = max(0.0, layer_time(layer, roofline).seconds - better)
    return Finding(guideline, placed.label, what, spared, saved)
