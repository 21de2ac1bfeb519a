"""Models come whole, once, and under no name but their digest."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from roof_agent.errors import UnreachableError
from roof_agent.fetch import fetch_model
from roof_agent.records import ModelRef
from roofline.v1 import model_pb2, session_pb2_grpc

DATA = bytes(range(256)) * 40
REF = ModelRef("../../etc/passwd", hashlib.sha256(DATA).hexdigest(), len(DATA))


class Models(session_pb2_grpc.CollectorServiceServicer):
    """Serves DATA in pieces; `spoil` may change or break what goes out."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.spoil: Callable[[model_pb2.ModelPart, grpc.ServicerContext], None] = lambda part, context: None

    def FetchModel(  # noqa: N802
        self, request: model_pb2.FetchModelRequest, context: grpc.ServicerContext
    ) -> Iterator[model_pb2.FetchModelResponse]:
        self.offsets.append(request.offset)
        if request.sha256 != REF.sha256:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        for offset in range(request.offset, len(DATA), 1000):
            part = model_pb2.ModelPart(offset=offset, data=DATA[offset : offset + 1000])
            self.spoil(part, context)
            yield model_pb2.FetchModelResponse(part=part)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def channel(models: Models) -> Iterator[grpc.Channel]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    session_pb2_grpc.add_CollectorServiceServicer_to_server(models, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    server.stop(None).wait()


def test_f27_a_model_comes_under_its_digest_whatever_its_name(
    models: Models, channel: grpc.Channel, tmp_path: Path
) -> None:
    path = fetch_model(channel, REF, tmp_path / "models")
    assert path.parent == tmp_path / "models"
    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o400
    assert list(path.parent.iterdir()) == [path]
    assert fetch_model(channel, REF, tmp_path / "models") == path
    assert models.offsets == [0]


def test_a_broken_transfer_goes_on_where_it_broke(
    models: Models, channel: grpc.Channel, tmp_path: Path
) -> None:
    def cut(part: model_pb2.ModelPart, context: grpc.ServicerContext) -> None:
        if len(models.offsets) == 1 and part.offset >= 5000:
            context.abort(grpc.StatusCode.UNAVAILABLE, "cut")

    models.spoil = cut
    assert fetch_model(channel, REF, tmp_path).read_bytes() == DATA
    assert models.offsets == [0, 5000]


def test_what_doesnt_match_its_digest_is_not_kept(
    models: Models, channel: grpc.Channel, tmp_path: Path
) -> None:
    def flip(part: model_pb2.ModelPart, context: grpc.ServicerContext) -> None:
        part.data = b"\xff" + part.data[1:]

    models.spoil = flip
    with pytest.raises(UnreachableError, match="digest"):
        fetch_model(channel, REF, tmp_path)
    assert not list(tmp_path.iterdir())


def test_more_than_announced_is_not_taken(channel: grpc.Channel, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="fit"):
        fetch_model(channel, replace(REF, size_bytes=1500), tmp_path)
    assert not list(tmp_path.iterdir())


def test_pieces_out_of_order_are_not_taken(models: Models, channel: grpc.Channel, tmp_path: Path) -> None:
    def skip(part: model_pb2.ModelPart, context: grpc.ServicerContext) -> None:
        part.offset += 1

    models.spoil = skip
    with pytest.raises(UnreachableError, match="fit"):
        fetch_model(channel, REF, tmp_path)


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        (replace(REF, sha256="../" + "0" * 61), "digest"),
        (replace(REF, sha256=REF.sha256.upper()), "digest"),
        (replace(REF, size_bytes=1 << 40), "size"),
        (replace(REF, size_bytes=0), "size"),
        (replace(REF, sha256="0" * 64), "no such model"),
    ],
)
def test_what_cant_be_a_model_is_refused(
    ref: ModelRef, words: str, channel: grpc.Channel, tmp_path: Path
) -> None:
    with pytest.raises(UnreachableError, match=words):
        fetch_model(channel, ref, tmp_path)
