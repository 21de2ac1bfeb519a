"""One contract, two back ends: what every kernel must do, native or numpy."""

import os
from collections.abc import Iterator

import pytest

from roof_agent.errors import MeasurementError, Unavailable
from roof_agent.kernels import Backend, KernelSpec, Request, load
from roof_agent.kernels.memory import PAD_FROM_BYTES, huge_page_bytes, stride_bytes
from roof_agent.kernels.native import LIBRARY, runs_here

SIZES = {"float32": 4, "float64": 8}
# Elements read and written, and operations, of an element of STREAM's kernels (McCalpin's stream.c), of
# the BLAS's axpy, and of the simplest two.
COSTS = {
    "read": (1, 0, 1),
    "fill": (0, 1, 0),
    "copy": (1, 1, 0),
    "scale": (1, 1, 1),
    "add": (2, 1, 1),
    "triad": (2, 1, 2),
    "update": (2, 1, 2),
}
native = pytest.mark.skipif(not LIBRARY.exists(), reason="the compiled kernels aren't there")


@pytest.fixture(params=[pytest.param("native", marks=native), "numpy"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    return load(request.param)


@pytest.fixture(autouse=True)
def affinity() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def short(spec: KernelSpec, cpus: tuple[int, ...] = (0,), isa: str = "") -> Request:
    return Request(
        spec.name,
        spec.element_type,
        cpus,
        spec.store,
        isa,
        working_set_bytes=3 << 20,
        repetition_seconds=0.0005,
        min_repetitions=5,
        warmup_seconds=0.0,
        budget_seconds=0.02,
    )


class TestContract:
    def test_every_kernel_gives_verified_repetitions(self, backend: Backend) -> None:
        for spec in backend.specs():
            result = backend.run(short(spec))
            assert len(result.seconds) >= 3, spec
            assert min(result.seconds) > 0, spec
            assert len(result.cpu_shares) == len(result.seconds), spec
            assert result.isa in backend.isas(spec.name, spec.element_type, spec.store)

    def test_bandwidth_and_peak_are_there_in_both_precisions(self, backend: Backend) -> None:
        found = {(spec.name, spec.element_type) for spec in backend.specs()}
        assert {(name, kind) for name in COSTS for kind in SIZES} <= found
        assert {("fma", kind) for kind in SIZES} <= found or {("muladd", kind) for kind in SIZES} <= found

    def test_costs_are_those_of_the_definitions(self, backend: Backend) -> None:
        for spec in backend.specs():
            if spec.family != "bandwidth":
                continue
            read, written, flops = COSTS[spec.name]
            size = SIZES[spec.element_type]
            assert spec.stream_bytes == (read + written) * size, spec
            # A plain store first reads the line that it will overwrite, unless it was just read.
            allocated = spec.store == "plain" and spec.name != "update"
            assert spec.bus_bytes == (read + written + allocated) * size, spec
            assert spec.arrays == read + written - (spec.name == "update")
            assert spec.flops == flops

    def test_a_sweep_reads_once_and_counts_its_multiply_adds(self, backend: Backend) -> None:
        for spec in backend.specs():
            if spec.family == "sweep":
                size = SIZES[spec.element_type]
                assert (spec.stream_bytes, spec.bus_bytes, spec.store) == (size, size, "")
                assert spec.flops == 2 * int(spec.name.removeprefix("sweep_"))

    def test_work_is_elements_by_cost(self, backend: Backend) -> None:
        (triad,) = [
            spec
            for spec in backend.specs()
            if (spec.name, spec.element_type, spec.store) == ("triad", "float64", "plain")
        ]
        work = backend.run(short(triad)).work
        elements = (3 << 20) // 24 - (3 << 20) // 24 % 128
        calls = work.stream_bytes / (24 * elements)
        assert calls == int(calls) >= 1
        assert work.flops == 2 * elements * calls
        assert work.working_set_bytes == 24 * elements

    def test_two_threads_do_twice_the_work_of_a_peak(self, backend: Backend) -> None:
        if len(os.sched_getaffinity(0)) < 2:
            pytest.skip("one CPU")
        spec = next(spec for spec in backend.specs() if spec.family == "peak")
        cpus = tuple(sorted(os.sched_getaffinity(0))[:2])
        per_call = spec.flops * (10_000 if backend.name == "native" else 1)
        calls = backend.run(short(spec, cpus)).work.flops / (2 * per_call)
        assert calls == int(calls) >= 1

    def test_what_is_not_there_is_unavailable(self, backend: Backend) -> None:
        with pytest.raises(Unavailable, match="no kernel"):
            backend.run(Request("gather", "float32", (0,)))
        assert backend.isas("gather", "float32") == ()

    def test_a_working_set_too_small_is_refused(self, backend: Backend) -> None:
        with pytest.raises(MeasurementError, match="too small"):
            backend.run(Request("copy", "float32", (0,), "plain", working_set_bytes=64))

    def test_a_cpu_that_is_not_there_is_a_failure_not_a_hang(self, backend: Backend) -> None:
        with pytest.raises(MeasurementError, match="cpu 4095"):
            backend.run(Request("copy", "float32", (0, 4095), "plain", working_set_bytes=1 << 20))


@native
def test_every_instruction_set_of_this_processor_gives_right_results() -> None:
    backend = load("native")
    for spec in backend.specs():
        for isa in backend.isas(spec.name, spec.element_type, spec.store):
            assert backend.run(short(spec, isa=isa)).isa == isa


@native
def test_the_clock_is_one_addition_a_cycle() -> None:
    result = load("native").run(Request("clock", "", (0,), repetition_seconds=0.002, warmup_seconds=0.0))
    assert 1e8 < result.steps / min(result.seconds) < 8e9


@native
def test_loads_that_wait_take_longer_beyond_the_caches() -> None:
    backend = load("native")

    def seconds(working_set_bytes: int) -> float:
        request = Request(
            "latency",
            "",
            (0,),
            working_set_bytes=working_set_bytes,
            min_repetitions=3,
            warmup_seconds=0.0,
            budget_seconds=0.1,
        )
        result = backend.run(request)
        return min(result.seconds) / result.steps

    assert 2 * seconds(8 << 10) < seconds(64 << 20)


@pytest.mark.parametrize(
    ("machine", "hwcap", "expected"),
    [
        ("armv7l", 1 << 12 | 1 << 16, True),
        ("armv7l", 1 << 12, False),
        ("armv6l", 0, False),
        ("aarch64", 0, True),
        ("x86_64", 0, True),
    ],
)
def test_the_library_is_not_opened_where_it_would_trap(machine: str, hwcap: int, *, expected: bool) -> None:
    assert runs_here(machine, lambda: hwcap) is expected


@native
def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from roof_agent.kernels import native as module

    monkeypatch.setattr(module._NativeWorker, "errors", lambda self: 7)
    backend = load("native")
    with pytest.raises(MeasurementError, match="7 of"):
        backend.run(short(backend.specs()[0]))


@native
def test_verification_sees_one_wrong_element() -> None:
    import ctypes

    backend = load("native")
    spec = next(spec for spec in backend.specs() if (spec.name, spec.store) == ("triad", "plain"))
    from roof_agent.kernels import native as module

    assert isinstance(backend, module.Native)
    kernel = backend._find(short(spec))
    barrier = ctypes.create_string_buffer(256)
    backend._library.roof_barrier_init(barrier, 1)
    worker = module._NativeWorker(backend._library, kernel, spec, 1024, barrier)
    worker.prepare()
    assert worker.errors() == 1024
    worker.repeat(1)
    assert worker.errors() == 0
    ctypes.c_float.from_address(worker._args.dst + 4 * 1023).value += 1
    assert worker.errors() == 1


@native
@pytest.mark.parametrize(
    "name", ["read", "sweep_1", "sweep_2", "fma", "muladd", "latency", "clock", "update"]
)
def test_verification_sees_a_kernel_that_did_nothing(name: str) -> None:
    import ctypes

    from roof_agent.kernels import native as module

    backend = load("native")
    assert isinstance(backend, module.Native)
    spec = next(spec for spec in backend.specs() if spec.name == name)
    kernel = backend._find(short(spec))
    barrier = ctypes.create_string_buffer(256)
    backend._library.roof_barrier_init(barrier, 1)
    # Not a multiple of 7, the operand's period, or its sum is 0.
    worker = module._NativeWorker(backend._library, kernel, spec, 1024, barrier)
    worker.prepare()
    worker.repeat(3)
    assert worker.errors() == 0
    if name in ("read", "sweep_1", "sweep_2"):
        worker._args.sum += 1
    elif name == "update":
        worker._args.done += 1
    else:
        worker._args.errors += 1
    assert worker.errors() > 0


def test_large_arrays_lie_an_odd_number_of_lines_off_the_page() -> None:
    assert stride_bytes(8192) == 8192
    lines = stride_bytes(PAD_FROM_BYTES) % 4096 / 64
    assert lines % 2 == 1
    assert stride_bytes(PAD_FROM_BYTES + 8) > stride_bytes(PAD_FROM_BYTES)


def test_an_unknown_back_end_is_said() -> None:
    with pytest.raises(Unavailable, match="native and numpy"):
        load("fortran")


def test_granted_huge_pages_are_read_of_the_right_mapping() -> None:
    text = (
        "7f0000000000-7f0000400000 rw-p 00000000 00:00 0\nAnonHugePages:      2048 kB\n"
        "7f0000400000-7f0000800000 rw-p 00000000 00:00 0\nAnonHugePages:      4096 kB\n"
    )
    assert huge_page_bytes(0x7F0000400000, lambda: text) == 4096 * 1024
    assert huge_page_bytes(0x7F0000800000, lambda: text) == 0
