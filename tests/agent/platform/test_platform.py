"""Parsers against small trees made here: caches, control groups, throttling, ticks, cores."""

import pytest

from roof_agent.platform import cgroup, conditions, cpu, throttle
from roof_agent.platform.caches import caches, last_level_bytes
from roof_agent.platform.files import cpu_list, integer, text
from roof_agent.records import Cache, Cluster, Conditions


def tree(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


@pytest.mark.parametrize(
    ("content", "cpus"),
    [
        ("0-3\n", (0, 1, 2, 3)),
        ("0,2-3,7", (0, 2, 3, 7)),
        ("", ()),
        ("\n", ()),
        ("a-b", ()),
        ("3", (3,)),
        (None, ()),
    ],
)
def test_cpu_list(content, cpus):
    assert cpu_list(content) == cpus


def test_files_without_newline_with_nul_or_unreadable(tmp_path):
    tree(tmp_path, {"nul": b"Raspberry Pi 3\0", "bad": b"\xff\n", "word": "many\n", "hex": "50005\n"})
    assert text(tmp_path / "nul") == "Raspberry Pi 3"
    assert text(tmp_path / "bad") == "\ufffd"
    assert text(tmp_path / "none") is None
    assert integer(tmp_path / "word") is None
    assert integer(tmp_path / "hex", 16) == 0x50005


def test_caches_of_the_device_tree(tmp_path):
    base = "proc/device-tree/cpus"
    files = {f"{base}/l2-cache0/cache-size": (1 << 20).to_bytes(4, "big")}
    for number in range(2):
        files[f"{base}/cpu@{number}/d-cache-size"] = (32 << 10).to_bytes(4, "big")
        files[f"{base}/cpu@{number}/d-cache-line-size"] = (64).to_bytes(4, "big")
    tree(tmp_path, files)
    assert caches(tmp_path, (Cluster("whatever", (0, 1)),)) == (
        Cache(1, "data", 32 << 10, 64, (0,), "device-tree"),
        Cache(1, "data", 32 << 10, 64, (1,), "device-tree"),
        Cache(2, "unified", 1 << 20, None, (0, 1), "device-tree"),
    )


def test_caches_by_core_differ_by_cluster(tmp_path):
    found = caches(tmp_path, (Cluster("cortex-a53", (0, 1)), Cluster("cortex-a76", (2,))))
    assert {cache.provenance for cache in found} == {"core-table"}
    assert [(cache.level, cache.size_bytes >> 10, cache.shared_cpus) for cache in found] == [
        (1, 32, (0,)),
        (1, 32, (1,)),
        (1, 64, (2,)),
        (1, 32, (0,)),
        (1, 32, (1,)),
        (1, 64, (2,)),
        (2, 512, (0, 1)),
        (2, 512, (2,)),
        (3, 2048, (2,)),
    ]
    assert last_level_bytes(found) == 2048 << 10
    assert last_level_bytes(()) is None
    assert last_level_bytes((Cache(1, "instruction", 1 << 20),)) is None


def test_cgroup_2_takes_the_tightest_limit_up_to_the_root(tmp_path):
    group = "sys/fs/cgroup/outer/inner"
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            f"{group}/cpu.max": "max 100000\n",
            f"{group}/memory.max": "536870912\n",
            f"{group}/cpu.stat": "usage_usec 5\nthrottled_usec 1234\n",
            "sys/fs/cgroup/outer/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/outer/memory.max": "268435456\n",
        },
    )
    assert cgroup.cpus(tmp_path) == 0.5
    assert cgroup.memory_limit_bytes(tmp_path) == 256 << 20
    assert cgroup.throttled_us(tmp_path) == 1234


def test_cgroup_of_a_container_is_its_root(tmp_path):
    tree(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"})
    assert cgroup.cpus(tmp_path) == 1.5


def test_cgroup_1_and_the_path_of_its_own_group(tmp_path):
    group = "sys/fs/cgroup/cpu,cpuacct/outer/inner"
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/outer/inner\n3:memory:/gone/elsewhere\n0::/\n",
            f"{group}/cpu.cfs_quota_us": "-1\n",
            f"{group}/cpu.cfs_period_us": "100000\n",
            f"{group}/cpu.stat": "nr_periods 4\nthrottled_time 2500000\n",
            "sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_period_us": "100000\n",
            # In a container: the path is the host's, the mount its own group.
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
        },
    )
    assert cgroup.cpus(tmp_path) == 0.5
    assert cgroup.memory_limit_bytes(tmp_path) == 256 << 20
    assert cgroup.throttled_us(tmp_path) == 2500


def test_cgroup_1_without_limits(tmp_path):
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu:/\n3:memory:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cgroup.cpus(tmp_path) is None
    assert cgroup.memory_limit_bytes(tmp_path) is None


FIRMWARE = "sys/devices/platform/soc/soc:firmware/get_throttled"


