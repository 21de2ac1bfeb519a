"""Alternatives of whole networks: against hand-made sums over the layers, on real graphs of the zoo."""

import json
from collections.abc import Callable
from functools import cache

import onnx
import pytest
from onnx import TensorProto, helper

from roof_collector.analysis import Analysis, analyze
from roof_collector.analysis.devices import Bandwidth, Datasheet, Peak, datasheet
from roof_collector.analysis.network import Network
from roof_collector.analysis.roofline import layer_time, layers_seconds
from roof_collector.analysis.whatif import Questions, Row
from roof_collector.analysis.whatif_network import Answers, network_alternatives
from roof_collector.cli import main
from roof_collector.models import zoo
from roof_collector.models.retype import retyped

PI = datasheet("rpi3")


@cache
def built(name: str, fusion: str = "basic") -> tuple[onnx.ModelProto, Analysis]:
    model = zoo.build(name)
    return model, analyze(model, fusion=fusion)


def analyzer(name: str) -> Callable[[str | None], tuple[onnx.ModelProto, Analysis]]:
    def analyzed(element_type: str | None) -> tuple[onnx.ModelProto, Analysis]:
        if element_type is None:
            return built(name)
        model = retyped(zoo.build(name), element_type)
        return model, analyze(model, fusion="basic")

    return analyzed


def asked(name: str, questions: Questions) -> tuple[dict[str, Row], Answers]:
    answers = network_alternatives(analyzer(name), questions, PI)
    return {row.name: row for row in answers.rows}, answers


@pytest.mark.parametrize("fusion", ["none", "basic", "ideal"])
@pytest.mark.parametrize("name", zoo.names())
def test_every_convolution_has_its_geometry(name: str, fusion: str) -> None:
    model, analysis = built(name, fusion)
    placed = [found for found in Network(model, analysis).placed if found.conv is not None]
    assert len(placed) == sum(node.op_type == "Conv" for node in model.graph.node)
    for found in placed:
        assert found.conv is not None
        assert found.conv.macc == found.layer.macc, found.label
        assert found.stage is not None
        assert (found.stage.rows.out_size, found.stage.columns.out_size) == (
            found.conv.out_height,
            found.conv.out_width,
        )


def test_layers_are_joined_across_what_is_fused_into_them() -> None:
    """MobileNet v2's block: expansion, depthwise, projection; the addition is read by two."""
    model, analysis = built("mobilenet_v2")
    runs = [[found.label for found in run] for run in Network(model, analysis).linear_runs()]
    assert ["conv_17", "conv_20", "conv_23"] in runs
    assert runs[0] == ["conv_1", "conv_4", "conv_7", "conv_9", "conv_12", "conv_15"]
    model, analysis = built("mobilenet_v2", "none")
    assert ["conv_17", "bn_18", "relu_19", "conv_20", "bn_21", "relu_22", "conv_23", "bn_24"] in [
        [found.label for found in run] for run in Network(model, analysis).linear_runs()
    ]


def test_the_network_as_it_is_is_the_sum_of_its_layers() -> None:
    _, analysis = built("resnet50")
    row = asked("resnet50", Questions(groups=()))[0]["as it is"]
    assert (row.macc, row.memory_bytes) == (analysis.totals.macc, analysis.totals.memory_bytes)
    assert row.seconds == pytest.approx(layers_seconds(analysis.layers, PI.roofline()))


