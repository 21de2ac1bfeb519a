"""The pages' figures: what `.json` gives and the templates show.

Times of day are ISO 8601 in UTC by the collector's clock; durations in seconds, sizes in bytes, rates
per second, intensities in FLOP/byte. null is unknown, never zero. `schema` grows when a field's meaning
changes; new fields alone don't change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roof_collector.fit.ceilings import Ceiling
from roof_collector.web.tables import TablePage

SCHEMA = 1


@dataclass(frozen=True)
class RooflineRow:
    """Two ceilings of one element type, thread count and back end, and the ridge between them.

    `grade` is the worse of the two measurements'.
    """

    element_type: str
    threads: int
    backend: str
    flops_per_s: float
    bytes_per_s: float
    ridge: float
    grade: str = ""


@dataclass(frozen=True)
class DeviceRow:
    """A board in a list. Its roofline is of the most threads that both its ceilings were measured with."""

    fingerprint: str
    hostname: str
    model: str
    soc: str
    architecture: str
    cores: int
    core_kinds: str
    memory_bytes: int
    state: str
    last_seen_at: str
    runs: int
    last_run_id: str | None
    backend: str
    threads: int | None
    bytes_per_s: float | None
    flops_per_s: float | None
    ridge: float | None


@dataclass(frozen=True)
class RunRow:
    """A run. `state` is running, complete, partial (some measurement failed) or interrupted."""

    run_id: str
    state: str
    state_reason: str
    preset: str
    agent_version: str
    received_at: str
    heard_at: str
    ended_at: str | None
    planned: int | None
    done: int | None
    current: str
    ok: int | None
    unavailable: int | None
    failed: int | None
    dropped: int | None


@dataclass(frozen=True)
class MeasurementRow:
    """One measurement; statistics are in the unit of its `quantity` (B/s, FLOP/s, s or Hz)."""

    seq: int
    probe: str
    subject: str
    store: str
    quantity: str
    element_type: str
    threads: int
    backend: str
    backend_version: str
    isa: str
    compiler: str
    parameters: dict[str, str]
    outcome: str
    reason: str
    grade: str
    grade_reasons: list[str]
    best: float | None
    median: float | None
    ci_low: float | None
    ci_high: float | None
    mad: float | None
    n: int | None
    elapsed_seconds: float
    cpu_share: float | None
    involuntary_switches: int | None
    working_set_bytes: int | None
    clock_hz: float | None
    temperature_celsius: float | None
    conditions_before: dict[str, Any] | None
    conditions_after: dict[str, Any] | None
    is_network: bool


@dataclass(frozen=True)
class NetworkRow:
    """A measured network beside its roofline; `ratio` is measured by predicted.

    `roofline_seconds` sums max(2*macc/peak, bytes/bandwidth) over the layers of the graph that ran;
    `roofline_model_seconds` takes the maximum over the whole network at once, for comparison.
    `problem` says why something is missing.
    """

    seq: int
    name: str
    element_type: str
    threads: int
    backend: str
    backend_version: str
    provider: str
    optimization: str
    model_sha256: str
    executed_sha256: str
    outcome: str
    grade: str
    grade_reasons: list[str]
    measured_seconds: float | None
    best_seconds: float | None
    ci_low_seconds: float | None
    ci_high_seconds: float | None
    n: int | None
    roofline_seconds: float | None
    roofline_model_seconds: float | None
    ratio: float | None
    ceilings_backend: str
    layers: int
    macc: int | None
    flops: int | None
    memory_bytes: int | None
    intensity: float | None
    problem: str


@dataclass(frozen=True)
class LayerRow:
    """One node of the executed graph; `share` is of the profiled layers' time.

    Where `uncounted` says that there is no rule for the operator, its counts are 0 and mean nothing.
    `achieved_flops_per_s` is flops by measured time, `roof_share` that by what the roofline allows at
    the layer's intensity (above 1 where a fast convolution does less work than is counted).
    """

    index: int
    name: str
    op_type: str
    layer_class: str
    macc: int
    flops: int
    memory_bytes: int
    intensity: float | None
    roofline_seconds: float | None
    bound: str
    uncounted: str
    measured_seconds: float | None
    ratio: float | None
    share: float | None
    achieved_flops_per_s: float | None
    roof_share: float | None


@dataclass(frozen=True)
class LayerTotals:
    """Sums over all layers of the network, whatever the table shows."""

    layers: int
    uncounted: int
    macc: int
    flops: int
    memory_bytes: int
    roofline_seconds: float | None
    measured_seconds: float
    unjoined_seconds: float
    unmatched: int


@dataclass(frozen=True)
class DevicesDocument:
    """The boards that the collector knows."""

    schema: int
    devices: TablePage[DeviceRow]


@dataclass(frozen=True)
class DeviceDocument:
    """One board: what it is, what it can do, and its runs."""

    schema: int
    device: dict[str, Any]
    state: str
    first_seen_at: str
    last_seen_at: str
    ceilings_run_id: str | None
    ceilings: Sequence[Ceiling]
    rooflines: Sequence[RooflineRow]
    bandwidth: TablePage[MeasurementRow]
    runs: TablePage[RunRow]


@dataclass(frozen=True)
class RunDocument:
    """One run: how far it is, the networks it measured, and everything it measured."""

    schema: int
    run: RunRow
    device: dict[str, str]
    rooflines: Sequence[RooflineRow]
    networks: TablePage[NetworkRow]
    measurements: TablePage[MeasurementRow]


@dataclass(frozen=True)
class NetworkDocument:
    """One network as it ran: its layers beside the roofline of the run's own ceilings."""

    schema: int
    run: RunRow
    device: dict[str, str]
    network: NetworkRow
    roofline: RooflineRow | None
    totals: LayerTotals
    layers: TablePage[LayerRow]
