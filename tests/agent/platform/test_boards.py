"""Discovery of each recorded board, asserted exactly: what is there, and what is absent."""

import os
import shutil
from pathlib import Path

import pytest

from roof_agent.platform import conditions
from roof_agent.platform.discovery import available_bytes, discover, fingerprint
from roof_agent.records import Cache, Cluster, Conditions, Device

BOARDS = Path(__file__).parents[2] / "data" / "boards"
KIB = 1 << 10
FOUR = ((0,), (1,), (2,), (3,))


def each(level, kind, kib, cpus=FOUR, provenance="sysfs", line=64):
    return tuple(Cache(level, kind, kib * KIB, line, own, provenance) for own in cpus)


def shared(level, kib, cpus=(0, 1, 2, 3), provenance="sysfs"):
    return (Cache(level, "unified", kib * KIB, 64, cpus, provenance),)


def device(architecture, **facts):
    return Device(
        hostname="board",
        architecture=architecture,
        kernel="6.6.31",
        page_bytes=4096,
        virtualization=facts.pop("virtualization", "none"),
        container="none",
        **facts,
    )


def pi3(fingerprint="63ea688507b4a627577ce833f6795b59e549c1877809a3a22bb490e6bc1df14f", **facts):
    provenance = facts.pop("provenance", "sysfs")
    common = {
        "fingerprint": fingerprint,
        "model": "Raspberry Pi 3 Model B Rev 1.2",
        "soc": "BCM2837",
        "clusters": (Cluster("cortex-a53", (0, 1, 2, 3), 1.2e9),),
        "caches": each(1, "data", 32, provenance=provenance)
        + each(1, "instruction", 32, provenance=provenance)
        + shared(2, 512, provenance=provenance),
        "isa_features": ("asimd",),
        "memory_bytes": 926_000 * KIB,
    }
    return device(facts.pop("architecture", "aarch64"), **{**common, **facts})


EXPECTED = {
    "pi3": pi3(),
    "pi3-nocache": pi3(provenance="core-table"),
    "pi3-armv7": pi3(
        architecture="armv7l",
        provenance="core-table",
        isa_features=("neon", "vfpv3", "vfpv4"),
        memory_bytes=945_000 * KIB,
    ),
    "pi4": device(
        "aarch64",
        fingerprint="006d0989d1efb789f0bfc3e1a827b044b57e115bb85cb07a48274c3bc8e8fbbc",
        model="Raspberry Pi 4 Model B Rev 1.4",
        soc="BCM2711",
        memory_bytes=3_885_000 * KIB,
        clusters=(Cluster("cortex-a72", (0, 1, 2, 3), 1.8e9),),
        caches=each(1, "data", 32) + each(1, "instruction", 48) + shared(2, 1024),
        isa_features=("asimd",),
    ),
    "pi5": device(
        "aarch64",
        fingerprint="76eb09b5f27eaa102a8aa1cf03ddf1ebedaa0115d4c3ae85432c04eb9fed7a8c",
        model="Raspberry Pi 5 Model B Rev 1.0",
        soc="BCM2712",
        memory_bytes=8_256_000 * KIB,
        clusters=(Cluster("cortex-a76", (0, 1, 2, 3), 2.4e9),),
        caches=each(1, "data", 64) + each(1, "instruction", 64) + each(2, "unified", 512) + shared(3, 2048),
        isa_features=("asimd", "asimddp", "asimdhp", "fphp"),
    ),
    "jetson-nano": device(
        "aarch64",
        fingerprint="a1852923223cddcfc8849ee83880045115960c1d3f1696964390f0a2e5d45192",
        model="NVIDIA Jetson Nano Developer Kit",
        soc="Tegra X1",
        memory_bytes=4_059_000 * KIB,
        clusters=(Cluster("cortex-a57", (0, 1, 2, 3), 1.479e9),),
        caches=each(1, "data", 32) + each(1, "instruction", 48) + shared(2, 2048),
        isa_features=("asimd",),
    ),
    "x86-vm": device(
        "x86_64",
        fingerprint="d029f87e3d80f8fd9b1be67c7426b4cc1ff47b4a9d0a8461c826a59d8c5eb6cd",
        model="Example",
        memory_bytes=24_684_092 * KIB,
        clusters=(Cluster("AMD EPYC", (0, 1), None),),
        caches=each(1, "data", 32, ((0,), (1,)))
        + each(1, "instruction", 32, ((0,), (1,)))
        + each(2, "unified", 512, ((0,), (1,)))
        + shared(3, 32768, (0, 1)),
        isa_features=("avx", "avx2", "f16c", "fma", "sse2"),
        virtualization="virtual machine",
    ),
}


def four(hz):
    return dict.fromkeys(range(4), hz)


