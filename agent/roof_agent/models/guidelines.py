"""ShuffleNetV2's four guidelines as small networks of equal macc, and what they say on this board.

Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture Design", ECCV 2018, tables 1
to 4: ten blocks each at 56 x 56. Every case comes with the paper's channels and, since a runtime pads
channels to its vectors, with channels that are multiples of 8: what holds of the first alone is alignment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roof_agent.records import Measurement, Outcome

if TYPE_CHECKING:
    import onnx

BLOCKS = 10
SIZE = 56
# Below it a difference is within what layouts and clocks do.
_NOTICEABLE = 1.05
# Reorders at a network's ends; more of them stand between its blocks.
_ENDS = 2

GUIDELINES = {
    "G1": "equal channel width minimises memory traffic",
    "G2": "group convolution costs more the more groups",
    "G3": "fragmentation costs parallelism",
    "G4": "element-wise operations aren't negligible",
}


@dataclass(frozen=True)
class Conv:
    """A convolution within a block."""

    inputs: int
    outputs: int
    kernel: int = 1
    groups: int = 1

    @property
    def macc(self) -> int:
        """Return its multiply-accumulate operations."""
        return SIZE * SIZE * self.inputs // self.groups * self.outputs * self.kernel**2


@dataclass(frozen=True)
class Case:
    """One network: ten blocks of branches, each a series of convolutions, summed where there are several."""

    guideline: str
    name: str
    scale: int
    aligned: bool
    branches: tuple[tuple[Conv, ...], ...]
    relu: bool = True
    shortcut: bool = False

    @property
    def subject(self) -> str:
        """Return what it is called in tables and as a measurement's subject."""
        return f"{self.guideline} {self.name} x{self.scale}{' aligned' if self.aligned else ''}"

    @property
    def macc(self) -> int:
        """Return the multiply-accumulate operations of the whole network."""
        return BLOCKS * sum(conv.macc for branch in self.branches for conv in branch)


def cases(scales: Iterable[int] = (1, 2, 4)) -> Iterator[Case]:
    """Yield the cases; the first of a guideline, scale and alignment is what the others are compared with."""
    for scale in scales:
        for aligned in (False, True):
            yield from _channel_ratios(scale, aligned)
            yield from _groups(scale, aligned)
            yield from _fragments(scale, aligned)
        yield from _element_wise(scale)


def _channel_ratios(scale: int, aligned: bool) -> Iterator[Case]:  # noqa: FBT001 - a field of Case
    paper = {"1:1": (32, 32), "1:2": (22, 44), "1:6": (13, 78), "1:12": (9, 108)}
    rounded = {"1:1": (32, 32), "1:2": (24, 40), "1:6": (16, 64), "1:12": (8, 128)}
    for name, (narrow, wide) in (rounded if aligned else paper).items():
        first, second = narrow * scale, wide * scale
        yield Case("G1", name, scale, aligned, ((Conv(first, second), Conv(second, first)),))


def _groups(scale: int, aligned: bool) -> Iterator[Case]:  # noqa: FBT001
    # 180 channels can't be divided into 8 groups; 184 can.
    for groups, channels in ((1, 64), (2, 96), (4, 128), (8, 192)) if aligned else (
        (1, 64), (2, 90), (4, 128), (8, 184)
    ):  # fmt: skip
        width = channels * scale
        yield Case("G2", f"g={groups}", scale, aligned, ((Conv(width, width, groups=groups),),))


