"""Alternatives of one convolution: the talk's figures, and the transforms against real arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roof_agent.errors import UsageError
from roof_collector.analysis.convolution import (
    Convolution,
    bottleneck,
    depthwise_separable,
    grouped,
    packed_bytes,
    plain,
    structured_sparsity,
    unstructured_sparsity,
)
from roof_collector.analysis.devices import datasheet
from roof_collector.analysis.fast_convolution import (
    fourier,
    transform_instructions,
    winograd,
    winograd_matrices,
)

TALK = Convolution(256, 256, 56, 56)
PI = datasheet("rpi3").roofline()


def test_the_talks_convolution() -> None:
    direct = plain(TALK, "float32")
    assert direct.macc == 1_849_688_064
    assert direct.flops / 1e9 == pytest.approx(3.699, abs=5e-4)
    assert direct.memory_bytes / 1e6 == pytest.approx(8.782, abs=5e-4)
    assert direct.intensity == pytest.approx(421, abs=0.5)
    assert direct.bound(PI) == "compute"


def test_the_talks_bottleneck() -> None:
    narrow = bottleneck(TALK, "float32")
    assert narrow.flops / 1e9 == pytest.approx(0.4367, abs=5e-5)
    assert narrow.memory_bytes / 1e6 == pytest.approx(9.912, abs=5e-4)
    assert narrow.intensity == pytest.approx(44.1, abs=0.05)
    assert narrow.note == "256-64-64-256"


def test_depthwise_separable_saves_work_and_not_bytes() -> None:
    separable = depthwise_separable(TALK, "float32")
    # 1/Cout + 1/K^2 of the multiply-accumulates (Howard et al., section 3.1).
    assert separable.macc / TALK.macc == pytest.approx(1 / 256 + 1 / 9)
    assert separable.memory_bytes == (4 * 256 * 56 * 56 + 256 * 9 + 256 * 256) * 4
    assert separable.memory_bytes > plain(TALK, "float32").memory_bytes


def test_groups_divide_the_work_and_the_weights() -> None:
    two, eight = grouped(TALK, "float32", (1, 2, 3, 8))
    assert (two.name, two.macc * 2, two.params * 2) == ("2 groups", TALK.macc, TALK.weights)
    assert (eight.name, eight.macc * 8) == ("8 groups", TALK.macc)


def test_stride_shrinks_all_that_comes_after_it() -> None:
    strided = Convolution(64, 128, 56, 56, stride=2)
    assert (strided.out_height, strided.out_width) == (28, 28)
    narrow = bottleneck(strided, "float32")
    assert [step.macc for step in narrow.steps] == [
        64 * 32 * 56 * 56,
        32 * 32 * 9 * 28 * 28,
        32 * 128 * 28 * 28,
    ]
    assert depthwise_separable(strided, "float32").steps[1].macc == 64 * 128 * 28 * 28


@pytest.mark.parametrize(
    ("element_type", "share"), [("float16", 1 / 2), ("int8", 1 / 4), ("int4", 1 / 8), ("float64", 2)]
)
def test_element_types_change_the_bytes_alone(element_type: str, share: float) -> None:
    variant = plain(TALK, element_type)
    assert variant.memory_bytes == plain(TALK, "float32").memory_bytes * share
    assert variant.macc == TALK.macc


def test_packed_elements_are_rounded_up() -> None:
    assert packed_bytes(3, "int4") == 2
    with pytest.raises(UsageError, match="no element type 'fp7'"):
        packed_bytes(3, "fp7")


def test_sparsity() -> None:
    structured = structured_sparsity(TALK, "float32", 0.75)
    assert structured.macc * 4 == TALK.macc
    assert structured.steps[0].output_bytes * 4 == plain(TALK, "float32").steps[0].output_bytes
    loose = unstructured_sparsity(TALK, "float32", 0.75)
    assert loose.macc * 4 == TALK.macc
    assert loose.steps[0].output_bytes == plain(TALK, "float32").steps[0].output_bytes
    assert loose.steps[0].param_bytes == TALK.weights + TALK.weights // 8
    with pytest.raises(UsageError, match="sparsity of 1"):
        structured_sparsity(TALK, "float32", 1)


@given(
    st.sampled_from([(2, 3), (4, 3), (6, 3), (2, 5), (4, 5)]),
    st.lists(st.integers(-9, 9), min_size=5, max_size=5),
    st.lists(st.integers(-9, 9), min_size=8, max_size=8),
)
def test_winograd_matrices_filter(shape: tuple[int, int], taps: list[int], signal: list[int]) -> None:
    outputs, count = shape
    inverse, filters, transform = (
        np.array(matrix, dtype=object) for matrix in winograd_matrices(outputs, count)
    )
    g, d = np.array(taps[:count], dtype=object), np.array(signal[: outputs + count - 1], dtype=object)
    got = inverse @ ((filters @ g) * (transform @ d))
    expected = [sum(g[k] * d[i + k] for k in range(count)) for i in range(outputs)]
    assert list(got) == expected


def test_transform_instructions_are_lavin_and_grays() -> None:
    assert transform_instructions(2, 3) == (32, 24)
    assert transform_instructions(4, 3) == (144, 100)


@pytest.mark.parametrize(("outputs", "saved"), [(2, 2.25), (4, 4.0), (6, 5.0625)])
def test_winograd_saves_what_the_theory_says_where_tiles_fit(outputs: int, saved: float) -> None:
    one_pass, three = winograd(Convolution(64, 64, 48, 48), "float32", outputs)
    direct = Convolution(64, 64, 48, 48)
    assert direct.macc / one_pass.macc == pytest.approx(saved)
    assert three.macc == one_pass.macc
    assert three.flops == one_pass.flops > 2 * one_pass.macc
    spread = (outputs + 2) ** 2 / outputs**2
    forward, backward = transform_instructions(outputs, 3)
    tiles = (48 // outputs) ** 2
    assert three.steps[0].transform_instructions == forward * tiles * 64
    assert three.steps[2].transform_instructions == backward * tiles * 64
    assert one_pass.transform_instructions == three.transform_instructions
    assert three.steps[0].output_bytes == pytest.approx(spread * 64 * 48 * 48 * 4)
    assert one_pass.steps[0].param_bytes == (outputs + 2) ** 2 * 64 * 64 * 4


def test_winograd_pays_for_tiles_that_overhang() -> None:
    (one_pass, _) = winograd(TALK, "float32", 6)
    assert one_pass.macc == 10 * 10 * 64 * 256 * 256


@pytest.mark.parametrize(
    "conv",
    [
        Convolution(8, 8, 9, 9, stride=2),
        Convolution(8, 8, 9, 9, kernel=(1, 1)),
        Convolution(8, 8, 9, 9, kernel=(3, 5)),
        Convolution(8, 8, 9, 9, groups=2),
    ],
)
def test_winograd_refuses_what_it_cannot_do(conv: Convolution) -> None:
    with pytest.raises(UsageError, match="Winograd needs"):
        winograd(conv, "float32", 2)


def test_fourier_pays_off_for_large_kernels() -> None:
    def gain(kernel: int) -> float:
        conv = Convolution(64, 64, 56, 56, kernel=(kernel, kernel))
        return plain(conv, "float32").seconds(PI) / fourier(conv, "float32", PI).seconds(PI)

    assert gain(11) > 6 > gain(3)
    three = Convolution(64, 64, 56, 56)
    assert winograd(three, "float32", 4)[0].seconds(PI) < fourier(three, "float32", PI).seconds(PI)


def test_fourier_counts_the_products_on_half_of_the_spectrum() -> None:
    conv = Convolution(16, 32, 6, 6, kernel=(3, 3))
    variant = fourier(conv, "float32", PI)
    assert variant.note.startswith("tiles of 8x8")
    assert variant.macc == 4 * 8 * 5 * 16 * 32
    assert variant.steps[0].param_bytes == 2 * 8 * 5 * 16 * 32 * 4


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"cin": 0}, "1 or more"),
        ({"groups": 3}, "3 groups don't divide"),
        ({"kernel": (9, 9), "pad": (0, 0), "height": 4}, "larger than the padded input"),
    ],
)
def test_an_impossible_convolution_is_one_clear_line(broken: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Convolution(**({"cin": 8, "cout": 8, "height": 8, "width": 8} | broken))
