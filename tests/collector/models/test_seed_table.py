"""Every value of the reference table and of every node under it: counted by the engine on the zoo."""

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from roof_collector.analysis import Analysis, analyze
from roof_collector.analysis.devices import datasheet
from roof_collector.analysis.roofline import layers_seconds, model_seconds
from roof_collector.models import zoo

DATA = Path(__file__).parents[2] / "data" / "zoo"
# Convention: the preset and what it's called in the table's columns of FLOPs, bytes and intensity.
CONVENTIONS = {
    "raw": (("none", False), ("raw_flops", "raw_mac_bytes", "raw_I")),
    "convfuse_only": (("basic", False), ("fused_flops", "convfuse_only_bytes", "convfuse_only_I")),
    "fused": (("ideal", False), ("fused_flops", "fused_mac_bytes", "fused_I")),
    "fused_addread": (("ideal", True), ("fused_flops", "fused_addread_bytes", "fused_addread_I")),
}
DEVICES = {"V100": "v100", "Xavier": "xavier", "RPi3": "rpi3", "RPi3_1core": "rpi3_1core"}


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open() as lines:
        return list(csv.DictReader(lines))


SEED = rows("seed_table.csv")
LAYERS: dict[str, list[dict[str, str]]] = defaultdict(list)
for _row in rows("zoo_layers.csv"):
    LAYERS[_row["model"]].append(_row)


@cache
def counted(name: str, preset: tuple[str, bool]) -> Analysis:
    return analyze(zoo.build(name), fusion=preset[0], residual_read=preset[1])


@pytest.mark.parametrize("row", SEED, ids=lambda row: row["model"])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_totals(row: dict[str, str], convention: str) -> None:
    preset, (flops, memory_bytes, intensity) = CONVENTIONS[convention]
    totals = counted(row["model"], preset).totals
    assert totals.params == int(row["params"])
    assert totals.macc == int(row["macc"])
    assert 2 * totals.macc == int(row["flops_2macc"])
    assert totals.flops == int(row[flops])
    assert totals.memory_bytes == int(row[memory_bytes])
    assert totals.intensity == pytest.approx(float(row[intensity]), rel=1e-9)
    assert totals.uncounted == 0


@pytest.mark.parametrize("row", SEED, ids=lambda row: row["model"])
def test_latencies_and_number_of_nodes(row: dict[str, str]) -> None:
    layers = counted(row["model"], ("ideal", False)).layers
    for column, name in DEVICES.items():
        roofline = datasheet(name).roofline()
        found = layers_seconds(layers, roofline), model_seconds(layers, roofline)
        expected = [float(row[f"{column}_ms_{how}"]) / 1e3 for how in ("layers", "model")]
        assert found == pytest.approx(expected, rel=1e-9), name
    assert sum(layer.layer_class != "view" for layer in layers) == int(row["nodes_raw"])


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("fusion", ["none", "basic", "ideal"])
def test_every_node(name: str, fusion: str) -> None:
    layers = [layer for layer in counted(name, (fusion, False)).layers if layer.layer_class != "view"]
    assert len(layers) == len(LAYERS[name])
    for layer, row in zip(layers, LAYERS[name], strict=True):
        counts = (layer.name, layer.macc, layer.memory_bytes)
        assert counts == (row["name"], int(row["macc"]), int(row[f"bytes_{fusion}"]))
        if fusion == "none":
            assert (layer.params, layer.other_ops) == (int(row["params"]), int(row["other_ops"])), layer.name


def test_the_first_networks_macc() -> None:
    assert counted("mobilenet_v1", ("none", False)).totals.macc == 568_740_352
    assert counted("resnet18", ("none", False)).totals.macc == 1_814_073_344


def test_a_batch_multiplies_work_and_activations_and_not_parameters() -> None:
    one, four = (analyze(zoo.build("shufflenet_v2_x1_0", batch=batch)).totals for batch in (1, 4))
    assert four.macc == 4 * one.macc
    assert (four.input_bytes, four.output_bytes) == (4 * one.input_bytes, 4 * one.output_bytes)
    assert (four.params, four.param_bytes) == (one.params, one.param_bytes)
    bound = analyze(zoo.build("shufflenet_v2_x1_0"), batch=4).totals
    assert bound == four


def test_half_precision_halves_every_byte() -> None:
    full, half = (analyze(zoo.build("resnet50", element_type=kind)).totals for kind in ("float32", "float16"))
    assert half.memory_bytes * 2 == full.memory_bytes
    assert half.macc == full.macc


def test_se_resnet50_adds_its_gates_to_resnet50() -> None:
    """Hu et al., section 4: 2/r * sum(blocks * C^2) parameters more (here with their biases)."""
    plain, gated = (counted(name, ("none", False)).totals for name in ("resnet50", "se_resnet50"))
    widths = [256] * 3 + [512] * 4 + [1024] * 6 + [2048] * 3
    assert gated.params - plain.params == sum(2 * c * c // 16 + c // 16 + c for c in widths)
    assert gated.macc - plain.macc == sum(2 * c * c // 16 for c in widths)


def test_transformer_encoder() -> None:
    """Four layers of 12*d^2 + 13*d parameters; T*12*d^2 macc and attention's 2*T^2*d each."""
    totals = counted("transformer_encoder", ("none", False)).totals
    width, tokens = 256, 128
    assert totals.params == 4 * (12 * width**2 + 13 * width)
    assert totals.macc == 4 * (tokens * 12 * width**2 + 2 * tokens**2 * width)
