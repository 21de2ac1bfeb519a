"""A measured network beside what the device's ceilings allow it, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from roof_agent.records import Measurement, NodeTime
from roof_collector.analysis.roofline import Roofline, layer_time, layers_seconds, model_seconds


class CountedLayer(Protocol):
    """What is needed of a counted layer of the executed graph; `index` is its node's position."""

    @property
    def index(self) -> int:
        """Position of the node in the executed graph."""

    @property
    def name(self) -> str:
        """Its name there; may be empty or shared."""

    @property
    def op_type(self) -> str:
        """Its operator."""

    @property
    def layer_class(self) -> str:
        """What kind of kernel the runtime runs it with."""

    @property
    def macc(self) -> int:
        """Multiply-accumulates."""

    @property
    def flops(self) -> int:
        """Operations: 2*macc + other_ops."""

    @property
    def memory_bytes(self) -> int:
        """Bytes moved with every cache ignored."""

    @property
    def intensity(self) -> float | None:
        """FLOP/byte, None where no byte is moved."""


@dataclass(frozen=True)
class LayerComparison:
    """One executed node: counted, predicted by the roofline, measured. Times in seconds.

    `measured_seconds` is None for a node that the profile has no time for; `ratio` is measured by
    predicted, None where either is missing or the prediction is 0.
    """

    index: int
    name: str
    op_type: str
    layer_class: str
    macc: int
    flops: int
    memory_bytes: int
    intensity: float | None
    roofline_seconds: float | None
    bound: str
    measured_seconds: float | None
    ratio: float | None
    share: float | None


@dataclass(frozen=True)
class NetworkComparison:
    """A network on a device with a thread count. Times in seconds.

    `measured_seconds` is the median of the unprofiled repetitions; `layers_seconds` the sum of the
    layers' profiled medians; `unmatched` counts profiled nodes that the counted graph lacks.
    """

    name: str
    threads: int
    measured_seconds: float | None
    roofline_seconds: float | None
    roofline_model_seconds: float | None
    ratio: float | None
    layers_seconds: float
    unjoined_seconds: float
    unmatched: int
    macc: int
    memory_bytes: int
    layers: tuple[LayerComparison, ...]


def compare(
    measurement: Measurement, layers: Sequence[CountedLayer], roofline: Roofline | None
) -> NetworkComparison:
    """Join a network's measurement with its counted executed graph and the device's roofline.

    Joined by node index AND operator: an index alone would join whatever stands there if the two
    graphs ever differed. Raises ValueError for a measurement that isn't of a network.
    """
    network = measurement.network
    if network is None:
        raise ValueError(f"{measurement.probe} {measurement.subject} is not a network's measurement")
    times = {(node.index, node.op_type): node for node in network.nodes}
    total = sum(node.seconds.median for node in network.nodes)
    rows = tuple(
        _layer(layer, times.pop((layer.index, layer.op_type), None), roofline, total) for layer in layers
    )
    measured = measurement.statistics.median if measurement.statistics else None
    predicted = layers_seconds(layers, roofline) if roofline else None
    return NetworkComparison(
        name=network.model_name,
        threads=measurement.threads,
        measured_seconds=measured,
        roofline_seconds=predicted,
        roofline_model_seconds=model_seconds(layers, roofline) if roofline else None,
        ratio=_ratio(measured, predicted),
        layers_seconds=total,
        unjoined_seconds=network.unjoined_seconds + sum(node.seconds.median for node in times.values()),
        unmatched=len(times),
        macc=sum(layer.macc for layer in layers),
        memory_bytes=sum(layer.memory_bytes for layer in layers),
        layers=rows,
    )


def _layer(
    layer: CountedLayer, node: NodeTime | None, roofline: Roofline | None, total: float
) -> LayerComparison:
    time = layer_time(layer, roofline) if roofline else None
    measured = node.seconds.median if node else None
    predicted = time.seconds if time else None
    return LayerComparison(
        index=layer.index,
        name=layer.name,
        op_type=layer.op_type,
        layer_class=layer.layer_class,
        macc=layer.macc,
        flops=layer.flops,
        memory_bytes=layer.memory_bytes,
        intensity=layer.intensity,
        roofline_seconds=predicted,
        bound=time.bound if time else "",
        measured_seconds=measured,
        ratio=_ratio(measured, predicted),
        share=measured / total if measured is not None and total else None,
    )


def _ratio(measured: float | None, predicted: float | None) -> float | None:
    if measured is None or not predicted:
        return None
    return measured / predicted
