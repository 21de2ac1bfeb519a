"""What the compiler made of the kernels: the instructions that are measured are really there.

A compiler may hoist a product out of a loop, make one accumulator of twelve equal ones, turn a copy
into a call of memcpy or drop a non-temporal store, and the figures would still look plausible. The
library that is installed here is looked at, and those for ARM where a cross compiler is installed
(ziglang).
"""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roof_agent.kernels.native import LIBRARY

SOURCES = Path(__file__).parents[3] / "agent" / "roof_agent" / "kernels" / "src"
BANDWIDTH = ("fill", "copy", "scale", "add", "triad", "update")
NONTEMPORAL = ("fill_nt", "copy_nt", "scale_nt", "add_nt", "triad_nt")
SWEEP = (1, 2, 4, 8, 16, 32, 64)
UNROLL = 8
CHAINS = 8


@dataclass(frozen=True)
class Isa:
    """An instruction set's accumulators, and patterns of its instructions; {s} is the type's suffix."""

    name: str
    accumulators: int
    plus: str = ""
    minus: str = ""
    multiply: str = ""
    add: str = ""
    nontemporal: str = ""
    # Vectors that one non-temporal instruction stores.
    stored: int = 1
    suffixes: dict[str, str] = field(default_factory=lambda: {"f32": "s", "f64": "d"})


@dataclass(frozen=True)
class Architecture:
    """What is built for one architecture."""

    objdump: tuple[str, ...]
    target: tuple[str, ...]
    call: str
    isas: tuple[Isa, ...]
    # Function, instruction, how many.
    single: tuple[tuple[str, str, int], ...] = ()


ARCHITECTURES = {
    "x86_64": Architecture(
        ("objdump",),
        (),
        "call.*|bnd call.*",
        (
            Isa(
                "avx512",
                24,
                r"vfmadd\d+p{s}",
                r"vfnmadd\d+p{s}",
                "vmulp{s}",
                "v(add|sub)p{s}",
                "v?movntp[sd]",
            ),
            Isa(
                "avx2", 12, r"vfmadd\d+p{s}", r"vfnmadd\d+p{s}", "vmulp{s}", "v(add|sub)p{s}", "v?movntp[sd]"
            ),
            Isa("sse2", 12, "", "", "mulp{s}", "(add|sub)p{s}", "movntp[sd]"),
            Isa("scalar", 12, "", "", "muls{s}", "(add|sub)s{s}"),
        ),
        (("dot_avxvnni_i8", "vpdpbusd", 24), ("dot_avx512vnni_i8", "vpdpbusd", 48)),
    ),
    "aarch64": Architecture(
        ("aarch64-linux-gnu-objdump", "llvm-objdump"),
        ("-target", "aarch64-linux-gnu.2.17", "-mcpu=baseline"),
        "blr?",
        (
            Isa("neon", 24, "fmla", "fmls", "fmul", "fadd|fsub", "stnp", 2),
            Isa("scalar", 12, "", "", "fmul", "fadd|fsub"),
        ),
        (("dot_dotprod_i8", "sdot", 48), ("fma_fp16_f16", "fmla", 24), ("fma_fp16_f16", "fmls", 24)),
    ),
    "armv7": Architecture(
        ("arm-linux-gnueabihf-objdump", "llvm-objdump"),
        ("-target", "arm-linux-gnueabihf.2.17", "-mcpu=cortex_a7"),
        "blx?",
        (
            Isa("vfpv4", 12, r"vfma\.{s}", r"vfms\.{s}", r"vmul\.{s}", r"v(add|sub)\.{s}"),
            Isa("scalar", 12, "", "", r"vn?mul\.{s}", r"v(add|sub)\.{s}"),
        ),
    ),
}
ARM_SUFFIXES = {"f32": "f32", "f64": "f64"}
Functions = dict[str, Counter[str]]


@dataclass(frozen=True)
class Build:
    """One library's functions."""

    architecture: Architecture
    functions: Functions

    def count(self, function: str, pattern: str) -> int:
        instructions = self.functions[function]
        return sum(number for name, number in instructions.items() if re.fullmatch(pattern, name))

    def each(self) -> list[tuple[Isa, str, str]]:
        """Each instruction set with each type: the set, the functions' ending, the type's suffix."""
        arm = self.architecture is ARCHITECTURES["armv7"]
        return [
            (isa, f"{isa.name}_{kind}", (ARM_SUFFIXES if arm else isa.suffixes)[kind])
            for isa in self.architecture.isas
            for kind in ("f32", "f64")
        ]


