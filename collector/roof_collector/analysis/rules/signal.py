"""Signal transforms. A DFT is counted as the product with its matrix: no algorithm is guessed."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, Node, OpenShapeError
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.rules.shapes import axis_of
from roof_collector.analysis.symbols import Dim, product
from roof_collector.analysis.tensor import Tensor


@rule("DFT")
def dft(node: Node) -> Cost:
    """Each of the bins sums L complex products: 4 macc each, 2 for real input."""
    shape = node.shape(0)
    given = node.values(2)
    default = 1 if node.version < 20 else -2
    axis = int(str(given[0])) if given else node.integer("axis", default)
    axis = axis_of(axis, len(shape))
    length = node.values(1)
    points: Dim = length[0] if length else shape[axis]
    bins = points // 2 + 1 if node.integer("onesided", 0) and not node.integer("inverse", 0) else points
    out = (*shape[:axis], bins, *shape[axis + 1 : -1], 2)
    macc = product(out[:-1]) * points * (2 if shape[-1] == 1 else 4)
    return Cost([Tensor(node.input(0).dtype, out)], "signal", macc)


@rule("STFT")
def stft(node: Node) -> Cost:
    """Windowed DFTs: one product an element for the window, then as DFT."""
    signal, step = node.shape(0), node.values(1)
    window, frame = node.optional(2), node.values(3)
    length: Dim | None = frame[0] if frame else None
    if length is None and window is not None and window.shape is not None:
        length = window.shape[0]
    if step is None or length is None:
        raise OpenShapeError("the frame's length or step depends on data")
    frames = (signal[1] - length) // step[0] + 1
    bins = length // 2 + 1 if node.integer("onesided", 1) else length
    out = (signal[0], frames, bins, 2)
    complex_input = len(signal) == 3 and signal[2] == 2
    macc = product(out[:-1]) * length * (4 if complex_input else 2)
    windowed: Dim = signal[0] * frames * length if window is not None else 0
    return Cost([Tensor(node.input(0).dtype, out)], "signal", macc, windowed)
