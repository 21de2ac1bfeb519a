"""The programs that measure the same things: how each is found, run and read.

Each returns its figures under the names of the product's requests (see peers.py), in bytes/s as STREAM
counts them and in flop/s.
"""

from __future__ import annotations

import abc
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

Figures = dict[str, float]


class Peer(abc.ABC):
    """One program; `name` begins its keys, `variable` names its path in the environment."""

    name: str
    variable: str
    program: str
    # What the program makes of its own repetitions; the product's are summed up the same way.
    summary: Callable[[Sequence[float]], float] = staticmethod(min)

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def find(cls, given: str | None, environment: Mapping[str, str]) -> str | None:
        """Return the program's path: given, in the environment or on the PATH."""
        return given or environment.get(cls.variable) or shutil.which(cls.program)

    @abc.abstractmethod
    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run once on `cpus`."""


def output(command: Sequence[str], **environment: str) -> str:
    """Return what a command prints. Raises CalledProcessError where it fails."""
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.stdout


def join(cpus: Sequence[int]) -> str:
    """Return CPUs as a list with commas."""
    return ",".join(str(cpu) for cpu in cpus)


class Stream(Peer):
    """McCalpin's STREAM, built with OpenMP; its best rate of each kernel."""

    name = "stream"
    variable = "STREAM"
    program = "stream"

    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run STREAM; see Peer."""
        text = output(
            ("taskset", "--cpu-list", join(cpus), self.path),
            OMP_NUM_THREADS=str(len(cpus)),
            OMP_PROC_BIND="true",
        )
        found = re.findall(r"^(Copy|Scale|Add|Triad): +([\d.]+)", text, re.MULTILINE)
        return {kernel.lower(): float(rate) * 1e6 for kernel, rate in found}


class Cpufp(Peer):
    """cpufp: hand-written assembly for each instruction set; the best of them."""

    name = "cpufp"
    variable = "CPUFP"
    program = "cpufp"
    summary = staticmethod(statistics.mean)

    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run cpufp; see Peer."""
        text = output((self.path, f"--thread_pool=[{join(cpus)}]"))
        figures: Figures = {}
        for bits, value, unit in re.findall(
            r"\| FMA\(f(32|64),f\1,f\1\) +\| ([\d.]+) ([GT])FLOPS", text
        ) + re.findall(r"\| fmla\.vv\(f(32|64),f\1,f\1\) +\| ([\d.]+) ([GT])FLOPS", text):
            key = f"fp{bits}"
            figures[key] = max(figures.get(key, 0.0), float(value) * {"G": 1e9, "T": 1e12}[unit])
        return figures


class Likwid(Peer):
    """likwid-bench with AVX kernels; bytes as it counts them, which are STREAM's."""

    name = "likwid"
    variable = "LIKWID"
    program = "likwid-bench"
    summary = staticmethod(statistics.mean)

    # Product's name: likwid's kernel, arrays.
    BANDWIDTH: ClassVar = {
        "read": ("load_avx", 1),
        "fill": ("store_avx", 1),
        "copy": ("copy_avx", 2),
        "triad": ("stream_avx_fma", 3),
        "update": ("daxpy_avx_fma", 2),
        "fill_nt": ("store_mem_avx", 1),
        "copy_nt": ("copy_mem_avx", 2),
        "triad_nt": ("stream_mem_avx_fma", 3),
    }
    PEAK: ClassVar = {"fp32": "peakflops_sp_avx_fma", "fp64": "peakflops_avx_fma"}
    ARRAY_MB = 160

    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run each kernel; see Peer."""
        figures = {}
        for key, (kernel, arrays) in self.BANDWIDTH.items():
            text = self._run(kernel, f"{arrays * self.ARRAY_MB}MB", len(cpus), "-i", "10")
            figures[key] = self._read(text, "MByte/s")
        for key, kernel in self.PEAK.items():
            text = self._run(kernel, f"{16 * len(cpus)}kB", len(cpus), "-s", "1")
            figures[key] = self._read(text, "MFlops/s")
        return figures

    def _run(self, kernel: str, size: str, threads: int, *more: str) -> str:
        return output((self.path, "-t", kernel, "-W", f"S0:{size}:{threads}", *more))

    def _read(self, text: str, field: str) -> float:
        found = re.search(rf"^{field}:\s+([\d.]+)", text, re.MULTILINE)
        if not found:
            raise ValueError(f"likwid-bench printed no {field}")
        return float(found[1]) * 1e6


class Carm(Peer):
    """The CARM tool (`carm`, package carm-roofline): memory levels and peak, AVX2 in single precision."""

    name = "carm"
    variable = "CARM"
    program = "carm"
    summary = staticmethod(statistics.median)

    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run its roofline test; it pins its own threads. See Peer."""
        with tempfile.TemporaryDirectory() as folder:
            output(
                (
                    self.path, "benchmark", "--test", "roofline", "--isa", "x86_avx2", "--data-type", "f32",
                    "--ld-st-ratio", "2:1", "1:0", "--instruction", "fma", "--test-time", "0.5",
                    "--threads", str(len(cpus)), "--output-dir", folder, "--output-fmt", "jsonl",
                )
            )  # fmt: skip
            lines = [line for path in Path(folder).rglob("*.jsonl") for line in path.open(encoding="utf-8")]
        figures: Figures = {}
        for entry in map(json.loads, lines):
            if entry["type"] == "memory":
                mix = "read" if entry["num_stores"] == 0 else "mixed"
                figures[f"{entry['memory_level_name'].lower()}_{mix}"] = entry["bandwidth_gbps"] * 1e9
            elif entry["type"] == "arithmetic":
                figures["fp32"] = entry["performance_gops"] * 1e9
        return figures


class Tinymembench(Peer):
    """tinymembench: its best plain and non-temporal copies, one thread; it counts one direction."""

    name = "tinymembench"
    variable = "TINYMEMBENCH"
    program = "tinymembench"

    def measure(self, cpus: Sequence[int]) -> Figures:
        """Run it, without its latency part; see Peer."""
        if len(cpus) > 1:
            return {}
        figures: Figures = {}
        command = ("taskset", "--cpu-list", join(cpus), "stdbuf", "-oL", self.path)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout or ():
                if "latency test" in line:
                    running.kill()
                    break
                if found := re.match(r" (.*copy[^:]*?) +: +([\d.]+) MB/s", line):
                    if "2-pass" in found[1]:
                        continue
                    key = "copy_nt" if "nontemporal" in found[1] else "copy"
                    figures[key] = max(figures.get(key, 0.0), 2 * float(found[2]) * 1e6)
        return figures


PEERS: tuple[type[Peer], ...] = (Stream, Cpufp, Likwid, Carm, Tinymembench)
