"""One contract, two back ends: what every kernel must do, native or numpy."""

import os
from collections.abc import Iterator

import pytest

from roof_agent.errors import MeasurementError, Unavailable
from roof_agent.kernels import Backend, KernelSpec, Request, load
from roof_agent.kernels.native import LIBRARY, huge_page_bytes

SIZES = {"float32": 4, "float64": 8}
# Arrays, and operations an element, of STREAM's kernels (McCalpin's stream.c).
STREAM = {"copy": (2, 0), "scale": (2, 1), "add": (3, 1), "triad": (3, 2)}
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

    def test_stream_and_peak_are_there_in_both_precisions(self, backend: Backend) -> None:
        found = {(spec.name, spec.element_type) for spec in backend.specs()}
        assert {(name, kind) for name in STREAM for kind in SIZES} <= found
        assert {("fma", kind) for kind in SIZES} <= found or {("muladd", kind) for kind in SIZES} <= found

    def test_costs_are_streams(self, backend: Backend) -> None:
        for spec in backend.specs():
            if spec.family != "bandwidth":
                continue
            arrays, flops = STREAM[spec.name]
            size = SIZES[spec.element_type]
            assert spec.stream_bytes == arrays * size
            # A plain store first reads the line that it will overwrite.
            assert spec.bus_bytes == (arrays + (spec.store == "plain")) * size
            assert (spec.arrays, spec.flops) == (arrays, flops)

    def test_work_is_elements_by_cost(self, backend: Backend) -> None:
        (triad,) = [
            spec
            for spec in backend.specs()
            if (spec.name, spec.element_type, spec.store) == ("triad", "float64", "plain")
        ]
        work = backend.run(short(triad)).work
        elements = (3 << 20) // 24 - (3 << 20) // 24 % 256
        calls = work.stream_bytes / (24 * elements)
        assert calls == int(calls) >= 1
        assert work.flops == 2 * elements * calls

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
