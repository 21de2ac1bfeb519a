"""A network measured from file to figures, in the measuring child."""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError

from roof_agent.errors import MeasurementError, Unavailable
from roof_agent.models import guidelines, inputs, memory, profiling, weightless
from roof_agent.models.session import (
    Configuration,
    Latency,
    Repetitions,
    Source,
    Warmup,
    measure_latency,
    open_session,
    pin,
)
from roof_agent.platform.cpu import features
from roof_agent.probes import Reading, Task
from roof_agent.records import ModelPart, ModelRef, NetworkDetail
from roof_agent.statistics import quantile

PART_BYTES = 128 << 10

# What the CPU provider's kernels are chosen by; the first that the processor has.
_ISAS = {
    "avx512f": "avx512",
    "avx2": "avx2",
    "avx": "avx",
    "sse2": "sse2",
    "asimd": "neon",
    "neon": "neon",
}


@dataclass(frozen=True)
class _Network:
    """A network ready to be loaded: its weightless form, and where its values are."""

    bare: onnx.ModelProto
    source: Source


def measure(task: Task) -> Reading:
    """Measure the network that the task's settings name; see Reading and NetworkDetail.

    Raises Unavailable where it can't fit, MeasurementError where it can't be read or run.
    """
    pin(task.cpus)
    settings = task.settings
    with tempfile.TemporaryDirectory(prefix="roof-agent-") as folder:
        network = _prepare(task, Path(folder))
        written, written_digest = weightless.digest(network.bare)
        inputs.bind(network.bare, _pairs(task, "bind", int))
        feeds = inputs.make(network.bare, _pairs(task, "input", Path))
        expected = _refuse_what_cannot_fit(network.bare, int(settings["memory_bytes"]))
        configuration = Configuration(task.threads, task.parameters["optimization"])
        budget, repetitions = float(settings["budget_seconds"]), int(settings["min_repetitions"])
        warmup = Warmup(float(settings["warmup_seconds"]))
        session = open_session(network.source, configuration)
        latency = measure_latency(session, feeds, Repetitions(budget, repetitions), warmup)
        del session
        profile = profiling.profile(
            network.source,
            configuration,
            feeds,
            Repetitions(budget / 2, repetitions),
            warmup,
            Path(folder),
        )
    ran = _canonical(profile.executed, feeds)
    executed, executed_digest = weightless.digest(ran)
    models = list(parts(ModelRef(task.subject, executed_digest, len(executed)), executed))
    if not settings.get("weightless"):
        models += parts(ModelRef(task.subject, written_digest, len(written)), written)
    overhead = profile.profiled_seconds - statistics.median(latency.wall)
    return Reading(
        repetitions=latency.wall,
        backend="onnxruntime",
        backend_version=ort.__version__,
        isa=next((name for feature, name in _ISAS.items() if feature in features(Path("/"))), ""),
        cpu_shares=_cpu_shares(latency, task.threads),
        involuntary_switches=sum(latency.switches),
        parameters={
            **_truth(latency, task.threads),
            **_shape(ran),
            "weights": weightless.weight_type(network.bare),
            "profile_overhead_seconds": f"{overhead:.3g}",
            "expected_memory_bytes": str(expected),
            "peak_memory_bytes": str(memory.peak_rss_bytes()),
        },
        network=NetworkDetail(
            model_name=task.subject,
            model_sha256=str(settings.get("sha256", "")) or written_digest,
            executed_sha256=executed_digest,
            provider=configuration.provider,
            optimization=configuration.optimization,
            nodes=profile.nodes,
            unjoined_seconds=profile.unjoined_seconds,
            profiled_seconds=profile.profiled_seconds,
        ),
        models=tuple(models),
    )


def parts(ref: ModelRef, data: bytes) -> Iterator[ModelPart]:
    """Yield a serialized model in pieces that fit in a batch."""
    for offset in range(0, len(data), PART_BYTES):
        yield ModelPart(ref, offset, data[offset : offset + PART_BYTES])


def _prepare(task: Task, folder: Path) -> _Network:
    allowed = int(task.settings["memory_bytes"])
    path = Path(str(task.settings.get("path", "")))
    model = guidelines.build(task.subject) if task.settings.get("guideline") else load(path, allowed)
    bare = weightless.strip(model)
    if not model.graph.node:
        raise MeasurementError(f"{path.name} is no ONNX model, or one without nodes")
    renamed = name_apart(model)
    if weightless.is_weightless(model):
        _refuse_what_cannot_fit(bare, allowed)
        filled = folder / "filled.onnx"
        weightless.write(model, filled)
        return _Network(bare, Source(filled))
    if renamed:
        # The runtime refuses two nodes of one name, a fault that leaves exporters often.
        return _Network(bare, Source(model.SerializeToString(), path.parent))
    return _Network(bare, Source(path))


