"""Graphs of many kinds, measured by the runtime itself: every kernel's time has its node."""

import json
from pathlib import Path

import onnx
import pytest

from roof_agent import child
from roof_agent.models.weightless import digest, fill, is_weightless, strip
from roof_agent.probes import Answer, Task

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
EXPECTED = json.loads((GRAPHS / "expected.json").read_text())
NAMES = sorted(path.stem for path in GRAPHS.glob("*.onnx"))


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, str], Answer]:
    tasks = [
        Task(
            "network",
            name,
            "seconds",
            1,
            (0,),
            batch="graphs",
            parameters={"optimization": optimization},
            settings={
                "path": str(GRAPHS / f"{name}.onnx"),
                "sha256": "",
                "weightless": 0,
                "memory_bytes": 1 << 30,
                "budget_seconds": 0.005,
                "min_repetitions": 3,
                "warmup_seconds": 0.0,
                "bind": "\n".join(f"{dim}={size}" for dim, size in EXPECTED[name].get("bind", {}).items()),
            },
        )
        for name in NAMES
        for optimization in ("all", "none")
    ]
    found = child.measure(tasks)
    return {
        (task.subject, task.parameters["optimization"]): answer
        for task, answer in zip(tasks, found, strict=True)
    }


@pytest.mark.parametrize("optimization", ["all", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_every_microsecond_lands_on_a_node_of_the_executed_graph(
    name: str, optimization: str, answers: dict[tuple[str, str], Answer]
) -> None:
    answer = answers[name, optimization]
    if name == "zero_size":
        assert "has a dim of 0" in answer.failed
        return
    assert not answer.failed
    assert answer.reading is not None
    network = answer.reading.network
    assert network is not None
    assert network.unjoined_seconds == 0
    executed = onnx.ModelProto.FromString(
        b"".join(part.data for part in answer.reading.models if part.model.sha256 == network.executed_sha256)
    )
    for node in network.nodes:
        assert node.op_type == executed.graph.node[node.index].op_type
    # What takes no kernel (a Constant) has no time; everything else has.
    timed = {node.index for node in network.nodes}
    untimed = [node.op_type for index, node in enumerate(executed.graph.node) if index not in timed]
    assert set(untimed) <= {"Constant"}


@pytest.mark.parametrize("name", NAMES)
def test_stripped_filled_and_stripped_again_is_the_same(name: str) -> None:
    model = onnx.load(GRAPHS / f"{name}.onnx")
    bare = strip(model)
    before = digest(bare)
    assert digest(strip(bare)) == before
    filled = fill(bare)
    assert not is_weightless(filled)
    assert digest(strip(filled)) == before
