"""The compiled kernels, loaded through ctypes: one library for every Python, no GIL while it runs."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from roof_agent import __version__
from roof_agent.errors import Unavailable
from roof_agent.kernels import Backend, KernelSpec, Request, Result
from roof_agent.kernels.harness import Repetition, Worker, measure
from roof_agent.kernels.memory import (
    HUGE_BYTES,
    LINE_BYTES,
    element_bytes,
    elements_per_thread,
    huge_page_bytes,
    stride_bytes,
)

LIBRARY = Path(__file__).with_name("_roofkernels.so")

_HWCAP = 16
_HWCAP_NEON_VFPV4 = 1 << 12 | 1 << 16

_HELP = {
    "read": "sum of a, in 8 chains",
    "fill": "dst = s",
    "copy": "dst = a",
    "scale": "dst = s * a",
    "add": "dst = a + b",
    "triad": "dst = a + s * b",
    "update": "dst = dst + s * a",
    "fma": "multiply-adds on registers alone",
    "muladd": "multiplications and additions on registers alone, without a multiply-add instruction",
    "dot": "products of four bytes added to a 32-bit number, on registers alone",
    "clock": "additions that wait for one another, one a cycle",
    "latency": "loads that wait for one another, along a random ring of lines",
}


class _Args(ctypes.Structure):
    _fields_ = (
        ("dst", ctypes.c_void_p),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("n", ctypes.c_size_t),
        ("passes", ctypes.c_size_t),
        ("done", ctypes.c_size_t),
        ("sum", ctypes.c_double),
        ("errors", ctypes.c_size_t),
    )


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("family", ctypes.c_char_p),
        ("element_type", ctypes.c_char_p),
        ("store", ctypes.c_char_p),
        ("isa", ctypes.c_char_p),
        ("arrays", ctypes.c_int),
        ("stream_bytes", ctypes.c_double),
        ("bus_bytes", ctypes.c_double),
        ("flops", ctypes.c_double),
        ("steps", ctypes.c_double),
        ("run", ctypes.c_void_p),
    )


_KernelPointer = ctypes.POINTER(_Kernel)


class Native(Backend):
    """Kernels of the compiled library. Raises Unavailable where there's no library that loads."""

    name = "native"
    version = __version__

    def __init__(self, library: Path = LIBRARY) -> None:
        if not library.exists():
            raise Unavailable("the package was installed without its compiled kernels")
        if not runs_here(os.uname().machine):
            raise Unavailable("the compiled kernels need NEON and VFPv4, which this processor lacks")
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise Unavailable(f"the compiled kernels don't load: {error}") from error
        lib = self._library
        lib.roof_get.restype = _KernelPointer
        lib.roof_get.argtypes = (ctypes.c_size_t,)
        lib.roof_supported.argtypes = lib.roof_probe.argtypes = (_KernelPointer,)
        lib.roof_compiler.restype = ctypes.c_char_p
        lib.roof_barrier_size.restype = lib.roof_errors.restype = ctypes.c_size_t
        lib.roof_barrier_init.argtypes = (ctypes.c_void_p, ctypes.c_uint)
        lib.roof_prepare.argtypes = (_KernelPointer, ctypes.POINTER(_Args))
        lib.roof_errors.argtypes = (_KernelPointer, ctypes.POINTER(_Args))
        lib.roof_repeat.argtypes = (
            _KernelPointer,
            ctypes.POINTER(_Args),
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_double),
        )
        self.compiler = lib.roof_compiler().decode()

    @cached_property
    def _kernels(self) -> list[ctypes._Pointer[_Kernel]]:
        """Kernels whose instruction set the processor has, the widest first."""
        found = []
        index = 0
        while kernel := self._library.roof_get(index):
            index += 1
            if self._library.roof_supported(kernel):
                found.append(kernel)
        return found

    def specs(self) -> tuple[KernelSpec, ...]:
        """Return the kernels of the preferred instruction set of each; see Backend."""
        chosen: dict[tuple[str, str, str], KernelSpec] = {}
        for kernel in self._kernels:
            spec = _spec(kernel.contents)
            chosen.setdefault((spec.name, spec.element_type, spec.store), spec)
        return tuple(chosen.values())

    def isas(self, kernel: str, element_type: str, store: str = "") -> tuple[str, ...]:
        """Return the instruction sets of a kernel; see Backend."""
        wanted = (kernel, element_type, store)
        specs = ((_spec(found.contents), found.contents.isa.decode()) for found in self._kernels)
        return tuple(isa for spec, isa in specs if (spec.name, spec.element_type, spec.store) == wanted)

    def run(self, request: Request) -> Result:
        """Measure; see Backend."""
        kernel = self._find(request)
        spec, isa = _spec(kernel.contents), kernel.contents.isa.decode()
        signal = self._library.roof_probe(kernel)
        if signal:
            raise Unavailable(
                f"{spec.name} {spec.element_type} ({isa}) ends with signal {signal} on this processor"
            )
        threads = len(request.cpus)
        elements = elements_per_thread(spec, request)
        barrier = ctypes.create_string_buffer(self._library.roof_barrier_size() + LINE_BYTES)
        self._library.roof_barrier_init(barrier, threads)
        workers = [_NativeWorker(self._library, kernel, spec, elements, barrier) for _ in range(threads)]
        return measure(spec, request, isa, workers, elements)

    def _find(self, request: Request) -> ctypes._Pointer[_Kernel]:
        for kernel in self._kernels:
            spec, isa = _spec(kernel.contents), kernel.contents.isa.decode()
            if (spec.name, spec.element_type, spec.store) == (
                request.kernel,
                request.element_type,
                request.store,
            ) and request.isa in ("", isa):
                return kernel
        store = f" with {request.store} stores" if request.store else ""
        isa = f" in {request.isa}" if request.isa else ""
        raise Unavailable(f"no kernel {request.kernel} {request.element_type}{store}{isa} on this processor")