def load(path: Path, allowed_bytes: int) -> onnx.ModelProto:
    """Return the model in a file, its external data left there.

    Raises MeasurementError for a file that is none, Unavailable for one that can't fit in memory.
    """
    try:
        size = path.stat().st_size
        if 2 * size + memory.BASE_BYTES > allowed_bytes:
            raise Unavailable(_too_large(2 * size + memory.BASE_BYTES, allowed_bytes))
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, OSError, ValueError) as error:
        raise MeasurementError(f"{path.name} can't be read: {' '.join(str(error).split())[:300]}") from error
    for _, tensor, _ in weightless.stored(model):
        for entry in tensor.external_data:
            if entry.key == "location" and not (path.parent / entry.value).is_file():
                raise MeasurementError(
                    f"{path.name} can't be read: the file {entry.value} with the values of {tensor.name!r} "
                    "isn't beside it"
                )
    return model


def name_apart(model: onnx.ModelProto) -> bool:
    """Give nodes that share a name their own; return whether there were any."""
    taken: set[str] = set()
    renamed = False
    for index, node in enumerate(model.graph.node):
        if node.name in taken:
            node.name = f"{node.name}#{index}"
            renamed = True
        if node.name:
            taken.add(node.name)
    return renamed


def _canonical(executed: onnx.ModelProto, feeds: inputs.Feeds) -> onnx.ModelProto:
    """Return the executed graph weightless, with the dims that its inputs had.

    Its tensors go in one order: the runtime's is a hash table's.
    """
    bare = weightless.strip(executed)
    tensors = sorted(bare.graph.initializer, key=lambda tensor: tensor.name)
    values = sorted(bare.graph.value_info, key=lambda value: value.name)
    del bare.graph.initializer[:]
    del bare.graph.value_info[:]
    bare.graph.initializer.extend(tensors)
    bare.graph.value_info.extend(values)
    # Old models list their weights among the inputs.
    for value in (value for value in bare.graph.input if value.name in feeds):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=dim) for dim in feeds[value.name].shape)
    return bare


def _shape(ran: onnx.ModelProto) -> dict[str, str]:
    """Return which operators ran how often, and how many of them only changed the layout."""
    counts = Counter(node.op_type for node in ran.graph.node)
    reorders = sum(count for name, count in counts.items() if name.startswith("Reorder"))
    # A graph of control flow may have many kinds; the most frequent tell.
    operators = ", ".join(f"{name} {count}" for name, count in sorted(counts.most_common(20)))
    return {"operators": operators, "reorders": str(reorders)}


def _refuse_what_cannot_fit(bare: onnx.ModelProto, allowed: int) -> int:
    expected = memory.estimate_bytes(bare)
    if expected > allowed:
        raise Unavailable(_too_large(expected, allowed))
    return expected


def _too_large(expected: int, allowed: int) -> str:
    return (
        f"it needs about {expected >> 20} MiB and {allowed >> 20} MiB may be used: "
        "it takes a smaller network or more memory"
    )


def _cpu_shares(latency: Latency, threads: int) -> tuple[float, ...]:
    """Return CPU time by wall time of one thread; several spin while they wait, which says nothing."""
    if threads > 1:
        return ()
    return tuple(cpu / wall for cpu, wall in zip(latency.cpu, latency.wall, strict=True))


def _truth(latency: Latency, threads: int) -> dict[str, str]:
    """Return what contention can't have changed: CPU time of one thread, undisturbed repetitions."""
    found = {"clean_repetitions": str(len(latency.clean))}
    if latency.clean:
        found["clean_seconds_median"] = f"{statistics.median(latency.clean):.6g}"
    if threads == 1:
        cpu = sorted(latency.cpu)
        found["cpu_seconds_q10"] = f"{quantile(cpu, 0.1):.6g}"
        found["cpu_seconds_median"] = f"{quantile(cpu, 0.5):.6g}"
    return found


def _pairs(task: Task, setting: str, parse: type) -> dict[str, Any]:
    """Return the NAME=VALUE lines of a setting."""
    lines = str(task.settings.get(setting, "")).splitlines()
    return {name: parse(value) for name, _, value in (line.rpartition("=") for line in lines)}
