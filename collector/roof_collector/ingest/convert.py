"""Messages to rows: the collector's only module that knows the protocol's measurements.

Written out field by field, since every measurement of every board passes here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from roof_agent.records import Grade, Outcome
from roof_agent.units import QUANTITIES
from roof_collector.ingest.validation import (
    INT32,
    NAME_CHARACTERS,
    RejectedError,
    entries,
    label,
    name,
    number,
    numbers,
    prose,
    sha256,
    whole,
)
from roof_collector.store.packing import pack_doubles
from roof_collector.store.rows import Part, Row, Rows
from roofline.v1 import device_pb2, measurement_pb2, model_pb2, run_pb2

MODEL_BYTES = 64 << 20

# Made once; json.dumps with these settings makes one each time.
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)

_OUTCOMES = {
    measurement_pb2.OUTCOME_OK: Outcome.OK.value,
    measurement_pb2.OUTCOME_UNAVAILABLE: Outcome.UNAVAILABLE.value,
    measurement_pb2.OUTCOME_FAILED: Outcome.FAILED.value,
}
_GRADES = {
    measurement_pb2.GRADE_UNSPECIFIED: None,
    measurement_pb2.GRADE_CLEAN: Grade.CLEAN.value,
    measurement_pb2.GRADE_NOISY: Grade.NOISY.value,
    measurement_pb2.GRADE_THROTTLED: Grade.THROTTLED.value,
    measurement_pb2.GRADE_LIMITED: Grade.LIMITED.value,
}
_NO_STATISTICS = (None,) * 10
_NO_WORK = (None,) * 4


def rows_of(records: Iterable[run_pb2.Record], fingerprint: str) -> Rows:
    """Return a batch's records as rows, those that can't be stored as rejections.

    Records that don't follow the one before are left out, with all after them. Raises RejectedError
    for a batch without a record, or one that begins from 2^63.
    """
    rows: Rows | None = None
    for record in records:
        if rows is None:
            first = whole(record.seq, "the record's number", (1 << 63) - (1 << 21))
            rows = Rows(first, first)
        if record.seq != rows.end:
            break
        try:
            _add(rows, record, fingerprint)
        except RejectedError as error:
            rows.rejections.append((record.seq, str(error)))
        rows.end += 1
    if rows is None:
        raise RejectedError("a batch has no records")
    return rows


def device_columns(device: device_pb2.Device, agent_version: str) -> dict[str, Any]:
    """Return the columns of `schema.device` that the agent says. Raises RejectedError."""
    entries(len(device.clusters), "clusters")
    entries(len(device.caches), "caches")
    clusters = [
        {
            "core": label(cluster.core, "a cluster's core"),
            "cpus": _cpus(cluster.cpus),
            "max_hz": number(cluster.max_hz, "max_hz") if cluster.HasField("max_hz") else None,
        }
        for cluster in device.clusters
    ]
    caches = [
        {
            "level": whole(cache.level, "a cache's level", 16),
            "kind": label(cache.kind, "a cache's kind"),
            "size_bytes": whole(cache.size_bytes, "a cache's size"),
            "line_bytes": cache.line_bytes if cache.HasField("line_bytes") else None,
            "shared_cpus": _cpus(cache.shared_cpus),
            "provenance": label(cache.provenance, "a cache's provenance"),
        }
        for cache in device.caches
    ]
    texts = ("hostname", "model", "soc", "architecture", "os", "kernel", "virtualization", "container")
    return {
        "fingerprint": sha256(device.fingerprint, "the device's fingerprint"),
        **{text: label(getattr(device, text), text) for text in texts},
        "memory_bytes": whole(device.memory_bytes, "memory_bytes"),
        "page_bytes": whole(device.page_bytes, "page_bytes"),
        "clusters": clusters,
        "caches": caches,
        "isa_features": _labels_of(device.isa_features, "isa_features"),
        "labels": _text_map(device.labels, "labels"),
        "agent_version": label(agent_version, "agent_version"),
    }


def _add(rows: Rows, record: run_pb2.Record, fingerprint: str) -> None:
    kind = record.WhichOneof("content")
    if kind == "measurement":
        _add_measurement(rows, record.seq, record.measurement)
    elif kind == "model_part":
        rows.parts.append(_part(record.seq, record.model_part))
    elif kind == "start":
        if record.seq:
            raise RejectedError("a run's start is its first record")
        rows.start = _start(record.start, fingerprint)
    elif kind == "end":
        rows.finish = _finish(record.end)
        rows.finish_seq = record.seq
    else:
        raise RejectedError("the record was lost before it was sent, or is of a kind that isn't known here")


def _start(start: run_pb2.RunStart, fingerprint: str) -> dict[str, Any]:
    facts = device_columns(start.device, start.agent_version)
    if facts["fingerprint"] != fingerprint:
        raise RejectedError("the run is another device's")
    return {
        "agent_version": facts.pop("agent_version"),
        "preset": label(start.preset, "preset"),
        "boot_id": label(start.boot_id, "boot_id"),
        "monotonic_ns": whole(start.monotonic_ns, "monotonic_ns"),
        "wall_unix_ns": whole(start.wall_unix_ns, "wall_unix_ns"),
        "planned": whole(start.planned_measurements, "planned_measurements", INT32),
        "labels": _text_map(start.labels, "labels"),
        "device_facts": facts,
    }


def _finish(end: run_pb2.RunEnd) -> dict[str, Any]:
    return {
        "complete": end.complete,
        "reason": prose(end.reason, "reason"),
        "ok": whole(end.ok, "ok", INT32),
        "unavailable": whole(end.unavailable, "unavailable", INT32),
        "failed": whole(end.failed, "failed", INT32),
        "dropped": whole(end.dropped, "dropped"),
        # No heartbeat follows the last measurement.
        "done": whole(end.ok + end.unavailable + end.failed, "the sum of ok, unavailable and failed", INT32),
        "current": "",
    }


def _part(seq: int, part: model_pb2.ModelPart) -> Part:
    size = whole(part.model.size_bytes, "the model's size", MODEL_BYTES)
    if not part.data or part.offset + len(part.data) > size:
        raise RejectedError("a piece of a model is empty or beyond its end")
    return Part(
        seq,
        sha256(part.model.sha256, "the model's digest"),
        name(part.model.name, "the model's name"),
        size,
        part.offset,
        part.data,
    )


def _add_measurement(rows: Rows, seq: int, m: measurement_pb2.Measurement) -> None:
    outcome = _OUTCOMES.get(m.outcome)
    if outcome is None:
        raise RejectedError(f"outcome {m.outcome} isn't known")
    if m.grade not in _GRADES:
        raise RejectedError(f"grade {m.grade} isn't known")
    measured = m.HasField("statistics")
    if m.quantity not in QUANTITIES and (m.quantity or measured):
        raise RejectedError(f"quantity {label(m.quantity, 'quantity')!r} isn't known")
    if outcome == Outcome.OK.value and not measured:
        raise RejectedError("a result has no statistics")
    # Once: going through the message's own list takes long.
    repetitions = list(m.repetitions)
    work = m.work if m.HasField("work") else None
    row = (
        seq,
        name(m.probe, "probe"),
        label(m.subject, "subject"),
        m.quantity,
        label(m.element_type, "element_type"),
        whole(m.threads, "threads", INT32),
        _cpus_json(tuple(m.cpus)),
        label(m.backend, "backend"),
        label(m.backend_version, "backend_version"),
        label(m.isa, "isa"),
        label(m.compiler, "compiler"),
        _json(_text_map(m.parameters, "parameters")),
        outcome,
        prose(m.reason, "reason"),
        _GRADES[m.grade],
        _json(_labels_of(m.grade_reasons, "grade_reasons")) if m.grade_reasons else "[]",
        *(_statistics(m.statistics, m.quantity) if measured else _NO_STATISTICS),
        pack_doubles(numbers(repetitions, "repetitions")) if repetitions else None,
        *(_work(work) if work is not None else _NO_WORK),
        _conditions(m.before) if m.HasField("before") else None,
        _conditions(m.after) if m.HasField("after") else None,
        whole(m.started_monotonic_ns, "started_monotonic_ns"),
        number(m.elapsed_seconds, "elapsed_seconds"),
        number(m.cpu_share, "cpu_share") if m.HasField("cpu_share") else None,
        whole(m.involuntary_switches, "involuntary_switches") if m.HasField("involuntary_switches") else None,
    )
    if m.HasField("network"):
        _add_network(rows, seq, m.network)
    rows.measurements.append(row)


def _add_network(rows: Rows, seq: int, network: measurement_pb2.NetworkDetail) -> None:
    row = (
        seq,
        name(network.model_name, "the model's name"),
        sha256(network.model_sha256, "the model's digest"),
        # Unknown where a measurement failed before the graph was made.
        sha256(network.executed_sha256, "the executed graph's digest") if network.executed_sha256 else "",
        label(network.provider, "provider"),
        label(network.optimization, "optimization"),
        number(network.unjoined_seconds, "unjoined_seconds"),
        number(network.profiled_seconds, "profiled_seconds"),
    )
    layers = [
        (
            seq,
            whole(node.index, "a node's index", INT32),
            label(node.name, "a node's name", NAME_CHARACTERS),
            name(node.op_type, "a node's operator"),
            *_statistics(node.seconds, "a node's seconds"),
        )
        for node in network.nodes
    ]
    if len({layer[1] for layer in layers}) < len(layers):
        raise RejectedError("two nodes have one index")
    rows.networks.append(row)
    rows.layers += layers


def _statistics(s: measurement_pb2.Statistics, what: str) -> Row:
    values = (s.min, s.q10, s.median, s.q90, s.max, s.mean, s.mad, s.ci_low, s.ci_high)
    numbers(values, what)
    if not 0 < s.n <= INT32 or not s.min <= s.median <= s.max:
        raise RejectedError(f"the statistics of {what} contradict themselves")
    return (s.n, *values)


def _work(work: measurement_pb2.Work) -> Row:
    return (
        number(work.stream_bytes, "stream_bytes"),
        number(work.bus_bytes, "bus_bytes"),
        number(work.flops, "flops"),
        whole(work.working_set_bytes, "working_set_bytes"),
    )


def _conditions(conditions: measurement_pb2.Conditions) -> str:
    """Return the known fields as JSON; keys of maps are texts there."""
    known: dict[str, Any] = {}
    for field, value in conditions.ListFields():
        what = field.name
        if type(value) is float or type(value) is int:
            known[what] = value
        elif type(value) is str:
            known[what] = label(value, what)
        else:
            known[what] = _number_map(value, what)
    return _json(known)


def _json(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except ValueError as error:
        raise RejectedError("a number isn't finite") from error


def _number_map(values: Mapping[Any, float], what: str) -> dict[str, float]:
    entries(len(values), what)
    # Item by item: the map's items() is slow.
    return {label(str(key), what): values[key] for key in values}


def _text_map(values: Mapping[str, str], what: str) -> dict[str, str]:
    entries(len(values), what)
    return {name(key, what): label(values[key], what, NAME_CHARACTERS) for key in values}


def _labels_of(values: Iterable[str], what: str) -> list[str]:
    texts = [label(value, what, NAME_CHARACTERS) for value in values]
    entries(len(texts), what)
    return texts


def _cpus(cpus: Iterable[int]) -> list[int]:
    found = [whole(cpu, "cpu", INT32) for cpu in cpus]
    entries(len(found), "cpus")
    return found


@functools.lru_cache(1024)
def _cpus_json(cpus: tuple[int, ...]) -> str:
    return _json(_cpus(cpus))
