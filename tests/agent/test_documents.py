"""Records survive JSON: what a child answers and what a file holds."""

import dataclasses
import json
from pathlib import Path

import pytest

from roof_agent.documents import from_document, to_document
from roof_agent.probes import LocalModel, Reading, Task
from roof_agent.records import (
    Cache,
    Cluster,
    Conditions,
    Device,
    Grade,
    Measurement,
    ModelPart,
    ModelRef,
    NetworkDetail,
    NodeTime,
    Outcome,
    RunEnd,
    RunStart,
    Work,
)
from roof_agent.statistics import summarize

REF = ModelRef("net", "ab" * 32, 12)
NETWORK = NetworkDetail(
    "net", "ab" * 32, "cd" * 32, "CPU", "all", (NodeTime(0, "n", "Conv", summarize([1.0, 2.0])),), 0.1, 0.5
)
EXAMPLES = [
    Task("peak", "fma", "flops_per_s", 2, (0, 1), 1.5, "float32", {"store": "plain"}, {"n": 3, "x": 0.5}),
    Reading(
        (1.0, 2.0),
        "native",
        work=Work(1.0, 2.0, 3.0, 4),
        cpu_shares=(0.99,),
        network=NETWORK,
        models=(ModelPart(REF, 0, b"\x00\xff\n"),),
    ),
    Measurement(
        "peak",
        "fma",
        "flops_per_s",
        Outcome.OK,
        cpus=(0, 1),
        grade=Grade.NOISY,
        grade_reasons=("busy",),
        statistics=summarize([1.0, 3.0]),
        repetitions=(1.0, 3.0),
        before=Conditions(1, {0: 1e9}, temperature_celsius={"cpu": 40.5}),
    ),
    RunStart(
        Device("f" * 64, "h", "aarch64", clusters=(Cluster("a53", (0,)),), caches=(Cache(1, "data", 32768),)),
        "0.1",
        "quick",
        "boot",
        1,
        2,
        3,
        {"room": "4"},
    ),
    RunEnd(False, 1, 2, 3, 4, "why"),
    LocalModel(REF, Path("a/b.onnx"), weightless=True),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_round_trip(example):
    assert from_document(type(example), json.loads(json.dumps(to_document(example)))) == example


def test_every_field_is_written_unless_it_is_none():
    for example in EXAMPLES:
        document = to_document(example)
        for field in dataclasses.fields(example):
            assert (field.name in document) == (getattr(example, field.name) is not None)


def test_what_is_missing_or_unknown_is_refused():
    document = to_document(EXAMPLES[0])
    with pytest.raises(TypeError, match="probe"):
        from_document(Task, {key: value for key, value in document.items() if key != "probe"})
    with pytest.raises(TypeError, match="nonsense"):
        from_document(Task, {**document, "nonsense": 1})