@pytest.mark.parametrize(
    ("files", "tool", "bits"),
    [
        ({}, None, None),
        ({FIRMWARE: "50005\n"}, None, 0x50005),
        ({"sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled": "4\n"}, None, 4),
        ({}, "throttled=0x50000\n", 0x50000),
        ({}, "error\n", None),
        # The file has wrongly read 0; the tool is asked again.
        ({FIRMWARE: "0\n"}, "throttled=0x1\n", 1),
        ({FIRMWARE: "0\n"}, None, 0),
        ({"sys/class/hwmon/hwmon1/name": "rpi_volt", "sys/class/hwmon/hwmon1/in0_lcrit_alarm": "1"}, None, 1),
        (
            {"sys/class/hwmon/hwmon1/name": "rpi_volt", "sys/class/hwmon/hwmon1/in0_lcrit_alarm": "0"},
            None,
            None,
        ),
        ({"sys/class/hwmon/hwmon1/name": "other", "sys/class/hwmon/hwmon1/in0_lcrit_alarm": "1"}, None, None),
    ],
)
def test_throttling(tmp_path, files, tool, bits):
    assert throttle.bits(tree(tmp_path, files), lambda: tool) == bits


def test_ticks_load_and_pressure(tmp_path):
    tree(
        tmp_path,
        {
            "proc/stat": "cpu  100 1 50 1000 7 3 2 40 0 0\ncpu0 1 1 1 1 1 1 1 1\n",
            "proc/loadavg": "0.52 0.58 0.59 1/257 4711\n",
            "proc/pressure/cpu": "some avg10=1.50 avg60=0.00 avg300=0.00 total=5\n",
            "proc/pressure/memory": "some avg10=0.25 avg60=0.00\nfull avg10=9.00 avg60=0.00\n",
        },
    )
    found = conditions.sample(tmp_path, lambda: 1, lambda: None)
    assert (found.steal_ticks, found.busy_ticks, found.total_ticks) == (40, 156, 1203)
    assert found.load_1m == 0.52
    assert found.pressure_cpu_some_avg10 == 1.5
    assert found.pressure_memory_some_avg10 == 0.25


def test_what_others_used(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_CLK_TCK": 100}[name])
    before, after = Conditions(0, busy_ticks=1000), Conditions(2_000_000_000, busy_ticks=1300)
    assert conditions.other_cpus(before, after, own_cpu_seconds=2.0) == pytest.approx(0.5)
    assert conditions.other_cpus(before, after, own_cpu_seconds=3.5) == 0.0
    assert conditions.other_cpus(Conditions(0), after, 1.0) is None


BIG, LITTLE = "CPU implementer\t: 0x41\nCPU part\t: 0xd08\n", "CPU implementer\t: 0x41\nCPU part\t: 0xd03\n"


def test_mixed_cores_are_clusters(tmp_path):
    blocks = "\n\n".join(
        f"processor\t: {number}\nFeatures\t: asimd {'fphp' if kind is BIG else ''}\n{kind}".rstrip()
        for number, kind in enumerate([LITTLE] * 4 + [BIG] * 2)
    )
    files = {"proc/cpuinfo": blocks + "\n", "sys/devices/system/cpu/online": "0-5\n"}
    for number in range(6):
        top = "1416000" if number < 4 else "1800000"
        files[f"sys/devices/system/cpu/cpu{number}/cpufreq/cpuinfo_max_freq"] = top
    tree(tmp_path, files)
    assert cpu.clusters(tmp_path) == (
        Cluster("cortex-a53", (0, 1, 2, 3), 1.416e9),
        Cluster("cortex-a72", (4, 5), 1.8e9),
    )
    # A kernel may run on any core: only what all have counts.
    assert cpu.features(tmp_path) == ("asimd",)
    (tmp_path / "proc/cpuinfo").write_text("\n\n".join(reversed(blocks.split("\n\n"))))
    assert cpu.features(tmp_path) == ("asimd",)


def test_x86_cores_that_turbo_differently_are_one_cluster(tmp_path):
    blocks = "\n\n".join(f"processor\t: {number}\nmodel name\t: Ryzen" for number in range(2))
    files = {"proc/cpuinfo": blocks, "sys/devices/system/cpu/online": "0-1"}
    files |= {
        f"sys/devices/system/cpu/cpu{number}/cpufreq/cpuinfo_max_freq": top
        for number, top in enumerate(("4000000", "4200000"))
    }
    assert cpu.clusters(tree(tmp_path, files)) == (Cluster("Ryzen", (0, 1), 4.2e9),)


def test_an_unknown_part_keeps_its_numbers(tmp_path):
    tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x51\nCPU part\t: 0x804\n"})
    assert cpu.clusters(tmp_path) == (Cluster("arm-0x51-0x804", (0,)),)


def test_threads_go_to_different_cores_first(tmp_path):
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    files = {
        f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list": shared
        for number, shared in siblings.items()
    }
    tree(tmp_path, files)
    assert cpu.spread(tmp_path, (0, 1, 2, 3)) == (0, 2, 1, 3)
    assert cpu.spread(tmp_path, (1, 2, 3)) == (1, 2, 3)
    assert cpu.spread(tmp_path / "none", (3, 1)) == (1, 3)
