"""A network measured from file to figures, in the measuring child."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError

from roof_agent.errors import MeasurementError, Unavailable
from roof_agent.models import runtime, weightless
from roof_agent.probes import Reading, Task
from roof_agent.records import ModelPart, ModelRef, NetworkDetail, Work

PART_BYTES = 128 << 10
# Measured on the zoo with the CPU provider: the file, the runtime's copy, prepacked weights.
_COPIES = 4


def measure(task: Task) -> Reading:
    """Measure the network that the task's settings name; see Reading and NetworkDetail.

    Raises Unavailable where it can't fit, MeasurementError where it can't be read or run.
    """
    settings = task.settings
    model = _load(Path(str(settings["path"])))
    needed, allowed = _COPIES * weightless.parameter_bytes(model), int(settings["memory_bytes"])
    if needed > allowed:
        raise Unavailable(
            f"it needs about {needed >> 20} MiB and {allowed >> 20} MiB may be used: "
            "it takes a smaller network or more memory"
        )
    written, written_digest = weightless.digest(weightless.strip(model))
    runtime.pin(task.cpus)
    runtime.name_nodes(model)
    data = weightless.fill(model).SerializeToString()
    del model
    optimization = task.parameters["optimization"]
    budget_seconds, repetitions = float(settings["budget_seconds"]), int(settings["min_repetitions"])
    session = runtime.open_session(data, threads=task.threads, optimization=optimization)
    feeds = runtime.make_feeds(session)
    latency = runtime.measure_latency(session, feeds, runtime.Repetitions(budget_seconds, repetitions))
    del session
    profile = runtime.profile(
        data,
        feeds,
        threads=task.threads,
        optimization=optimization,
        repetitions=runtime.Repetitions(budget_seconds / 2, repetitions),
    )
    bare = weightless.strip(profile.executed)
    executed, executed_digest = weightless.digest(bare)
    models = list(parts(ModelRef(task.subject, executed_digest, len(executed)), executed))
    if not settings["weightless"]:
        models += parts(ModelRef(task.subject, written_digest, len(written)), written)
    # Several threads spin while they wait, so CPU time says something of one thread alone.
    shares = (
        tuple(cpu / wall for cpu, wall in zip(latency.cpu, latency.wall, strict=True))
        if task.threads == 1
        else ()
    )
    profiled_overhead = profile.profiled_seconds - statistics.median(latency.wall)
    return Reading(
        repetitions=latency.wall,
        backend="onnxruntime",
        backend_version=ort.__version__,
        work=Work(),
        cpu_shares=shares,
        involuntary_switches=latency.involuntary_switches,
        parameters={
            "cpu_seconds_median": repr(statistics.median(latency.cpu)),
            "profile_overhead_seconds": repr(profiled_overhead),
        },
        network=NetworkDetail(
            model_name=task.subject,
            model_sha256=str(settings["sha256"]) or written_digest,
            executed_sha256=executed_digest,
            provider=runtime.PROVIDER,
            optimization=optimization,
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


def _load(path: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(str(path))
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise MeasurementError(f"{path.name} can't be read: {' '.join(str(error).split())[:300]}") from error
    if not model.graph.node:
        raise MeasurementError(f"{path.name} is no ONNX model, or one without nodes")
    return model
