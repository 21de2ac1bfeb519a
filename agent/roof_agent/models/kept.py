"""Which stored values stay in a weightless graph: those that it can't run, or not run alike, without.

Decided by the slot that a tensor feeds, never by its name. A weight never stays: floats stay where they
only decide shapes, and single numbers where they are no more than mathematics (0.5, sqrt 2, 1e-5), by
which a runtime knows its patterns (Gelu, LayerNormalization, a cheap Pow).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from roof_agent.models.roles import COMPUTING, role_of
from roof_agent.models.tensors import Uses, elements, uses

# Slots that take shapes, axes, indices, bounds of slices, sizes, conditions.
_SHAPE_SLOTS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Expand": (1,),
    "EyeLike": (0,),
    "Gather": (1,),
    "GatherElements": (1,),
    "GatherND": (1,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "NonMaxSuppression": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "ReverseSequence": (1,),
    "STFT": (1, 3),
    "ScatterElements": (1,),
    "ScatterND": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_SHAPE_SLOTS.update({f"Reduce{name}": (1,) for name in _REDUCTIONS})

# Operators through which a shape is computed from other values.
_CARRIERS = frozenset(
    {
        "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Div", "Equal", "Expand",
        "Flatten", "Floor", "Gather", "GatherND", "Greater", "Identity", "Less", "Max", "Min",
        "Mod", "Mul", "Neg", "Not", "Or", "Pow", "ReduceMax", "ReduceProd", "ReduceSum", "Reshape",
        "Round", "ScatterND", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile",
        "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip

# Operators that do arithmetic with a single number.
_SCALAR_ARITHMETIC = frozenset(
    {
        "Add", "Clip", "Div", "Dropout", "Equal", "Greater", "GreaterOrEqual", "Less",
        "LessOrEqual", "Max", "Min", "Mod", "Mul", "NonMaxSuppression", "OneHot", "Pad", "Pow",
        "Sub", "Sum", "Where",
    }
)  # fmt: skip

_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}

_SHAPE_FLOATS = 64
_SHAPE_INTEGERS = 1 << 16
_LARGEST_WHOLE = 1 << 16
_MOST_ROOTED = 4096
# Few integers that aren't known to be shapes: an offset, an identifier of padding.
_OTHER_INTEGERS = 64


class Scope:
    """What the tensors that some nodes can see are used for."""

    def __init__(self, nodes: Sequence[NodeProto]) -> None:
        self.uses: Uses = uses(nodes)
        self._shaping = _shaping(nodes, self.uses)

    def keeps(self, name: str, tensor: TensorProto) -> bool:
        """Say whether the values of a stored tensor, read as `name`, stay."""
        if tensor.data_location == TensorProto.EXTERNAL:
            return False
        own = self.uses.get(name, ())
        if any(role_of(use) for use in own):
            return False
        count = elements(tensor)
        if name in self._shaping:
            limit = _SHAPE_FLOATS if tensor.data_type in _FLOATS else _SHAPE_INTEGERS
            return count <= limit and tensor.data_type in _FLOATS | _INTEGERS
        computes = any(use.node.op_type in COMPUTING for use in own)
        if tensor.data_type in _INTEGERS:
            return not computes and len(tensor.dims) <= 1 and count <= _OTHER_INTEGERS
        return (
            bool(own)
            and count == 1
            and tensor.data_type in _FLOATS
            and all(use.node.op_type in _SCALAR_ARITHMETIC for use in own)
            and is_mathematical(tensor)
        )


def _shaping(nodes: Sequence[NodeProto], used: Uses) -> set[str]:
    """Return the tensors that serve nothing but shapes, indices and conditions."""
    found: set[str] = set()
    # Consumers come behind what they read, so one pass from the end settles everything.
    for node in reversed(nodes):
        found.update(name for name in node.output if _only_shapes(name, used, found))
    stored = used.keys() - {name for node in nodes for name in node.output}
    return found | {name for name in stored if _only_shapes(name, used, found)}


def _only_shapes(name: str, used: Uses, found: set[str]) -> bool:
    own = used.get(name, [])
    return bool(own) and all(
        use.slot in _SHAPE_SLOTS.get(use.node.op_type, ())
        or (use.node.op_type in _CARRIERS and found.issuperset(filter(None, use.node.output)))
        for use in own
    )


def is_mathematical(tensor: TensorProto) -> bool:
    """Say whether a single number is one that anybody could have written: it tells nothing of a training.

    Such are whole numbers, halves, powers of two and ten, roots and reciprocals of whole numbers, the
    constants of Gelu, and the largest and smallest of the type, exactly as the tensor's type rounds them.
    """
    array = np.asarray(numpy_helper.to_array(tensor)).reshape(())
    kind = array.dtype.type
    value = abs(float(array))
    if value in {0.0, math.inf} or math.isnan(value):
        return True
    with np.errstate(over="ignore", under="ignore"):
        return any(float(kind(candidate)) == value for candidate in _candidates(value))


def _candidates(value: float) -> Iterable[float]:
    # No further than where a trained number would hit one of them by chance.
    near = [round(2 * value) / 2] if value <= _LARGEST_WHOLE else []
    if value <= math.sqrt(_MOST_ROOTED):
        near.append(math.sqrt(round(value * value)))
    if value >= 1 / math.sqrt(_MOST_ROOTED):
        near.append(1 / math.sqrt(round(1 / value**2)) if value < 1 else 0.0)
    if 1 / _MOST_ROOTED <= value < 1:
        near.append(1 / round(1 / value))
    exponent = math.log10(value)
    return itertools.chain(
        near,
        (2.0 ** round(math.log2(value)), 10.0 ** round(exponent)),
        (0.044715, 1.702, math.sqrt(2 / math.pi), math.pi, math.e),
        (float(np.finfo(kind).max) for kind in (np.float16, np.float32)),
    )
