"""The two networks of the default plan: weightless from the zoo, filled, run, and counted as they ran."""

from pathlib import Path

import onnx
import pytest

from roof_agent import child
from roof_agent.models.weightless import digest
from roof_agent.probes import Task
from roof_collector.analysis import analyze
from roof_collector.models.zoo import build


@pytest.mark.parametrize(("name", "macc"), [("mobilenet_v1", 568_740_352), ("resnet18", 1_814_073_344)])
def test_what_ran_has_the_macc_of_the_network(name: str, macc: int, tmp_path: Path) -> None:
    data, sha256 = digest(build(name))
    (tmp_path / "net.onnx").write_bytes(data)
    (answer,) = child.measure(
        [
            Task(
                "network",
                name,
                "seconds",
                1,
                (0,),
                parameters={"optimization": "all"},
                settings={
                    "path": str(tmp_path / "net.onnx"),
                    "sha256": sha256,
                    "weightless": 1,
                    "memory_bytes": 1 << 30,
                    "budget_seconds": 0.1,
                    "min_repetitions": 3,
                    "warmup_seconds": 0.0,
                },
            )
        ]
    )
    assert answer.reading is not None, answer.failed
    network = answer.reading.network
    assert network is not None
    assert network.model_sha256 == sha256
    assert network.unjoined_seconds == 0
    # The written graph came from the collector: it needn't be sent back.
    assert {part.model.sha256 for part in answer.reading.models} == {network.executed_sha256}
    layers = analyze(onnx.ModelProto.FromString(b"".join(part.data for part in answer.reading.models))).layers
    assert sum(layer.macc for layer in layers) == macc
    counted = {(layer.index, layer.op_type) for layer in layers if layer.macc}
    timed = {(node.index, node.op_type) for node in network.nodes}
    assert counted <= timed
