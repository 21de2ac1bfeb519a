"""The kernels in numpy, for machines without a compiler.

numpy reaches 70 to 90 % of what the compiled kernels do, so its figures carry its name and are
never shown as the board's own. It has no non-temporal stores; its peak is a matrix product in
cache, the closest thing to multiply-adds on registers that it has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roof_agent.errors import Unavailable
from roof_agent.kernels import Backend, KernelSpec, Request, Result
from roof_agent.kernels.harness import Repetition, Worker, measure
from roof_agent.kernels.native import elements_per_thread

Array = NDArray[np.floating]

_SCALAR = 3
# Three matrices of this order stay in a 512 KiB cache in double precision.
_ORDER = 128
_TYPES = {"float32": 4, "float64": 8}

_BANDWIDTH: dict[str, tuple[int, int, Callable[[Array, Array, Array], object]]] = {
    "copy": (2, 0, lambda dst, a, b: np.copyto(dst, a)),
    "scale": (2, 1, lambda dst, a, b: np.multiply(a, _SCALAR, out=dst)),
    "add": (3, 1, lambda dst, a, b: np.add(a, b, out=dst)),
    # numpy has no fused form: the product is written, read and written again.
    "triad": (3, 2, lambda dst, a, b: np.add(np.multiply(b, _SCALAR, out=dst), a, out=dst)),
}
_EXPECTED: dict[str, Callable[[Array, Array], Array]] = {
    "copy": lambda a, b: a,
    "scale": lambda a, b: _SCALAR * a,
    "add": lambda a, b: a + b,
    "triad": lambda a, b: a + _SCALAR * b,
}


class NumpyTwin(Backend):
    """The same kernels in numpy; see Backend."""

    name = "numpy"
    version = np.__version__
    compiler = ""

    def specs(self) -> tuple[KernelSpec, ...]:
        """Return the kernels that numpy has; see Backend."""
        found = []
        for element_type, size in _TYPES.items():
            for name, (arrays, flops, _) in _BANDWIDTH.items():
                # STREAM's count for the algorithm, whatever numpy moves on top; a store reads its line.
                found.append(
                    KernelSpec(
                        name,
                        "bandwidth",
                        element_type,
                        "plain",
                        arrays,
                        arrays * size,
                        (arrays + 1) * size,
                        flops,
                        "STREAM's kernel in numpy",
                    )
                )
            found.append(
                KernelSpec(
                    "fma", "peak", element_type, "", 0, 0, 0, 2.0 * _ORDER**3, "a matrix product in cache"
                )
            )
        return tuple(found)

    def isas(self, kernel: str, element_type: str, store: str = "") -> tuple[str, ...]:
        """Return ("numpy",) for what numpy has: which instructions it uses it doesn't tell."""
        known = {(spec.name, spec.element_type, spec.store) for spec in self.specs()}
        return ("numpy",) if (kernel, element_type, store) in known else ()

    def run(self, request: Request) -> Result:
        """Measure; see Backend."""
        for spec in self.specs():
            if (spec.name, spec.element_type, spec.store) == (
                request.kernel,
                request.element_type,
                request.store,
            ):
                break
        else:
            store = f" with {request.store} stores" if request.store else ""
            raise Unavailable(f"numpy has no kernel {request.kernel} {request.element_type}{store}")
        barrier = threading.Barrier(len(request.cpus))
        if spec.family == "peak":
            elements = 1
            workers: list[Worker] = [_Product(spec.element_type, barrier) for _ in request.cpus]
        else:
            elements = elements_per_thread(spec, request)
            workers = [_Stream(spec, elements, barrier) for _ in request.cpus]
        return measure(spec, request, "numpy", workers, elements)


class _Timed(Worker):
    """Times `_call` as the native library times a kernel."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def repeat(self, calls: int) -> Repetition:
        self._barrier.wait()
        cpu = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        wall = time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
        for _ in range(calls):
            self._call()
        wall = time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - wall
        return Repetition(wall, time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - cpu)

    def _call(self) -> None:
        raise NotImplementedError


class _Stream(_Timed):
    def __init__(self, spec: KernelSpec, elements: int, barrier: threading.Barrier) -> None:
        super().__init__(barrier)
        self._spec = spec
        self._elements = elements

    def prepare(self) -> None:
        index = np.arange(self._elements)
        kind = np.dtype(self._spec.element_type)
        self._a = (1 + index % 7).astype(kind)
        self._b = (2 + index % 5).astype(kind)
        self._dst = np.full(self._elements, -1, kind)

    def _call(self) -> None:
        _BANDWIDTH[self._spec.name][2](self._dst, self._a, self._b)

    def errors(self) -> int:
        return int(np.count_nonzero(self._dst != _EXPECTED[self._spec.name](self._a, self._b)))


class _Product(_Timed):
    def __init__(self, element_type: str, barrier: threading.Barrier) -> None:
        super().__init__(barrier)
        self._type = np.dtype(element_type)

    def prepare(self) -> None:
        self._a = np.full((_ORDER, _ORDER), 2, self._type)
        self._b = np.full((_ORDER, _ORDER), 3, self._type)
        self._dst = np.zeros((_ORDER, _ORDER), self._type)

    def _call(self) -> None:
        np.matmul(self._a, self._b, out=self._dst)

    def errors(self) -> int:
        return int(np.count_nonzero(self._dst != 6 * _ORDER))
