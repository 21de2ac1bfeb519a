"""Measured networks joined with counted graphs."""

from dataclasses import dataclass, replace

import pytest

from roof_agent.records import Measurement, NetworkDetail, NodeTime, Outcome, Statistics
from roof_collector.analysis.roofline import Roofline
from roof_collector.fit.networks import compare

ROOF = Roofline(flops_per_s=2e9, bytes_per_s=1e9)


@dataclass(frozen=True)
class Layer:
    index: int
    op_type: str
    macc: int
    memory_bytes: int
    name: str = ""
    layer_class: str = "dense"

    @property
    def flops(self) -> int:
        return 2 * self.macc

    @property
    def intensity(self) -> float | None:
        return self.flops / self.memory_bytes if self.memory_bytes else None


def steady(seconds: float) -> Statistics:
    return Statistics(3, seconds, seconds, seconds, seconds, seconds, seconds, 0.0, seconds, seconds)


LAYERS = (Layer(0, "Conv", 1_000_000, 1000), Layer(1, "Relu", 0, 500_000), Layer(2, "Reshape", 0, 0))
MEASUREMENT = Measurement(
    probe="network",
    subject="net",
    quantity="seconds",
    outcome=Outcome.OK,
    threads=1,
    statistics=steady(0.004),
    network=NetworkDetail(
        model_name="net",
        model_sha256="0" * 64,
        executed_sha256="1" * 64,
        provider="CPUExecutionProvider",
        optimization="all",
        nodes=(NodeTime(0, "", "Conv", steady(0.002)), NodeTime(1, "", "Relu", steady(0.001))),
        unjoined_seconds=0.0,
        profiled_seconds=0.005,
    ),
)


def test_each_layer_stands_beside_its_roof() -> None:
    found = compare(MEASUREMENT, LAYERS, ROOF)
    conv, relu, view = found.layers
    assert (conv.roofline_seconds, conv.bound, conv.ratio) == (0.001, "compute", 2.0)
    assert (relu.roofline_seconds, relu.bound, relu.ratio) == (0.0005, "memory", 2.0)
    assert (view.measured_seconds, view.ratio, view.share) == (None, None, None)
    assert conv.share == pytest.approx(2 / 3)


def test_the_network_is_the_sum_of_its_layers() -> None:
    found = compare(MEASUREMENT, LAYERS, ROOF)
    assert found.roofline_seconds == 0.0015
    assert found.roofline_model_seconds == 0.001
    assert found.ratio == pytest.approx(0.004 / 0.0015)
    assert (found.unmatched, found.unjoined_seconds) == (0, 0.0)


def test_a_node_of_another_graph_is_not_joined_but_reported() -> None:
    assert MEASUREMENT.network is not None
    foreign = (NodeTime(0, "", "Gemm", steady(0.002)), *MEASUREMENT.network.nodes[1:])
    found = compare(replace(MEASUREMENT, network=replace(MEASUREMENT.network, nodes=foreign)), LAYERS, ROOF)
    assert found.layers[0].measured_seconds is None
    assert (found.unmatched, found.unjoined_seconds) == (1, 0.002)


def test_without_ceilings_there_is_no_prediction() -> None:
    found = compare(MEASUREMENT, LAYERS, None)
    assert (found.roofline_seconds, found.ratio, found.layers[0].bound) == (None, None, "")


def test_other_measurements_are_refused() -> None:
    with pytest.raises(ValueError, match="not a network"):
        compare(replace(MEASUREMENT, network=None), LAYERS, ROOF)
