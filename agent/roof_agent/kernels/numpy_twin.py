"""The kernels in numpy, for machines without a compiler.

numpy reaches 70 to 90 % of what the compiled kernels do, so its figures carry its name and are
never shown as the board's own. It has no non-temporal stores; its peak is a matrix product in
cache, the closest thing to multiply-adds on registers that it has. The intensity sweep, the walk
along dependent loads and the clock have no spelling in numpy that would measure the board.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roof_agent.errors import Unavailable
from roof_agent.kernels import Backend, KernelSpec, Request, Result
from roof_agent.kernels.harness import Repetition, Worker, measure
from roof_agent.kernels.memory import elements_per_thread

Array = NDArray[np.floating]

_SCALAR = 3
_UNTOUCHED = -1
# Three matrices of this order stay in a 512 KiB cache in double precision.
_ORDER = 128
_TYPES = {"float32": 4, "float64": 8}


class _Data:
    """One thread's arrays, and what the update needs besides: its product has to be kept somewhere."""

    def __init__(self, elements: int, kind: np.dtype[np.floating]) -> None:
        index = np.arange(elements)
        self.a: Array = (index % 7 - 3).astype(kind)
        self.b: Array = (index % 5 + 2).astype(kind)
        self.dst: Array = np.full(elements, _UNTOUCHED, kind)
        self.spare: Array = np.zeros(elements, kind)
        self.passes = 0
        self.sum = 0.0

    def triad(self) -> None:
        # numpy has no fused form: the product is written, read and written again.
        np.add(np.multiply(self.b, _SCALAR, out=self.dst), self.a, out=self.dst)

    def update(self) -> None:
        # Added and taken away in turn, so that the result has a closed form.
        change = np.subtract if self.passes % 2 else np.add
        change(self.dst, np.multiply(self.a, _SCALAR, out=self.spare), out=self.dst)

    def read(self) -> None:
        self.sum = float(np.add.reduce(self.a))


@dataclass(frozen=True)
class _Kernel:
    """A kernel's cost in elements (STREAM's count; a store reads its line first) and its two forms."""

    arrays: int
    stream: int
    bus: int
    flops: int
    run: Callable[[_Data], object]
    expected: Callable[[_Data], Array | float]


_BANDWIDTH = {
    "read": _Kernel(1, 1, 1, 1, _Data.read, lambda d: float(d.a.sum(dtype=np.float64))),
    "fill": _Kernel(1, 1, 2, 0, lambda d: d.dst.fill(_SCALAR), lambda d: float(_SCALAR)),
    "copy": _Kernel(2, 2, 3, 0, lambda d: np.copyto(d.dst, d.a), lambda d: d.a),
    "scale": _Kernel(2, 2, 3, 1, lambda d: np.multiply(d.a, _SCALAR, out=d.dst), lambda d: _SCALAR * d.a),
    "add": _Kernel(3, 3, 4, 1, lambda d: np.add(d.a, d.b, out=d.dst), lambda d: d.a + d.b),
    "triad": _Kernel(3, 3, 4, 2, _Data.triad, lambda d: d.a + _SCALAR * d.b),
    "update": _Kernel(2, 3, 3, 2, _Data.update, lambda d: _UNTOUCHED + d.passes % 2 * _SCALAR * d.a),
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
            for name, kernel in _BANDWIDTH.items():
                found.append(
                    KernelSpec(
                        name,
                        "bandwidth",
                        element_type,
                        "" if name == "read" else "plain",
                        kernel.arrays,
                        kernel.stream * size,
                        kernel.bus * size,
                        kernel.flops,
                        "the kernel of the same name in numpy",
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
        self._data = _Data(self._elements, np.dtype(self._spec.element_type))
        self._kernel = _BANDWIDTH[self._spec.name]

    def _call(self) -> None:
        self._kernel.run(self._data)
        self._data.passes += 1

    def errors(self) -> int:
        data = self._data
        result = data.dst if self._spec.store else data.sum
        return int(np.count_nonzero(result != self._kernel.expected(data)))


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
