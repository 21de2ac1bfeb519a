"""Probes: what can be measured. One file each, registered where it is defined.

A probe is planned in the agent's parent process (no heavy import there) and measures one task at a
time in a fresh child.
"""

from __future__ import annotations

import abc
import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from roof_agent.errors import UsageError
from roof_agent.presets import DEFAULT, QUICK
from roof_agent.records import Conditions, Device, Measurement, ModelPart, ModelRef, NetworkDetail, Work


@dataclass(frozen=True)
class Task:
    """One measurement to be made; JSON carries it to the child.

    `seconds` is what it is expected to take, `timeout_seconds` when it is given up. Tasks one after the
    other with the same `batch` share a child: for points of a curve that each take less than its start.
    """

    probe: str
    subject: str
    quantity: str
    threads: int
    cpus: tuple[int, ...]
    seconds: float = 0.0
    element_type: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    # What the child needs and nobody else: a model's path, budgets, sizes.
    settings: dict[str, str | int | float] = field(default_factory=dict)
    batch: str = ""

    @property
    def timeout_seconds(self) -> float:
        """Return when the task is given up: generous, since boards are slow and the plan an estimate."""
        return 60 + 10 * self.seconds


def label(what: Task | Measurement) -> str:
    """Return what is measured in a few words for people."""
    threads = f"{what.threads} thread{'s' * (what.threads != 1)}" if what.threads else ""
    own = what.parameters.get("store", "")
    return " ".join(word for word in (what.probe, what.subject, own, what.element_type, threads) if word)


@dataclass(frozen=True)
class Reading:
    """What a probe measured: repetitions in the task's quantity, and with what."""

    repetitions: tuple[float, ...]
    backend: str
    backend_version: str = ""
    isa: str = ""
    compiler: str = ""
    work: Work | None = None
    cpu_shares: tuple[float, ...] = ()
    involuntary_switches: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    network: NetworkDetail | None = None
    # Weightless graphs that the measurement refers to.
    models: tuple[ModelPart, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What became of a task: a reading, or why there is none; and the board's state around it."""

    before: Conditions
    after: Conditions
    started_monotonic_ns: int
    elapsed_seconds: float
    # CPU time of the measuring process in between.
    cpu_seconds: float
    reading: Reading | None = None
    unavailable: str = ""
    failed: str = ""


@dataclass(frozen=True)
class LocalModel:
    """A network to measure: a weightless file of the plan, or a user's own file with its weights."""

    ref: ModelRef
    path: Path
    weightless: bool
    # Sizes of open dims, and files for inputs.
    bind: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanContext:
    """What probes plan by. `memory_bytes` is what a measurement may use at the most."""

    device: Device
    preset: str
    cpus: tuple[int, ...]
    thread_counts: tuple[int, ...]
    memory_bytes: int
    last_level_cache_bytes: int | None
    backend: str = ""
    models: tuple[LocalModel, ...] = ()

    @property
    def kinds(self) -> tuple[tuple[int, ...], ...]:
        """Return the CPUs to measure on by kind of core."""
        groups = (tuple(cpu for cpu in self.cpus if cpu in cluster.cpus) for cluster in self.device.clusters)
        return tuple(group for group in groups if group) or (self.cpus,)

    @property
    def placements(self) -> tuple[tuple[int, ...], ...]:
        """Return the sets of CPUs to measure on: each thread count, and on mixed cores each kind too.

        One thread: on one core of each kind. All: each kind by itself, then all together.
        """
        mixed = self.kinds if len(self.kinds) > 1 else ()
        found: list[tuple[int, ...]] = []
        for threads in self.thread_counts:
            if threads == 1 and mixed:
                found += [group[:1] for group in mixed]
            else:
                found += mixed if threads == len(self.cpus) else []
                found.append(self.cpus[:threads])
        return tuple(dict.fromkeys(found))


class Probe(abc.ABC):
    """One kind of measurement; `help` is a sentence, the docstring of its class the whole story."""

    name: str
    help: str
    default = True
    # Whether a quick run has it.
    quick = True
    # What its measurements are in; a key of the registry of quantities.
    quantity = "seconds"

    @abc.abstractmethod
    def plan(self, context: PlanContext) -> Sequence[Task]:
        """Return the tasks on this device, in the order to be measured."""

    @abc.abstractmethod
    def measure(self, task: Task) -> Reading:
        """Measure one task, in the child. Raises Unavailable or MeasurementError."""


# Memory and arithmetic first: networks are judged by them. What heats the board up comes last.
_ORDER = ("clock", "bandwidth", "peak", "network", "ladder", "latency", "sweep", "sustained")

_REGISTRY: dict[str, Probe] = {}


def register(cls: type[Probe]) -> type[Probe]:
    """Add a probe to the registry. Raises ValueError for a name that is taken."""
    if cls.name in _REGISTRY:
        raise ValueError(f"two probes are called {cls.name}")
    _REGISTRY[cls.name] = cls()
    return cls


def all_probes() -> dict[str, Probe]:
    """Return every probe by name, in the order in which they run."""
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: (_rank(item[0]), item[0])))


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def choose(wanted: Sequence[str], unwanted: Sequence[str], preset: str = DEFAULT) -> list[Probe]:
    """Return the probes to run: those wanted, else the preset's. Raises UsageError for an unknown name."""
    known = all_probes()
    for name in (*wanted, *unwanted):
        if name not in known:
            raise UsageError(
                f"there is no probe {name!r}: {', '.join(known)} are there (see roof-agent list)"
            )
    return [
        probe
        for name, probe in known.items()
        if name not in unwanted
        and (name in wanted if wanted else probe.default and (probe.quick or preset != QUICK))
    ]
