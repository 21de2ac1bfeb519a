"""Reading a model file: the graph alone, never the weights that lie beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto

from roof_agent.errors import UsageError

# protobuf's own limit on one message; a bigger network keeps its weights beside the file.
MAX_BYTES = (1 << 31) - 1


def load_model(path: str | os.PathLike[str]) -> ModelProto:
    """Return the model in an ONNX file. External weights are left where they are.

    UsageError, in one line, for whatever isn't a usable model file.
    """
    file = Path(path)
    try:
        if not file.exists():
            raise UsageError(f"{file}: there is no such file")
        if not file.is_file():
            raise UsageError(f"{file}: is not a file")
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"{file}: is over 2 GiB; a model this big keeps its weights in files beside it")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: can't be read: {_line(error)}") from error
    model = parse_model(data, str(file))
    for tensor in _stored(model.graph):
        if tensor.data_location == TensorProto.EXTERNAL:
            _check_location(file, tensor)
    return model


def _stored(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the initializers of a graph and of those inside it."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield from current.initializer
        for node in current.node:
            if node.op_type in {"If", "Loop", "Scan"}:
                pending += [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def parse_model(data: bytes, label: str = "the model") -> ModelProto:
    """Return a serialized model. UsageError, in one line that begins with `label`, for anything else."""
    try:
        model = ModelProto.FromString(data)
    except (DecodeError, RecursionError, MemoryError, ValueError) as error:
        raise UsageError(f"{label}: is not an ONNX model ({_line(error)})") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise UsageError(f"{label}: is not an ONNX model (it holds no graph)")
    return model


def _check_location(file: Path, tensor: TensorProto) -> None:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    parts = PurePosixPath(location.replace("\\", "/"))
    if parts.is_absolute() or PureWindowsPath(location).is_absolute() or ".." in parts.parts:
        raise UsageError(
            f"{file}: the weights of {tensor.name!r} lie outside the model's folder: {location!r}"
        )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
