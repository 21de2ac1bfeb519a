"""Convolutions with fewer multiplications: Winograd's minimal filtering, and the Fourier transform.

Lavin, Gray, "Fast algorithms for convolutional neural networks", arXiv 1509.09308; Mathieu, Henaff,
LeCun, "Fast training of convolutional networks through FFTs", arXiv 1312.5851. The weights are
transformed once, ahead of time; the input and the output in every run.
"""

from __future__ import annotations

import math
from fractions import Fraction

from roof_agent.errors import UsageError
from roof_collector.analysis.convolution import Convolution, Step, Variant, packed_bytes
from roof_collector.analysis.roofline import Roofline

# Points of interpolation, in pairs of opposite sign behind 0; small ones first, for accuracy.
_POINTS = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3), Fraction(1, 3))

Matrix = list[list[Fraction]]


def winograd_matrices(outputs: int, taps: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return (A^T, G, B^T) of F(outputs, taps): y = A^T [(G g) * (B^T d)] filters d with g.

    Cook-Toom with the points 0, +-1, +-2, +-1/2, ..., infinity; transposed to a filter by the
    transposition principle. B^T [n, n], G [n, taps], A^T [outputs, n], n = outputs + taps - 1.
    """
    size = outputs + taps - 1
    points = _points(size)
    interpolation, scales = [], []
    for point in points:
        others = [other for other in points if other != point]
        interpolation.append(_product(others, size))
        scales.append(math.prod((point - other for other in others), start=Fraction(1)))
    interpolation.append(_product(points, size))
    filters = [
        [point**power / scale for power in range(taps)] for point, scale in zip(points, scales, strict=True)
    ]
    filters.append([Fraction(0)] * (taps - 1) + [Fraction(1)])
    inverse = [
        [point**power for point in points] + [Fraction(power == outputs - 1)] for power in range(outputs)
    ]
    return inverse, filters, interpolation


def transform_instructions(outputs: int, taps: int) -> tuple[int, int]:
    """Return the instructions of one two-dimensional tile's input and inverse transforms.

    An instruction is an addition or a multiply-add. What the rows of opposite points share (their
    even and odd parts) is computed once, as Lavin and Gray do: 32 and 24 for F(2, 3), 144 and 100
    for F(4, 3).
    """
    size = outputs + taps - 1
    pairs = (size - 2) // 2
    _, _, interpolation = winograd_matrices(outputs, taps)
    forward = _terms(interpolation[0]) - 1 + _terms(interpolation[-1]) - 1
    for pair in range(pairs):
        row = interpolation[1 + 2 * pair]
        forward += _terms(row[0::2]) - 1 + _terms(row[1::2]) - 1 + 2
    backward = 2 * pairs + sum(pairs + (power == 0) + (power == outputs - 1) - 1 for power in range(outputs))
    return forward * 2 * size, backward * (size + outputs)


def winograd(conv: Convolution, element_type: str, outputs: int) -> list[Variant]:
    """Return F(outputs x outputs, k x k): in one pass through memory, and in three.

    In one pass a tile's transforms stay in cache; in three the transformed input and products go
    through memory. Stride above 1, groups, a kernel that isn't square or of even size, or 1x1 are a
    UsageError.
    """
    taps = conv.kernel[0]
    if conv.kernel[1] != taps or taps < 3 or taps % 2 == 0 or conv.stride != 1 or conv.groups != 1:
        raise UsageError("Winograd needs a square odd kernel of 3 or more, stride 1 and one group")
    size = outputs + taps - 1
    tiles = conv.batch * -(-conv.out_height // outputs) * -(-conv.out_width // outputs)
    macc = tiles * size**2 * conv.cin * conv.cout
    forward, backward = transform_instructions(outputs, taps)
    forward, backward = forward * tiles * conv.cin, backward * tiles * conv.cout
    direct = conv.step(element_type)
    weights = packed_bytes(size**2 * conv.cin * conv.cout, element_type)
    bias = packed_bytes(conv.params - conv.weights, element_type)
    inputs = packed_bytes(tiles * size**2 * conv.cin, element_type)
    products = packed_bytes(tiles * size**2 * conv.cout, element_type)
    name = f"winograd F({outputs}x{outputs},{taps}x{taps})"
    saved = f"{conv.macc / macc:.2f}x fewer multiplications of at most {taps**2}x"
    one_pass = Step(
        "winograd",
        macc,
        conv.params,
        direct.input_bytes,
        weights + bias,
        direct.output_bytes,
        forward + backward,
    )
    passes = (
        Step("input transform", 0, 0, direct.input_bytes, 0, inputs, forward),
        Step("products", macc, conv.params, inputs, weights, products),
        Step("inverse transform", 0, 0, products, bias, direct.output_bytes, backward),
    )
    return [
        Variant(name, (one_pass,), element_type, f"{saved}; transforms in cache"),
        Variant(f"{name}, through memory", passes, element_type, saved),
    ]


def fourier(conv: Convolution, element_type: str, roofline: Roofline) -> Variant:
    """Return the convolution by FFT, on the tile size that is fastest under the roofline.

    Tiles of S x S, a power of two, overlap by the kernel. A real transform takes 2.5 S^2 log2(S^2)
    operations; the products are complex, on half of the spectrum: four multiply-accumulates each.
    Stride above 1 or groups are a UsageError.
    """
    if conv.stride != 1 or conv.groups != 1:
        raise UsageError("convolution by FFT needs stride 1 and one group")
    whole = max(conv.height + 2 * conv.pads[0], conv.width + 2 * conv.pads[1])
    smallest = max(3, math.ceil(math.log2(max(conv.kernel) + 1)))
    largest = max(smallest, math.ceil(math.log2(whole)))
    candidates = [_fourier(conv, element_type, 2**power) for power in range(smallest, largest + 1)]
    return min(candidates, key=lambda variant: variant.seconds(roofline))


def _fourier(conv: Convolution, element_type: str, size: int) -> Variant:
    rows = -(-conv.out_height // (size - conv.kernel[0] + 1))
    columns = -(-conv.out_width // (size - conv.kernel[1] + 1))
    tiles = conv.batch * rows * columns
    spectrum = size * (size // 2 + 1)
    operations = math.ceil(2.5 * size**2 * math.log2(size**2))
    direct = conv.step(element_type)
    step = Step(
        "fft",
        macc=4 * tiles * spectrum * conv.cin * conv.cout,
        params=conv.params,
        input_bytes=direct.input_bytes,
        param_bytes=packed_bytes(2 * spectrum * conv.cin * conv.cout, element_type)
        + packed_bytes(conv.params - conv.weights, element_type),
        output_bytes=direct.output_bytes,
        transform_instructions=operations * tiles * (conv.cin + conv.cout),
    )
    return Variant("fft", (step,), element_type, f"tiles of {size}x{size}; transforms in cache")


def _points(size: int) -> list[Fraction]:
    pairs = (size - 2) // 2
    if size % 2 or pairs > len(_POINTS):
        raise UsageError(f"no Winograd filter of {size} points; outputs + kernel - 1 is even, at most 12")
    return [Fraction(0)] + [sign * point for point in _POINTS[:pairs] for sign in (1, -1)]


def _product(roots: list[Fraction], length: int) -> list[Fraction]:
    """Coefficients of prod (x - root), lowest first, padded to `length`."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [*(-root * coefficient for coefficient in coefficients), Fraction(0)]
        coefficients = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return coefficients + [Fraction(0)] * (length - len(coefficients))


def _terms(form: list[Fraction]) -> int:
    return sum(coefficient != 0 for coefficient in form)
