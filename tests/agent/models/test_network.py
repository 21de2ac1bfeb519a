"""A network measured in a child: latency, every kernel joined, what goes wrong said."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from roof_agent import child
from roof_agent.errors import MeasurementError, Unavailable
from roof_agent.models.network import name_apart
from roof_agent.models.profiling import NodeEvent, ProfiledRun, join
from roof_agent.models.session import Repetitions
from roof_agent.models.weightless import digest, strip
from roof_agent.probes import Reading, Task
from roof_agent.records import NodeTime


def task(path: Path, **settings: str | int | float) -> Task:
    return Task(
        probe="network",
        subject="net",
        quantity="seconds",
        threads=1,
        cpus=(0,),
        seconds=1.0,
        element_type="float32",
        parameters={"optimization": "all"},
        settings={
            "path": str(path),
            "sha256": "",
            "weightless": 0,
            "memory_bytes": 1 << 30,
            "budget_seconds": 0.01,
            "min_repetitions": 5,
            "warmup_seconds": 0.01,
            **settings,
        },
    )


def measure(what: Task) -> Reading:
    """Measure in a child, as the agent does."""
    (answer,) = child.measure([what])
    if answer.unavailable:
        raise Unavailable(answer.unavailable)
    if answer.failed:
        raise MeasurementError(answer.failed)
    assert answer.reading is not None
    return answer.reading


@pytest.fixture
def path(model: onnx.ModelProto, tmp_path: Path) -> Path:
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_every_kernel_lands_on_a_node_of_the_graph_that_ran(path: Path, model: onnx.ModelProto) -> None:
    reading = measure(task(path))
    assert len(reading.repetitions) >= 5
    assert min(reading.repetitions) > 0
    assert reading.network is not None
    assert reading.network.unjoined_seconds == 0
    sent = {part.model.sha256: part.data for part in reading.models}
    executed = onnx.ModelProto.FromString(sent[reading.network.executed_sha256])
    assert [node.index for node in reading.network.nodes] == list(range(len(executed.graph.node)))
    for node in reading.network.nodes:
        assert executed.graph.node[node.index].op_type == node.op_type
    # The runtime fuses: fewer nodes ran than were written.
    assert len(executed.graph.node) < len(model.graph.node)
    # The written graph goes along, both of them without weights and by their digests.
    assert reading.network.model_sha256 == digest(strip(model))[1]
    for name, data in sent.items():
        assert hashlib.sha256(data).hexdigest() == name


def test_no_weight_leaves_the_child(path: Path, model: onnx.ModelProto) -> None:
    sent = b"".join(part.data for part in measure(task(path)).models)
    (weights,) = [tensor.raw_data for tensor in model.graph.initializer if tensor.name == "fw"]
    assert not any(weights[begin : begin + 4] in sent for begin in range(0, len(weights), 4))


def test_without_optimisation_the_written_nodes_run(path: Path, model: onnx.ModelProto) -> None:
    plain = replace(task(path), parameters={"optimization": "none"})
    reading = measure(plain)
    assert reading.network is not None
    written = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
    assert sorted(node.op_type for node in reading.network.nodes) == sorted(written)


def test_a_network_that_cannot_fit_is_refused_with_the_figures(path: Path) -> None:
    with pytest.raises(Unavailable, match=r"needs about 14\d MiB and 0 MiB may be used"):
        measure(task(path, memory_bytes=1000))


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "no ONNX model"), (b"\xff" * 100, "can't be read"), (b"\x00\x01", "can't be read")],
)
def test_a_file_that_is_no_network_is_a_failure_in_words(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(content)
    with pytest.raises(MeasurementError, match=reason):
        measure(task(tmp_path / "bad.onnx"))


def test_a_file_that_is_not_there_is_a_failure_in_words(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"missing\.onnx can't be read"):
        measure(task(tmp_path / "missing.onnx"))


def test_an_operator_that_the_runtime_lacks_is_named(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Mystery", ["x"], ["y"], name="odd one", domain="custom")],
        "g",
        [info("x", TensorProto.FLOAT, [1])],
        [info("y", TensorProto.FLOAT, [1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "odd.onnx")
    with pytest.raises(MeasurementError, match="Mystery"):
        measure(task(tmp_path / "odd.onnx"))


def test_external_weights_that_are_missing_are_a_failure_in_words(
    model: onnx.ModelProto, tmp_path: Path
) -> None:
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(MeasurementError, match="can't be read"):
        measure(task(tmp_path / "net.onnx"))


def test_weights_listed_among_the_inputs_as_old_models_have_them_are_no_inputs(
    model: onnx.ModelProto, tmp_path: Path
) -> None:
    model.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )
    onnx.save(model, tmp_path / "old.onnx")
    reading = measure(task(tmp_path / "old.onnx"))
    assert reading.network is not None
    assert reading.network.unjoined_seconds == 0


def test_the_graph_sent_has_the_dims_that_ran_and_the_same_digest_each_time(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "open.onnx",
    )
    digests = []
    for _ in range(2):
        reading = measure(task(tmp_path / "open.onnx", bind="batch=5"))
        assert reading.network is not None
        digests.append(reading.network.executed_sha256)
        (executed,) = (
            onnx.ModelProto.FromString(part.data)
            for part in reading.models
            if part.model.sha256 == digests[-1]
        )
        assert [dim.dim_value for dim in executed.graph.input[0].type.tensor_type.shape.dim] == [5, 3]
    assert digests[0] == digests[1]


def test_nodes_that_share_a_name_get_their_own(model: onnx.ModelProto) -> None:
    assert name_apart(model)
    names = [node.name for node in model.graph.node if node.name]
    assert names == ["same", "same#2"]
    assert not name_apart(model)


def graph_of(*names: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Relu", [f"t{index}"], [f"t{index + 1}"], name=name)
        for index, name in enumerate(names)
    ]
    return helper.make_model(helper.make_graph(nodes, "g", [], []))


def event(name: str, begin: int, us: int, op_type: str = "Relu", index: int = 0) -> NodeEvent:
    return NodeEvent(index, name, op_type, begin, us)


def seconds(nodes: tuple[NodeTime, ...]) -> list[float]:
    return [round(node.seconds.median * 1e6) for node in nodes]


def test_nodes_that_share_a_name_are_told_apart_by_their_order() -> None:
    runs = [ProfiledRun(9.0, (event("a", 20, 3), event("a", 10, 1), event("b", 30, 5)))] * 3
    nodes, unjoined = join(graph_of("a", "a", "b"), runs)
    assert seconds(nodes) == [1, 3, 5]
    assert unjoined == 0


def test_nodes_without_a_name_are_known_by_operator_and_index() -> None:
    runs = [ProfiledRun(9.0, (event("Relu_7", 10, 1, index=7), event("Relu_9", 20, 3, index=9)))] * 3
    nodes, unjoined = join(graph_of("", ""), runs)
    assert seconds(nodes) == [1, 3]
    assert unjoined == 0


def test_what_cannot_be_told_apart_or_is_foreign_is_counted_as_unjoined() -> None:
    runs = [ProfiledRun(9.0, (event("a", 10, 1), event("x", 20, 2), event("b", 30, 4, "Conv")))] * 3
    nodes, unjoined = join(graph_of("a", "a", "b"), runs)
    assert nodes == ()
    assert unjoined == pytest.approx(7e-6)


def test_repetitions_stop_by_budget_minimum_and_maximum() -> None:
    now = [0.0]

    def once() -> None:
        now[0] += 1.0
        done.append(1)

    # The last: far over its budget a slow network is content with three.
    for budget, minimum, expected in ((0.5, 3, 3), (7.5, 3, 8), (1e9, 3, 20), (0.5, 10, 3)):
        done: list[int] = []
        Repetitions(budget, minimum, 20, clock=lambda: now[0]).run(once)
        assert len(done) == expected


def test_node_times_are_the_profiles(path: Path) -> None:
    reading = measure(task(path))
    assert reading.network is not None
    total = sum(node.seconds.median for node in reading.network.nodes)
    assert total <= reading.network.profiled_seconds
    assert np.isfinite(reading.network.profiled_seconds)
