"""Gathers and selections. A gather reads what it writes, and its indices."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node, OpenShapeError
from roof_collector.analysis.rules.elementwise import scale_slots
from roof_collector.analysis.rules.registry import MICROSOFT, rule
from roof_collector.analysis.rules.shapes import axis_of
from roof_collector.analysis.symbols import Dim, Poly, product, symbol
from roof_collector.analysis.tensor import INT32, INT64, UINT8, Shape, Tensor


def _gathered(node: Node, out: Shape) -> Cost:
    weights = tuple(slot for slot in scale_slots(node) if slot == 0)
    elements = product(out)
    return Cost([Tensor(node.input(0).dtype, out)], "gather", weights=weights, reads={0: elements}, data=(0,))


@rule("Gather")
def gather(node: Node) -> Cost:
    """Pick slices along an axis; a constant table is an embedding, that is a weight."""
    data, indices = node.shape(0), node.shape(1)
    axis = axis_of(node.integer("axis", 0), len(data))
    if not data:
        raise InvalidNodeError("gathers from a scalar")
    return _gathered(node, (*data[:axis], *indices, *data[axis + 1 :]))


@rule("GatherElements")
def gather_elements(node: Node) -> Cost:
    """Pick one element for each index."""
    return _gathered(node, node.shape(1))


@rule("GatherND")
@rule("GatherND", domain=MICROSOFT)
def gather_nd(node: Node) -> Cost:
    """Pick slices by index tuples."""
    data, indices = node.shape(0), node.shape(1)
    batch = node.integer("batch_dims", 0)
    if not indices or isinstance(indices[-1], Poly):
        raise OpenShapeError("how deep the indices reach is unknown")
    return _gathered(node, (*indices[:-1], *data[batch + indices[-1] :]))


@rule("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantised(node: Node) -> Cost:
    """Look up rows of a table stored in 4 or 8 bits, and dequantise them."""
    data, indices = node.shape(0), node.shape(1)
    axis = axis_of(node.integer("gather_axis", 0), len(data))
    packed = 2 if node.input(0).dtype == UINT8 and node.integer("bits", 4) == 4 else 1
    stored: Shape = (*data[:axis], *indices, *data[axis + 1 :])
    out: Shape = (*stored[:-1], stored[-1] * packed)
    reads: dict[int, Dim] = {0: product(stored)}
    return Cost(
        [Tensor(node.input(2).dtype, out)], "gather", other_ops=product(out), weights=(0,), reads=reads
    )


@rule("Compress")
def compress(node: Node) -> Cost:
    """Keep what a mask says; how much that is, only data tell."""
    kept = symbol(f"{node.outputs[0]}.kept")
    if not node.has("axis"):
        return _gathered(node, (kept,))
    data = node.shape(0)
    axis = axis_of(node.integer("axis", 0), len(data))
    return _gathered(node, (*data[:axis], kept, *data[axis + 1 :]))


@rule("NonZero")
def non_zero(node: Node) -> Cost:
    """Write the indices of what isn't zero; how many, only data tell."""
    found = symbol(f"{node.outputs[0]}.found")
    out: Shape = (len(node.shape(0)), found)
    return Cost([Tensor(INT64, out)], "gather", other_ops=node.elements(0))


@rule("TopK")
def top_k(node: Node) -> Cost:
    """Select the greatest; one operation an input element (comparisons depend on data)."""
    shape = node.shape(0)
    axis = axis_of(node.integer("axis", -1), len(shape))
    k = node.values(1)
    count: Dim = k[0] if k else node.integer("k", 0) or symbol(f"{node.outputs[0]}.k")
    out: Shape = (*shape[:axis], count, *shape[axis + 1 :])
    outputs = [Tensor(node.input(0).dtype, out), Tensor(INT64, out)][: len(node.outputs)]
    return Cost(outputs, "reduction", other_ops=node.elements(0))


@rule("Unique")
def unique(node: Node) -> Cost:
    """Drop what repeats; how much is left, only data tell."""
    left = symbol(f"{node.outputs[0]}.left")
    shape = node.shape(0)
    out: Shape = (left,)
    if node.has("axis"):
        axis = axis_of(node.integer("axis", 0), len(shape))
        out = (*shape[:axis], left, *shape[axis + 1 :])
    extra = [Tensor(INT64, (left,)), Tensor(INT64, (product(shape),)), Tensor(INT64, (left,))]
    outputs = [Tensor(node.input(0).dtype, out), *extra][: len(node.outputs)]
    return Cost(outputs, "gather", other_ops=node.elements(0))


@rule("OneHot")
def one_hot(node: Node) -> Cost:
    """Write a row of zeros with a one for each index."""
    shape = node.shape(0)
    depth = node.values(1)
    count: Dim = depth[0] if depth else symbol(f"{node.outputs[0]}.depth")
    axis = node.integer("axis", -1)
    axis = axis + len(shape) + 1 if axis < 0 else axis
    return Cost([Tensor(node.input(2).dtype, (*shape[:axis], count, *shape[axis:]))], "gather")


@rule("NonMaxSuppression")
def non_max_suppression(node: Node) -> Cost:
    """Select boxes; how many, only data tell. One operation a score (overlaps depend on data)."""
    found = symbol(f"{node.outputs[0]}.found")
    return Cost([Tensor(INT64, (found, 3))], "gather", other_ops=node.elements(1))


@rule("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(node: Node) -> Cost:
    """Pick columns."""
    return _gathered(node, (*node.shape(0)[:-1], node.elements(1)))


@rule("ExpandDims", domain=MICROSOFT)
def expand_dims(node: Node) -> Cost:
    """Unsqueeze as onnxruntime once spelled it."""
    shape = node.shape(0)
    given = node.values(1) or [0]
    axis = int(str(given[0])) % (len(shape) + 1)
    return Cost(
        [Tensor(node.input(0).dtype, (*shape[:axis], 1, *shape[axis:]))], "view", view=True, data=(0,)
    )


@rule("Bernoulli", "Multinomial")
def sample(node: Node) -> Cost:
    """Draw random numbers by the input's probabilities."""
    dtype = node.integer("dtype", INT32 if node.op_type == "Multinomial" else node.input(0).dtype)
    shape = node.shape(0)
    if node.op_type == "Multinomial":
        shape = (shape[0], node.integer("sample_size", 1))
    return Cost([Tensor(dtype, shape)], "generator", other_ops=product(shape))
