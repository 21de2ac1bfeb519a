"""The adviser: what it names, what it prices, and that the good network of the paper breaks least."""

from functools import cache

import pytest

from roof_collector.analysis import analyze
from roof_collector.analysis.devices import datasheet
from roof_collector.analysis.guidelines import Finding, advise
from roof_collector.analysis.network import Network
from roof_collector.analysis.roofline import layers_seconds
from roof_collector.models import zoo

PI = datasheet("rpi3").roofline()


@cache
def advice(name: str, fusion: str = "basic") -> tuple[Finding, ...]:
    model = zoo.build(name)
    return tuple(advise(Network(model, analyze(model, fusion=fusion)), PI))


def of(name: str, guideline: str, fusion: str = "basic") -> dict[str, Finding]:
    return {found.layer: found for found in advice(name, fusion) if found.guideline == guideline}


def test_g1_prices_unequal_widths_at_equal_work() -> None:
    """conv_11 of ResNet-50 is 1x1, 64 to 256 at 56x56: 128 to 128 is as much work on fewer bytes."""
    found = of("resnet50", "G1")["conv_11"]
    assert found.what == "1x1 of 64 to 256 channels, 1:4; 128 to as many is the same work"
    assert found.cost_bytes == 4 * 56 * 56 * (64 + 256 - 2 * 128)
    # The Pi computes that layer for longer than it moves it: the bytes cost no time.
    assert found.cost_seconds == 0
    assert of("mobilenet_v2", "G1")["conv_9"].cost_seconds > 0
    assert not of("vgg16", "G1")


def test_g2_prices_groups_at_equal_input_and_work() -> None:
    found = of("shufflenet_v1_x1_0_g3", "G2")["conv_22"]
    assert found.what.startswith("3 groups, 60 to 240 channels; without groups the same work gives 80")
    assert found.cost_bytes == 4 * 28 * 28 * (240 - 80)
    # Depthwise layers are groups too, and are G4's.
    assert not of("mobilenet_v1", "G2")


def test_g3_counts_the_branches_that_are_joined() -> None:
    inception = of("googlenet", "G3")
    assert len(inception) == 9
    assert "joins 4 branches of 6 convolutions" in inception["concat_24"].what
    # A shortcut does no work; one with a convolution of its own is a branch.
    assert set(of("resnet18", "G3")) == {"add_26", "add_42", "add_58"}
    assert len(of("squeezenet1_0", "G3")) == 8


def test_g4_names_what_moves_much_for_little() -> None:
    layers = of("mobilenet_v1", "G4")
    assert len(layers) == 13
    assert all(found.what.startswith("depthwise convolution") for found in layers.values())
    assert "add_10" in of("resnet18", "G4")
    assert "relu_3" in of("resnet18", "G4", "none")
    assert not of("vgg16", "G4")


def test_shufflenet_v2_breaks_them_less_than_v1() -> None:
    def share(name: str) -> float:
        return sum(found.cost_seconds for found in advice(name)) / layers_seconds(
            analyze(zoo.build(name), fusion="basic").layers, PI
        )

    assert share("shufflenet_v2_x1_0") < share("shufflenet_v1_x1_0_g3") / 2


@pytest.mark.parametrize("name", zoo.names())
def test_findings_are_sorted_and_never_negative(name: str) -> None:
    found = advice(name)
    assert [one.guideline for one in found] == sorted(one.guideline for one in found)
    assert all(one.cost_bytes >= 0 and one.cost_seconds >= 0 for one in found)
