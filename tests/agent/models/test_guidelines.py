"""The guidelines' networks, and the verdicts on them."""

import math
from dataclasses import replace

import onnx
import pytest
from onnx import shape_inference

from roof_agent.models.guidelines import Case, build, cases, render, verdicts
from roof_agent.models.weightless import fill
from roof_agent.records import Measurement, Outcome
from roof_agent.statistics import summarize

CASES = list(cases())


def macc(model: onnx.ModelProto) -> int:
    """Recount from the graph alone."""
    inferred = shape_inference.infer_shapes(model).graph
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*inferred.value_info, *inferred.output)
    }
    weights = {tensor.name: tuple(tensor.dims) for tensor in inferred.initializer}
    return sum(
        math.prod(weights[node.input[1]][1:]) * math.prod(shapes[node.output[0]])
        for node in inferred.node
        if node.op_type == "Conv"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.subject)
def test_a_case_is_the_network_it_says(case: Case) -> None:
    model = build(case.subject)
    assert macc(model) == case.macc
    onnx.checker.check_model(fill(model))
    counts = [node.op_type for node in model.graph.node]
    assert counts.count("Conv") == 10 * sum(len(branch) for branch in case.branches)
    assert ("Relu" in counts) == case.relu
    assert ("Add" in counts) == (case.shortcut or len(case.branches) > 1)


def test_the_cases_of_a_guideline_have_about_one_macc() -> None:
    for guideline in ("G1", "G2", "G3", "G4"):
        for scale in (1, 2, 4):
            sizes = [c.macc for c in CASES if (c.guideline, c.scale) == (guideline, scale)]
            assert max(sizes) < 1.3 * min(sizes)


def test_aligned_channels_are_multiples_of_eight() -> None:
    widths = {
        conv.inputs for case in CASES if case.aligned and case.guideline != "G4" for conv in case.branches[0]
    }
    assert all(width % 8 == 0 for width in widths)


def measured(subject: str, seconds: float, operators: str = "Conv 20", reorders: str = "2") -> Measurement:
    return Measurement(
        "guidelines",
        subject,
        "seconds",
        Outcome.OK,
        parameters={"operators": operators, "reorders": reorders},
        statistics=summarize([seconds] * 10),
    )


BASE = measured("G1 1:1 x1", 1.0)
ALIGNED_BASE = measured("G1 1:1 x1 aligned", 1.0)


def words(*own: Measurement) -> dict[str, str]:
    return {v.case.subject: v.words for v in verdicts([BASE, ALIGNED_BASE, *own])}


def test_a_verdict_compares_time_for_each_macc() -> None:
    (verdict,) = verdicts([BASE, measured("G1 1:6 x1", 1.2)])
    assert verdict.ratio == pytest.approx(1.2 * (32 * 32) / (13 * 78))
    assert verdict.words == "holds"
    assert "G1 1:6 x1" in render([verdict])
    assert words(measured("G1 1:6 x1", 0.9)) == {"G1 1:6 x1": "does not hold"}


def test_what_holds_of_unaligned_channels_alone_is_alignment() -> None:
    found = words(measured("G1 1:6 x1", 2.0), measured("G1 1:6 x1 aligned", 1.0))
    assert found == {"G1 1:6 x1": "confounded by alignment", "G1 1:6 x1 aligned": "does not hold"}


def test_reorders_between_the_blocks_are_layout() -> None:
    assert words(measured("G1 1:6 x1", 2.0, reorders="12")) == {"G1 1:6 x1": "confounded by layout"}


def test_element_wise_operations_that_were_fused_prove_nothing() -> None:
    base = measured("G4 neither x1 aligned", 1.0)
    fused = measured("G4 relu x1 aligned", 1.0)
    assert [v.words for v in verdicts([base, fused])] == ["confounded by fusion"]
    apart = replace(fused, parameters={"operators": "Conv 20, Relu 20", "reorders": "2"})
    assert [v.words for v in verdicts([base, apart])] == ["does not hold"]


def test_without_its_base_or_with_a_failure_there_is_no_verdict() -> None:
    failed = Measurement("guidelines", "G1 1:6 x1", "seconds", Outcome.FAILED, reason="no memory")
    assert verdicts([BASE, failed]) == []
    assert verdicts([measured("G1 1:6 x1", 1.0)]) == []
    assert render([]) == ""
