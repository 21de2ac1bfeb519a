"""What the compiler made of the kernels: the instructions that are measured are really there.

A compiler may hoist a product out of a loop, turn a copy into a call of memcpy or drop a
non-temporal store, and the figures would still look plausible.
"""

import platform
import re
import shutil
import subprocess
from collections import Counter

import pytest

from roof_agent.kernels.native import LIBRARY

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="the compiled kernels aren't there"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump on this machine"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the patterns below are x86-64's"),
]

KERNELS = ("copy", "scale", "add", "triad", "copy_nt", "scale_nt", "add_nt", "triad_nt", "peak")
ISAS = ("sse2", "avx2", "avx512", "scalar")
UNROLL = 4
ACCUMULATORS = {"sse2": 12, "avx2": 12, "avx512": 24, "scalar": 12}


@pytest.fixture(scope="module")
def functions() -> dict[str, Counter[str]]:
    text = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", str(LIBRARY)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: dict[str, Counter[str]] = {}
    for block in re.split(r"\n(?=[0-9a-f]{16} <)", text):
        if head := re.match(r"[0-9a-f]{16} <(\w+)>:", block):
            found[head[1]] = Counter(re.findall(r"^\s+[0-9a-f]+:\s+(\w+)", block, re.MULTILINE))
    return found


def of(functions: dict[str, Counter[str]], kernel: str, isa: str, bits: int) -> Counter[str]:
    return functions[f"{kernel}_{isa}_f{bits}"]


def count(instructions: Counter[str], pattern: str) -> int:
    return sum(number for name, number in instructions.items() if re.fullmatch(pattern, name))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("bits", [32, 64])
def test_no_kernel_calls_anything(functions: dict[str, Counter[str]], isa: str, bits: int) -> None:
    for kernel in KERNELS:
        if isa == "scalar" and kernel.endswith("_nt"):
            continue
        assert count(of(functions, kernel, isa, bits), "call.*|bnd call.*") == 0, kernel


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize(("bits", "suffix"), [(32, "ps"), (64, "pd")])
def test_the_peak_is_multiply_adds_alone(
    functions: dict[str, Counter[str]], isa: str, bits: int, suffix: str
) -> None:
    peak = of(functions, "peak", isa, bits)
    adds, subtracts = count(peak, rf"vfmadd\d+{suffix}"), count(peak, rf"vfnmadd\d+{suffix}")
    # At least one unrolled body each; the compiler may unroll it further, evenly.
    assert adds >= ACCUMULATORS[isa]
    assert adds == subtracts
    assert count(peak, f"vmul{suffix}|vadd{suffix}|vsub{suffix}") == 0


@pytest.mark.parametrize(("isa", "pattern"), [("sse2", "mulp{}"), ("scalar", "muls{}")])
@pytest.mark.parametrize(("bits", "suffix"), [(32, "s"), (64, "d")])
def test_without_a_multiply_add_no_product_is_hoisted(
    functions: dict[str, Counter[str]], isa: str, pattern: str, bits: int, suffix: str
) -> None:
    peak = of(functions, "peak", isa, bits)
    assert count(peak, pattern.format(suffix)) >= 2 * ACCUMULATORS[isa]


@pytest.mark.parametrize("isa", ["sse2", "avx2", "avx512"])
@pytest.mark.parametrize("bits", [32, 64])
def test_stores_are_what_they_are_called(functions: dict[str, Counter[str]], isa: str, bits: int) -> None:
    for kernel in ("copy", "scale", "add", "triad"):
        assert count(of(functions, kernel, isa, bits), "v?movntp[sd]|movnti") == 0, kernel
        streaming = count(of(functions, f"{kernel}_nt", isa, bits), "v?movntp[sd]")
        assert streaming >= UNROLL, kernel
        assert streaming % UNROLL == 0, kernel
        assert of(functions, f"{kernel}_nt", isa, bits)["sfence"] >= 1, kernel


def test_wide_registers_stay_in_their_own_functions(functions: dict[str, Counter[str]]) -> None:
    for name, instructions in functions.items():
        if not re.search(r"_(avx2|avx512)_f\d\d$", name) and not name.startswith("__"):
            assert count(instructions, "v[a-z]+.*") == 0, name