class _NativeWorker(Worker):
    def __init__(
        self,
        library: ctypes.CDLL,
        kernel: ctypes._Pointer[_Kernel],
        spec: KernelSpec,
        elements: int,
        barrier: ctypes.Array[ctypes.c_char],
    ) -> None:
        self._library = library
        self._kernel = kernel
        self._spec = spec
        self._barrier = barrier
        self._args = _Args(n=elements)
        self._map: mmap.mmap | None = None
        self._times = (ctypes.c_double * 2)()

    def prepare(self) -> None:
        if not self._spec.arrays:
            return
        stride = stride_bytes(self._args.n * element_bytes(self._spec))
        total = self._spec.arrays * stride + HUGE_BYTES
        try:
            self._map = mmap.mmap(-1, total, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"{total} bytes of memory can't be had: {error}") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        begin += -begin % HUGE_BYTES
        places = iter(range(begin, begin + self._spec.arrays * stride, stride))
        if self._spec.store or self._spec.family == "latency":
            self._args.dst = next(places)
        self._args.a, self._args.b = next(places, None), next(places, None)
        self._library.roof_prepare(self._kernel, self._args)

    def repeat(self, calls: int) -> Repetition:
        self._library.roof_repeat(self._kernel, self._args, calls, self._barrier, self._times)
        return Repetition(self._times[0], self._times[1])

    def errors(self) -> int:
        return int(self._library.roof_errors(self._kernel, self._args))

    def huge_page_bytes(self) -> int:
        data = self._args.dst or self._args.a
        return huge_page_bytes(data) if data else 0


def runs_here(machine: str, hwcap: Callable[[], int] | None = None) -> bool:
    """Return whether the library's own code runs on this processor: on 32-bit ARM all of it needs NEON."""
    if not machine.startswith("arm"):
        return True
    bits = hwcap() if hwcap else int(ctypes.CDLL(None).getauxval(_HWCAP))
    return bits & _HWCAP_NEON_VFPV4 == _HWCAP_NEON_VFPV4


def _spec(kernel: _Kernel) -> KernelSpec:
    name = kernel.name.decode()
    return KernelSpec(
        name=name,
        family=kernel.family.decode(),
        element_type=kernel.element_type.decode(),
        store=kernel.store.decode(),
        arrays=kernel.arrays,
        stream_bytes=kernel.stream_bytes,
        bus_bytes=kernel.bus_bytes,
        flops=kernel.flops,
        steps=kernel.steps,
        help=_help(name),
    )


def _help(name: str) -> str:
    if name.startswith("sweep_"):
        return f"{name.removeprefix('sweep_')} multiply-adds with each element read"
    return _HELP[name]
