"""The roofline model against figures worked out by hand."""

from dataclasses import dataclass

import pytest

from roof_collector.analysis.roofline import Roofline, layer_time, layers_seconds, model_seconds


@dataclass(frozen=True)
class Layer:
    macc: int
    memory_bytes: int


# Raspberry Pi 3: 38.4 GFLOP/s at 3.6 GB/s.
PI3 = Roofline(38.4e9, 3.6e9)
HEAVY = Layer(macc=19_200_000_000, memory_bytes=1_800_000_000)
LIGHT = Layer(macc=0, memory_bytes=3_600_000_000)


def test_the_ridge_and_what_it_divides() -> None:
    assert PI3.ridge == pytest.approx(10.6667, abs=1e-4)
    assert PI3.attainable(1.0) == 3.6e9
    assert PI3.attainable(1000.0) == 38.4e9


def test_a_layer_takes_the_longer_side() -> None:
    assert (layer_time(HEAVY, PI3).seconds, layer_time(HEAVY, PI3).bound) == (1.0, "compute")
    assert (layer_time(LIGHT, PI3).seconds, layer_time(LIGHT, PI3).bound) == (1.0, "memory")


def test_a_network_is_the_sum_of_its_layers_and_the_whole_is_too_low() -> None:
    assert layers_seconds([HEAVY, LIGHT], PI3) == 2.0
    assert model_seconds([HEAVY, LIGHT], PI3) == 1.5
