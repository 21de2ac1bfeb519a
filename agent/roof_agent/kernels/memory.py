"""Where the data of a measurement lies: sizes, distances between arrays, huge pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from roof_agent.errors import MeasurementError
from roof_agent.kernels import KernelSpec, Request

# Elements that every kernel handles without a remainder (ROOF_STEP); the latency walk's are lines.
_STEP = 128
_LATENCY_STEP = 16
LINE_BYTES = 64
HUGE_BYTES = 2 << 20
_BYTES = {"float32": 4, "float64": 8, "": LINE_BYTES}
# Between arrays beyond the caches, whose distance would else be a multiple of 4 KiB: loads would wait
# for stores to other arrays (4K aliasing), and all arrays would open pages of the same memory bank. An
# odd number of lines, near half a page, was 5 to 10 % faster than a few. Smaller arrays lie closely, so
# that a set as large as a cache fits it.
_PAD_LINES = 53
PAD_FROM_BYTES = 4 << 20
# Unrolled bodies of a kernel in registers that make one pass.
BODIES = 10_000


def element_bytes(spec: KernelSpec) -> int:
    """Return the size of one element of a kernel's arrays."""
    return _BYTES[spec.element_type]


def stride_bytes(array_bytes: int) -> int:
    """Return the distance between the beginnings of arrays of `array_bytes`."""
    if array_bytes < PAD_FROM_BYTES:
        return array_bytes
    return array_bytes + -array_bytes % 4096 + _PAD_LINES * LINE_BYTES


def elements_per_thread(spec: KernelSpec, request: Request) -> int:
    """Return each array's length (or the passes of one call) for one thread.

    Raises MeasurementError where the working set is too small for one unrolled step.
    """
    if not spec.arrays:
        return BODIES
    step = _LATENCY_STEP if spec.family == "latency" else _STEP
    share = request.working_set_bytes // (len(request.cpus) * spec.arrays * element_bytes(spec))
    elements = share - share % step
    if not elements:
        raise MeasurementError(f"a working set of {request.working_set_bytes} bytes is too small")
    return elements


def huge_page_bytes(address: int, read: Callable[[], str] | None = None) -> int:
    """Return the bytes on huge pages in the mapping that holds `address`, 0 where it isn't told."""
    try:
        text = read() if read else Path("/proc/self/smaps").read_text(encoding="ascii")
    except OSError:
        return 0
    inside = False
    for line in text.splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    return 0