def test_depthwise_separable_in_place_of_each_dense_convolution() -> None:
    """VGG's thirteen 3x3 convolutions become MobileNet's; what is fused into them stays."""
    model, analysis = built("vgg16_conv")
    rows, _ = asked("vgg16_conv", Questions(groups=()))
    row = rows["depthwise separable"]
    convs = [found.conv for found in Network(model, analysis).placed if found.conv is not None]
    macc = sum(conv.output_elements // conv.cout * conv.cin * (9 + conv.cout) for conv in convs)
    middle = sum(2 * 4 * conv.cin * conv.height * conv.width for conv in convs)
    weights = sum(4 * (9 * conv.cin + conv.cin * conv.cout - conv.weights) for conv in convs)
    assert row.note == "13 of 13 convolutions"
    assert row.macc == macc
    assert row.memory_bytes == analysis.totals.memory_bytes + middle + weights
    assert row.seconds < rows["as it is"].seconds / 4


def test_element_types_shrink_every_tensor() -> None:
    rows, _ = asked("resnet18", Questions(groups=(), element_types=("float16", "int8")))
    assert rows["float16"].memory_bytes * 2 == rows["as it is"].memory_bytes
    assert rows["int8"].bytes_ratio == 0.25
    assert rows["int8"].peak_type == "float32"


def test_winograd_and_fft_are_taken_where_they_are_faster() -> None:
    rows, _ = asked("resnet18", Questions(groups=(), winograd=(2, 4), fft=True))
    assert rows["winograd 4"].macc < rows["winograd 2"].macc < rows["as it is"].macc
    assert rows["winograd 4"].seconds < rows["as it is"].seconds
    # 1x1 and strided convolutions can't: thirteen of ResNet-18's twenty can.
    assert rows["winograd 2"].note == "13 of 20 convolutions"
    rows, _ = asked("mobilenet_v1", Questions(groups=(), winograd=(2,), fft=True))
    assert rows["winograd 2"].seconds == rows["fft"].seconds == rows["as it is"].seconds


def test_sparsity_leaves_what_it_cannot_prune() -> None:
    rows, _ = asked("mobilenet_v1", Questions(groups=(), sparsity=(0.5,)))
    # A depthwise layer has one filter a channel: pruned with its neighbour or not at all.
    assert rows["structured sparsity 0.5"].note == "14 of 27 convolutions"
    assert rows["unstructured sparsity 0.5"].note == "27 of 27 convolutions"


def test_a_cache_pays_where_the_middle_is_wide() -> None:
    rows, answers = asked("mobilenet_v2", Questions(groups=(), cache_bytes=512 * 1024))
    saved = sum(chain.saved_bytes for chain in answers.chains)
    assert rows["tiled"].memory_bytes == rows["as it is"].memory_bytes - saved
    assert rows["tiled"].bytes_ratio < 0.5
    assert rows["tiled"].macc == rows["as it is"].macc + sum(chain.halo_macc for chain in answers.chains)
    assert all(chain.working_set_bytes <= 512 * 1024 for chain in answers.chains)
    rows, answers = asked("mobilenet_v2", Questions(groups=(), cache_bytes=1024))
    assert answers.chains == []
    assert rows["tiled"].seconds == rows["as it is"].seconds


@pytest.mark.parametrize(
    ("attributes", "pads"),
    [
        ({"auto_pad": "SAME_UPPER"}, (0, 1)),
        ({"auto_pad": "SAME_LOWER"}, (1, 1)),
        ({"pads": [1, 0, 1, 2]}, (1, 0)),
        ({"pads": [2, 2, 2, 2], "dilations": [2, 2]}, (2, 2)),
    ],
)
def test_padding_of_every_kind_places_the_tiles(attributes: dict, pads: tuple[int, int]) -> None:
    size = {"strides": [1, 1]} if "dilations" in attributes else {"strides": [2, 1]}
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], **size, **attributes)
    graph = helper.make_graph(
        [node],
        "padded",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 2, 3, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (placed,) = Network(model, analyze(model)).placed
    assert placed.stage is not None
    assert (placed.stage.rows.pad, placed.stage.columns.pad) == pads
    # The alternatives know even padding and no dilation; any other layer stays as it is.
    even = (
        attributes.get("pads", [1])[:2] == attributes.get("pads", [1])[2:] and "dilations" not in attributes
    )
    assert (placed.conv is not None) == (even and attributes.get("auto_pad") == "SAME_LOWER")


def test_a_layer_alone_is_priced_as_the_roofline_does() -> None:
    _, analysis = built("mobilenet_v1")
    row = asked("mobilenet_v1", Questions(groups=(1,)))[0]["1 groups"]
    assert row.seconds == pytest.approx(
        sum(layer_time(layer, PI.roofline()).seconds for layer in analysis.layers)
    )


@pytest.mark.parametrize("name", ["vgg16_conv", "resnet18", "shufflenet_v1_x0_5_g3"])
def test_with_free_arithmetic_every_time_is_the_bytes(name: str) -> None:
    """What is fused into a layer, its bias too, stays with whatever stands in its place."""
    device = Datasheet(
        "free", "", "float32", (Peak("float32", 1e30, ""),), (Bandwidth("dram", 1e9, ""),), ()
    )  # fmt: skip
    questions = Questions(groups=(2,), sparsity=(0.5,), cache_bytes=256 * 1024)
    for row in network_alternatives(analyzer(name), questions, device).rows:
        assert row.seconds == pytest.approx(row.memory_bytes / 1e9, rel=1e-9), row.name


def test_the_command_answers_for_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "whatif",
        "zoo:shufflenet_v1_x1_0_g3",
        "--cache",
        "512KiB",
        "--dtype",
        "int8",
        "--guidelines",
    ]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    names = [row["name"] for row in document["alternatives"]]
    assert names[:3] == ["as it is", "bottleneck", "depthwise separable"]
    assert names[-2:] == ["int8", "tiled"]
    assert document["chains"][0]["saved_bytes"] > 0
    assert {found["guideline"] for found in document["guidelines"]} == {"G1", "G2", "G4"}
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "G2, excessive group convolution increases traffic: 31 layers" in out
    assert "chains\n" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("conv", "--guidelines", "--cin", "8", "--cout", "8", "--size", "8"), "are for a network"),
        (("zoo:resnet18", "--cin", "8"), "describe a convolution"),
        (("zoo:resnet19",), "the zoo has no network 'resnet19'"),
    ],
)
def test_what_does_not_fit_is_one_line(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert says in captured.err
