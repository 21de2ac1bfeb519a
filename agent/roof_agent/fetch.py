"""Fetches weightless models from the collector."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import grpc

from roof_agent.errors import UnreachableError
from roof_agent.records import ModelRef
from roofline.v1 import model_pb2, session_pb2_grpc

_DIGEST = re.compile(r"[0-9a-f]{64}")
# A weightless model is some KB; this one would be an attack or a mistake.
_MODEL_BYTES = 64 << 20
_SECONDS = 60.0
_ATTEMPTS = 3


def fetch_model(channel: grpc.Channel, ref: ModelRef, folder: Path) -> Path:
    """Return the read-only file of a model, fetched into `folder` unless it is there.

    The file is named by the digest; the name that the model came with is a label, never a path. What
    has come of a broken transfer is kept, and the next goes on behind it. Raises UnreachableError.
    """
    if not _DIGEST.fullmatch(ref.sha256):
        raise UnreachableError(f"its digest is {ref.sha256[:80]!r}")
    if not 0 < ref.size_bytes <= _MODEL_BYTES:
        raise UnreachableError(f"its size is {ref.size_bytes} bytes; up to {_MODEL_BYTES} are taken")
    path = folder / f"{ref.sha256}.onnx"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _transfer(channel, ref, partial)
            break
        except grpc.RpcError as error:
            # A broken transfer may go better next time; a refusal won't.
            if attempt == _ATTEMPTS or error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise UnreachableError(f"{error.code().name.lower()}: {error.details()}") from error
    if hashlib.sha256(partial.read_bytes()).hexdigest() != ref.sha256:
        partial.unlink()
        raise UnreachableError("what came doesn't match its digest")
    partial.chmod(0o400)
    return partial.rename(path)


def _transfer(channel: grpc.Channel, ref: ModelRef, partial: Path) -> None:
    """Append what is missing to `partial`."""
    stub = session_pb2_grpc.CollectorServiceStub(channel)  # type: ignore[no-untyped-call]
    with partial.open("ab") as file:
        offset = file.tell()
        if offset == ref.size_bytes:
            return
        request = model_pb2.FetchModelRequest(sha256=ref.sha256, offset=offset)
        for response in stub.FetchModel(request, timeout=_SECONDS):
            part = response.part
            if part.offset != offset or offset + len(part.data) > ref.size_bytes:
                partial.unlink()
                raise UnreachableError("its pieces don't fit together")
            file.write(part.data)
            offset += len(part.data)
