"""The graph that onnxruntime really executes: blocked layouts, fused nodes, inserted reorders."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from roof_collector.analysis import analyze, load_model
from roof_collector.models import zoo


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give every weightless initializer values; a variance must be positive."""
    random = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and not tensor.raw_data and not tensor.float_data:
            tensor.raw_data = random.uniform(0.1, 0.2, list(tensor.dims)).astype(np.float32).tobytes()
    return model


@pytest.mark.parametrize("name", ["mobilenet_v1", "shufflenet_v1_x0_5_g3", "transformer_encoder"])
def test_every_executed_node_is_counted_at_its_real_shape(name: str, tmp_path: Path) -> None:
    written = filled(zoo.build(name))
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "executed.onnx")
    options.enable_profiling, options.log_severity_level = True, 3
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(written.SerializeToString(), options, providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    session.run(None, {given.name: np.ones(given.shape, np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    shapes = {
        event["name"].removesuffix("_kernel_time"): [
            tuple(*entry.values()) for entry in event["args"]["output_type_shape"]
        ]
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
    }
    found = analyze(load_model(options.optimized_model_filepath))
    assert found.totals.uncounted == 0
    assert {layer.name: [dims for _, dims in layer.outputs] for layer in found.layers} == shapes
    # Padded channels are work that the machine does: never less than what was written.
    assert found.totals.macc >= analyze(written).totals.macc


def test_a_fused_residual_is_read_as_the_fourth_input() -> None:
    node = helper.make_node(
        "FusedConv",
        ["x", "w", "", "z"],
        ["y"],
        domain="com.microsoft",
        activation="Relu",
        kernel_shape=[1, 1],
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 8, 4, 4)) for name in ("x", "z")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.zeros((8, 8, 1, 1), np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    [layer] = analyze(helper.make_model(graph, opset_imports=opsets)).layers
    assert (layer.input_bytes, layer.param_bytes, layer.output_bytes) == (2 * 512, 256, 512)