def _fragments(scale: int, aligned: bool) -> Iterator[Case]:  # noqa: FBT001
    whole = 64 * scale
    for count, shape in ((1, ""), (2, "series"), (4, "series"), (2, "parallel"), (4, "parallel")):
        width = round(whole / math.sqrt(count))
        if aligned:
            width = -(-width // 8) * 8
        conv = Conv(width, width)
        branches = ((conv,),) * count if shape == "parallel" else ((conv,) * count,)
        yield Case("G3", f"{count} {shape}".strip(), scale, aligned, branches)


def _element_wise(scale: int) -> Iterator[Case]:
    # c = 32, 64 and 128: its quarters are multiples of 8 as they are.
    width = 32 * scale
    narrow = width // 4
    block = ((Conv(width, narrow), Conv(narrow, narrow, kernel=3), Conv(narrow, width)),)
    for name, relu, shortcut in (
        ("neither", False, False),
        ("relu", True, False),
        ("shortcut", False, True),
        ("relu+shortcut", True, True),
    ):
        yield Case("G4", name, scale, True, block, relu, shortcut)


def build(subject: str) -> onnx.ModelProto:
    """Return the weightless network of the case that is called `subject`."""
    from onnx import TensorProto, helper

    case = next(case for case in cases() if case.subject == subject)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def add(op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{op_type.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def convolve(x: str, conv: Conv, *, relu: bool) -> str:
        dims = (conv.outputs, conv.inputs // conv.groups, conv.kernel, conv.kernel)
        weights.append(TensorProto(name=f"w{len(weights)}", data_type=TensorProto.FLOAT, dims=dims))
        pads = [conv.kernel // 2] * 4
        y = add("Conv", [x, weights[-1].name], kernel_shape=dims[2:], pads=pads, group=conv.groups)
        return add("Relu", [y]) if relu else y

    x = "input"
    for _ in range(BLOCKS):
        ends = []
        for branch in case.branches:
            y = x
            for position, conv in enumerate(branch):
                last = position == len(branch) - 1
                y = convolve(y, conv, relu=case.relu and not (last and case.shortcut))
            ends.append(y)
        y = ends[0]
        for other in ends[1:] + ([x] if case.shortcut else []):
            y = add("Add", [y, other])
        x = add("Relu", [y]) if case.shortcut and case.relu else y
    shape = [1, case.branches[0][0].inputs, SIZE, SIZE]
    graph = helper.make_graph(
        nodes,
        subject,
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@dataclass(frozen=True)
class Verdict:
    """How a case compares with its guideline's first: time for each macc, and its range."""

    case: Case
    ratio: float
    low: float
    high: float
    words: str


def verdicts(measurements: Iterable[Measurement]) -> list[Verdict]:
    """Return the verdict of each case that was measured with its base."""
    measured = {
        own.subject: own for own in measurements if own.probe == "guidelines" and own.outcome is Outcome.OK
    }
    found: list[Verdict] = []
    bases: dict[tuple[str, int, bool], Case] = {}
    for case in cases():
        base = bases.setdefault((case.guideline, case.scale, case.aligned), case)
        if case is base or not {case.subject, base.subject} <= measured.keys():
            continue
        own, reference = measured[case.subject], measured[base.subject]
        ratio, low, high = _ratios(own, reference, base.macc / case.macc)
        found.append(Verdict(case, ratio, low, high, _words(case, low, high, own, reference)))
    return [_beside_aligned(verdict, found) for verdict in found]


def _ratios(own: Measurement, reference: Measurement, share: float) -> tuple[float, float, float]:
    """Return the ratio of times for each macc, and its range from the 10th percentile to the median."""
    (ours, our_median), (theirs, their_median) = _time(own), _time(reference)
    return share * ours / theirs, share * ours / their_median, share * our_median / theirs


def _time(measurement: Measurement) -> tuple[float, float]:
    """Return the 10th percentile and the median of CPU time, which others on the machine change least."""
    assert measurement.statistics is not None
    return (
        float(measurement.parameters.get("cpu_seconds_q10", measurement.statistics.q10)),
        float(measurement.parameters.get("cpu_seconds_median", measurement.statistics.median)),
    )


def _words(case: Case, low: float, high: float, own: Measurement, reference: Measurement) -> str:
    reorders = [int(measurement.parameters.get("reorders", 0)) for measurement in (own, reference)]
    if abs(reorders[0] - reorders[1]) > _ENDS:
        return "confounded by layout"
    if low > _NOTICEABLE:
        return "holds"
    same = own.parameters.get("operators") == reference.parameters.get("operators")
    if case.guideline == "G4" and same:
        return "confounded by fusion"
    return "does not hold" if high < _NOTICEABLE else "undecided"


def _beside_aligned(verdict: Verdict, found: list[Verdict]) -> Verdict:
    """Return the verdict of the paper's channels, mended where aligned ones of the case say otherwise."""
    case = verdict.case
    key = (case.guideline, case.name, case.scale)
    twins = (
        other
        for other in found
        if other.case.aligned and (other.case.guideline, other.case.name, other.case.scale) == key
    )
    twin = None if case.aligned else next(twins, None)
    if twin is None or verdict.words != "holds" or twin.words != "does not hold":
        return verdict
    return Verdict(case, verdict.ratio, verdict.low, verdict.high, "confounded by alignment")


def render(found: Iterable[Verdict]) -> str:
    """Return the verdicts as lines for people; empty for none."""
    lines: list[str] = []
    for key, claim in GUIDELINES.items():
        own = [verdict for verdict in found if verdict.case.guideline == key]
        if own:
            lines += ["", f"{key}: {claim} (time for each macc, beside the first case)"]
        lines += [
            f"  {v.case.subject:28} {v.ratio:5.2f}  ({v.low:.2f} .. {v.high:.2f})  {v.words}" for v in own
        ]
    return "\n".join(lines) + "\n" if lines else ""
