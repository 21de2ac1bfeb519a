"""The tables: every figure, every failure, every doubt."""

from roof_agent.records import Cluster, Device, Grade, Measurement, Outcome
from roof_agent.statistics import summarize
from roof_agent.table import columns, describe_device, render

DEVICE = Device(
    "f" * 64, "h", "aarch64", "Raspberry Pi 3 Model B", "BCM2837", memory_bytes=926 << 20,
    clusters=(Cluster("cortex-a53", (0, 1, 2, 3)),),
)  # fmt: skip


def ok(probe, subject, quantity, values, grade=Grade.CLEAN, reasons=(), **more):
    return Measurement(
        probe, subject, quantity, Outcome.OK, statistics=summarize(values), repetitions=tuple(values),
        grade=grade, grade_reasons=reasons, backend="native", isa="neon", **more,
    )  # fmt: skip


TRIAD = ok(
    "bandwidth", "triad", "bytes_per_s", [2.0e9, 2.2e9, 2.1e9], element_type="float64", threads=1,
    parameters={"store": "plain", "huge_page_bytes": "0"},
)  # fmt: skip
FMA = ok(
    "peak", "fma", "flops_per_s", [8.8e9] * 3, Grade.NOISY, ("others ran",), element_type="float32", threads=1
)


def test_whole():
    failed = Measurement("peak", "int8", "flops_per_s", Outcome.FAILED, reason="it broke")
    absent = Measurement("networks", "", "seconds", Outcome.UNAVAILABLE, reason="no onnxruntime")
    assert render(DEVICE, [TRIAD, FMA, failed, absent]) == (
        """\
Raspberry Pi 3 Model B, BCM2837, 4 x cortex-a53, 926 MiB
measured with native neon

bandwidth
                type  threads        best      median        95 % of the median  n  grade
triad plain  float64        1  2.200 GB/s  2.100 GB/s  2.000 GB/s .. 2.200 GB/s  3  clean

peak
        type  threads           best         median              95 % of the median  n  grade
fma  float32        1  8.800 GFLOP/s  8.800 GFLOP/s  8.800 GFLOP/s .. 8.800 GFLOP/s  3  noisy
int8 failed: it broke

networks
unavailable: no onnxruntime

ridge float32, 1 thread: 4.02 FLOP/B (8.800 GFLOP/s by 2.190 GB/s, 95% quantiles of what was reached)

not clean: 1 noisy of 4 (for one: others ran)
"""
    )


def test_the_ridge_is_that_of_the_highest_peak_and_the_fastest_traffic():
    slow = ok("peak", "muladd", "flops_per_s", [1e9] * 3, element_type="float32", threads=1)
    faster = ok("bandwidth", "copy", "bytes_per_s", [4.4e9] * 3, element_type="float64", threads=1)
    other = ok("bandwidth", "copy", "bytes_per_s", [9e9] * 3, element_type="float64", threads=4)
    text = render(DEVICE, [TRIAD, faster, other, FMA, slow])
    assert "ridge float32, 1 thread: 2.00 FLOP/B (8.800 GFLOP/s by 4.400 GB/s," in text
    assert text.count("ridge") == 1


def test_colours_only_where_asked():
    assert "\x1b" not in render(DEVICE, [FMA])
    assert "\x1b[2mfma" in render(DEVICE, [FMA], color=True)


def test_time_is_best_where_it_is_short():
    text = render(DEVICE, [ok("networks", "mobilenet", "seconds", [0.2, 0.1, 0.3], threads=4)])
    row = next(line for line in text.splitlines() if line.startswith("mobilenet"))
    assert row.split()[2:6] == ["100.0", "ms", "200.0", "ms"]


def point(subject, level, threads, best, grade=Grade.CLEAN, quantity="bytes_per_s", **parameters):
    parameters = {"level": level, "working_set_bytes": "1", **parameters}
    return ok(
        "ladder", subject, quantity, [best, 0.9 * best], grade, threads=threads, parameters=parameters,
        element_type="float32",
    )  # fmt: skip


def test_curves_are_shown_by_level():
    points = [
        point("read", "L1", 1, 9e9),
        point("read", "L1", 1, 10e9),
        point("read", "", 1, 7e9),
        point("read", "L2", 1, 6e9),
        point("read", "DRAM", 1, 2e9),
        point("triad", "DRAM", 4, 3e9, store="plain"),
    ]
    lines = render(DEVICE, points).splitlines()
    assert lines[3:7] == [
        "ladder",
        "best in each level     type  threads          L1          L2        DRAM",
        "read                float32        1  10.00 GB/s  6.000 GB/s  2.000 GB/s",
        "triad plain         float32        4                          3.000 GB/s",
    ]


def test_latency_is_best_where_it_is_short_and_sweeps_are_told_apart():
    points = [
        point("latency", "L1", 1, 2e-9, quantity="seconds"),
        point("latency", "L1", 1, 1e-9, quantity="seconds"),
    ]
    row = next(line for line in render(DEVICE, points).splitlines() if line.startswith("latency"))
    # The smaller of the two points' best repetitions.
    assert row.split()[-2:] == ["900.0", "ps"] or row.split()[-2:] == ["0.9000", "ns"]
    points = [point("sweep", "L1", 1, 1e9, fmas="1"), point("sweep", "L1", 1, 2e9, fmas="2")]
    assert "sweep 2 multiply-adds" in render(DEVICE, points)


def test_one_reason_is_said_once():
    absent = Measurement("peak", "dot", "flops_per_s", Outcome.UNAVAILABLE, "int8", reason="no kernel")
    assert render(DEVICE, [FMA, absent, absent]).count("dot int8 unavailable: no kernel") == 1


def test_columns_align():
    assert columns([("a", "1"), ("long", "200")]) == ["a       1", "long  200"]


def test_a_device_of_which_nothing_is_known():
    assert describe_device(Device("f" * 64, "h", "riscv64")) == ""