STATES = {
    "pi3": Conditions(
        7, four(1.2e9), "ondemand", {"cpu-thermal": 48.312}, 0, memory_available_bytes=700_000 * KIB
    ),
    # Under-voltage and throttled now, and both since boot.
    "pi3-nocache": Conditions(
        7, four(0.6e9), "ondemand", {"cpu-thermal": 80.606}, 0x50005, memory_available_bytes=500_000 * KIB
    ),
    "pi3-armv7": Conditions(
        7, four(1.2e9), "ondemand", {"cpu-thermal": 47.24}, 0, memory_available_bytes=750_000 * KIB
    ),
    "pi4": Conditions(
        7, four(1.8e9), "ondemand", {"cpu-thermal": 51.121}, 0, memory_available_bytes=3_300_000 * KIB
    ),
    # No file of throttling: the supply's sensor alone doesn't say that there is none.
    "pi5": Conditions(
        7, four(2.4e9), "ondemand", {"cpu-thermal": 55.25}, None, memory_available_bytes=7_600_000 * KIB
    ),
    # Without PMIC-Die, which reads 100.0 for ever.
    "jetson-nano": Conditions(
        7,
        four(1.479e9),
        "schedutil",
        {
            "AO-therm": 41.5,
            "CPU-therm": 34.0,
            "GPU-therm": 31.0,
            "PLL-therm": 31.5,
            "thermal-fan-est": 33.0,
        },
        memory_available_bytes=3_100_000 * KIB,
    ),
    "x86-vm": Conditions(7, memory_available_bytes=23_000_000 * KIB),
}


def uname(architecture):
    return os.uname_result(("Linux", "board", "6.6.31", "#1", architecture))


def test_every_board_is_expected():
    assert {path.name for path in BOARDS.iterdir()} == set(EXPECTED) == set(STATES)


@pytest.mark.parametrize("board", EXPECTED)
def test_device(board):
    expected = EXPECTED[board]
    assert discover(BOARDS / board, uname(expected.architecture), 4096) == expected


@pytest.mark.parametrize("board", STATES)
def test_state(board):
    found = conditions.sample(BOARDS / board, lambda: 7, lambda: None)
    assert found == STATES[board]
    assert available_bytes(BOARDS / board) == STATES[board].memory_available_bytes


def test_nothing_at_all(tmp_path):
    """A root without a single file gives a device that claims nothing."""
    found = discover(tmp_path, uname("riscv64"), 4096)
    assert found == Device(
        fingerprint=found.fingerprint,
        hostname="board",
        architecture="riscv64",
        kernel="6.6.31",
        page_bytes=4096,
        container="none",
    )
    assert conditions.sample(tmp_path, lambda: 7, lambda: None) == Conditions(7)
    assert available_bytes(tmp_path) is None


@pytest.mark.parametrize("pattern", ["proc/meminfo", "proc/cpuinfo", "sys/class/thermal", "proc/device-tree"])
def test_one_file_missing(pattern, tmp_path):
    """Whatever is missing, the rest is still found."""
    root = tmp_path / "root"
    shutil.copytree(BOARDS / "pi3", root)
    gone = root / pattern
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    found, state = discover(root, uname("aarch64"), 4096), conditions.sample(root, lambda: 7, lambda: None)
    expected = {
        "proc/meminfo": {"memory_bytes": 0},
        # Without it the cores are nameless; their caches and clocks are still there.
        "proc/cpuinfo": {
            "clusters": (Cluster("", (0, 1, 2, 3), 1.2e9),),
            "isa_features": (),
            "virtualization": "",
        },
        "sys/class/thermal": {},
        "proc/device-tree": {"soc": "BCM2837"},
    }[pattern]
    assert found == pi3(**expected)
    # The sensor of hwmon stands in for the zone that some kernels lack.
    zone = "cpu_thermal" if pattern == "sys/class/thermal" else "cpu-thermal"
    assert state.temperature_celsius == {zone: 48.312}


def identity(root, machine="", serial=""):
    if machine:
        (root / "etc").mkdir(parents=True)
        (root / "etc/machine-id").write_text(machine + "\n")
    if serial:
        (root / "proc/device-tree").mkdir(parents=True)
        (root / "proc/device-tree/serial-number").write_bytes(serial.encode() + b"\0")
    return fingerprint(root)


def test_fingerprint_tells_boards_with_one_image_apart(tmp_path):
    one = identity(tmp_path / "a", "c0ffee", "10000000abcdef01")
    same = identity(tmp_path / "b", "c0ffee", "10000000abcdef01")
    other_board = identity(tmp_path / "c", "c0ffee", "10000000abcdef02")
    other_card = identity(tmp_path / "d", "decaf", "10000000abcdef01")
    assert one == same
    assert len({one, other_board, other_card}) == 3
    assert len(one) == 64


def test_fingerprint_of_a_zero_serial_rests_on_the_installation(tmp_path):
    assert identity(tmp_path / "a", "c0ffee", "0000000000000000") == identity(tmp_path / "b", "c0ffee")
