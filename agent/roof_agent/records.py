"""What a run is made of, as plain data: the agent's side of `protos/roofline/v1`.

All times are seconds (or nanoseconds where the name says so), all rates per second, all sizes
bytes. `None` and empty mean "not known", never zero.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from roof_agent.units import quantity


class Outcome(enum.Enum):
    """How a measurement ended."""

    OK = "ok"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


class Grade(enum.Enum):
    """How far a measurement's conditions can be trusted."""

    CLEAN = "clean"
    NOISY = "noisy"
    THROTTLED = "throttled"
    LIMITED = "limited"


@dataclass(frozen=True)
class Cluster:
    """Cores of one kind."""

    core: str
    cpus: tuple[int, ...]
    max_hz: float | None = None


@dataclass(frozen=True)
class Cache:
    """One cache; `provenance` is sysfs, device-tree, core-table or ladder."""

    level: int
    kind: str
    size_bytes: int
    line_bytes: int | None = None
    shared_cpus: tuple[int, ...] = ()
    provenance: str = "sysfs"


@dataclass(frozen=True)
class Device:
    """A board as the agent found it."""

    fingerprint: str
    hostname: str
    architecture: str
    model: str = ""
    soc: str = ""
    os: str = ""
    kernel: str = ""
    memory_bytes: int = 0
    page_bytes: int = 0
    clusters: tuple[Cluster, ...] = ()
    caches: tuple[Cache, ...] = ()
    isa_features: tuple[str, ...] = ()
    virtualization: str = ""
    container: str = ""
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conditions:
    """The state of the board at one moment, outside every timed section."""

    monotonic_ns: int
    frequency_hz: dict[int, float] = field(default_factory=dict)
    governor: str = ""
    temperature_celsius: dict[str, float] = field(default_factory=dict)
    throttled_bits: int | None = None
    load_1m: float | None = None
    steal_ticks: int | None = None
    busy_ticks: int | None = None
    total_ticks: int | None = None
    memory_available_bytes: int | None = None
    pressure_cpu_some_avg10: float | None = None
    pressure_memory_some_avg10: float | None = None
    cgroup_cpus: float | None = None
    cgroup_throttled_us: int | None = None
    cgroup_memory_bytes: int | None = None
    clock_hz: float | None = None


@dataclass(frozen=True)
class Statistics:
    """Summary of n repetitions in the measurement's quantity; `ci_*` bound the median at 95 %."""

    n: int
    min: float
    q10: float
    median: float
    q90: float
    max: float
    mean: float
    mad: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Work:
    """What one repetition did; bus_bytes add the write-allocate reads that STREAM doesn't count."""

    stream_bytes: float = 0.0
    bus_bytes: float = 0.0
    flops: float = 0.0
    working_set_bytes: int = 0


@dataclass(frozen=True)
class NodeTime:
    """Time of one node of the executed graph over the profiled repetitions."""

    index: int
    name: str
    op_type: str
    seconds: Statistics


@dataclass(frozen=True)
class NetworkDetail:
    """A network as it was run; digests are of the weightless graphs."""

    model_name: str
    model_sha256: str
    executed_sha256: str
    provider: str
    optimization: str
    nodes: tuple[NodeTime, ...]
    unjoined_seconds: float
    profiled_seconds: float


@dataclass(frozen=True)
class Measurement:
    """One thing measured under one set of parameters, with everything needed to judge it."""

    probe: str
    subject: str
    quantity: str
    outcome: Outcome
    element_type: str = ""
    threads: int = 0
    cpus: tuple[int, ...] = ()
    backend: str = ""
    backend_version: str = ""
    isa: str = ""
    compiler: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    grade: Grade | None = None
    grade_reasons: tuple[str, ...] = ()
    statistics: Statistics | None = None
    repetitions: tuple[float, ...] = ()
    work: Work | None = None
    before: Conditions | None = None
    after: Conditions | None = None
    started_monotonic_ns: int = 0
    elapsed_seconds: float = 0.0
    cpu_share: float | None = None
    involuntary_switches: int | None = None
    network: NetworkDetail | None = None

    @property
    def best(self) -> float | None:
        """STREAM's rule: the best repetition, the highest rate or the shortest time."""
        if self.statistics is None:
            return None
        return self.statistics.max if quantity(self.quantity).higher_is_better else self.statistics.min


@dataclass(frozen=True)
class ModelRef:
    """A weightless network; its identity is the digest, its name a label."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class ModelPart:
    """A piece of a weightless network."""

    model: ModelRef
    offset: int
    data: bytes


@dataclass(frozen=True)
class RunStart:
    """First record of a run."""

    device: Device
    agent_version: str
    preset: str
    boot_id: str
    monotonic_ns: int
    wall_unix_ns: int
    planned_measurements: int
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunEnd:
    """Last record of a run; `complete` where no measurement failed."""

    complete: bool
    monotonic_ns: int
    ok: int
    unavailable: int
    failed: int
    reason: str = ""
    dropped: int = 0


Content = RunStart | Measurement | ModelPart | RunEnd


@dataclass(frozen=True)
class Record:
    """The seq-th record of a run; (agent, run, seq) identifies it for ever."""

    seq: int
    content: Content


@dataclass(frozen=True)
class Plan:
    """What the collector would like measured; a thread count of 0 stands for all cores."""

    probes: tuple[str, ...] = ()
    models: tuple[ModelRef, ...] = ()
    threads: tuple[int, ...] = (1, 0)