def disassemble(objdump: str, library: Path) -> Functions:
    text = subprocess.run(
        [objdump, "--disassemble", "--no-show-raw-insn", str(library)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: Functions = {}
    for block in re.split(r"\n(?=[0-9a-f]{8,16} <)", text):
        if head := re.match(r"[0-9a-f]+ <(\w+)>:", block):
            names = re.findall(r"^\s+[0-9a-f]+:\s+(?:\{vex\} )?([\w.]+)", block, re.MULTILINE)
            found[head[1]] = Counter(names)
    return found


@pytest.fixture(scope="module", params=ARCHITECTURES)
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    name: str = request.param
    architecture = ARCHITECTURES[name]
    objdump = next((tool for tool in architecture.objdump if shutil.which(tool)), "")
    if not objdump:
        pytest.skip(f"no objdump for {name}")
    library = LIBRARY
    if name != platform.machine():
        if not architecture.target or importlib.util.find_spec("ziglang") is None:
            pytest.skip(f"no cross compiler for {name}")
        library = cross_build(architecture, tmp_path_factory.mktemp(name))
    elif not LIBRARY.exists():
        pytest.skip("the compiled kernels aren't there")
    return Build(architecture, disassemble(objdump, library))


def cross_build(architecture: Architecture, folder: Path) -> Path:
    library = folder / "_roofkernels.so"
    flags = ("-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize")
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    command = [sys.executable, "-m", "ziglang", "cc", *architecture.target, *flags, *sources, "-o", library]
    subprocess.run(command, check=True, capture_output=True)
    return library


def test_no_kernel_calls_anything(build: Build) -> None:
    endings = tuple(f"_{ending}" for _, ending, _ in build.each())
    special = {function for function, _, _ in build.architecture.single}
    kernels = [name for name in build.functions if name.endswith(endings) or name in special]
    assert len(kernels) >= len(endings) * (len(BANDWIDTH) + len(SWEEP) + 2)
    for name in kernels:
        assert build.count(name, build.architecture.call) == 0, name


def test_the_fused_peak_is_multiply_adds_alone(build: Build) -> None:
    for isa, ending, suffix in build.each():
        if isa.plus:
            # clang subtracts by adding a product with the negated operand.
            found = build.count(f"fma_{ending}", f"{isa.plus}|{isa.minus}".format(s=suffix))
            # At least one unrolled body; the compiler may unroll it further, evenly.
            assert found >= 2 * isa.accumulators, ending
            assert found % (2 * isa.accumulators) == 0, ending
            assert build.count(f"fma_{ending}", isa.multiply.format(s=suffix)) == 0, ending
            assert build.count(f"fma_{ending}", isa.add.format(s=suffix)) == 0, ending


def test_without_a_multiply_add_no_product_is_hoisted(build: Build) -> None:
    for isa, ending, suffix in build.each():
        peak = f"muladd_{ending}"
        assert build.count(peak, isa.multiply.format(s=suffix)) >= 2 * isa.accumulators, ending
        assert build.count(peak, isa.add.format(s=suffix)) >= 2 * isa.accumulators, ending
        if isa.plus:
            assert build.count(peak, f"{isa.plus}|{isa.minus}".format(s=suffix)) == 0, ending


def test_a_sweep_has_its_multiply_adds(build: Build) -> None:
    for isa, ending, suffix in build.each():
        for k in SWEEP:
            pattern = f"{isa.plus}|{isa.minus}" if isa.plus else isa.multiply
            found = build.count(f"sweep_{k}_{ending}", pattern.format(s=suffix))
            assert found >= k * CHAINS, (ending, k)
            assert found % (k * CHAINS) == 0, (ending, k)


def test_a_read_adds_in_eight_chains(build: Build) -> None:
    for isa, ending, suffix in build.each():
        assert build.count(f"read_{ending}", isa.add.format(s=suffix)) >= 2 * CHAINS - 1, ending


def test_stores_are_what_they_are_called(build: Build) -> None:
    for isa, ending, _ in build.each():
        if not isa.nontemporal:
            assert not [name for name in build.functions if name.endswith(f"_nt_{ending}")]
            continue
        for kernel in BANDWIDTH:
            assert build.count(f"{kernel}_{ending}", isa.nontemporal) == 0, kernel
        for kernel in NONTEMPORAL:
            streaming = build.count(f"{kernel}_{ending}", isa.nontemporal)
            assert streaming >= UNROLL // isa.stored, kernel
            assert streaming % (UNROLL // isa.stored) == 0, kernel
            if isa.nontemporal != "stnp":
                assert build.functions[f"{kernel}_{ending}"]["sfence"] >= 1, kernel


def test_special_instructions_are_there(build: Build) -> None:
    for function, instruction, number in build.architecture.single:
        if function == "dot_avxvnni_i8" and function not in build.functions:
            continue  # A compiler that doesn't know it yet.
        assert build.count(function, instruction) >= number, function


def test_wide_registers_stay_in_their_own_functions(build: Build) -> None:
    if build.architecture is not ARCHITECTURES["x86_64"]:
        pytest.skip("only x86-64 has baseline functions beside them")
    for name in build.functions:
        if not re.search(r"_avx\w+_(f\d\d|i8)$", name) and not name.startswith("__"):
            assert build.count(name, "v[a-z]+.*") == 0, name
