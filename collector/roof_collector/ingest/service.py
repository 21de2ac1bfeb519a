"""The gRPC service: sessions of agents, and weightless models to fetch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from sqlalchemy import Engine

from roof_agent.records import ModelPart, ModelRef
from roof_agent.wire import part_message
from roof_collector.ingest.convert import MODEL_BYTES
from roof_collector.ingest.session import Hub, Session
from roof_collector.ingest.validation import RejectedError, sha256
from roof_collector.store.parts import get_model
from roofline.v1 import model_pb2, session_pb2, session_pb2_grpc

RECEIVE_BYTES = 1 << 20
SERVER_OPTIONS = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    # By default a client that pings every 10 s is sent away.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 30_000),
    # Agents that are gone without a word are noticed.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),
    # Estimating the bandwidth pings the agent, which would answer in the middle of a measurement.
    ("grpc.http2.bdp_probe", 0),
    # Two collectors on one port would share its agents by chance.
    ("grpc.so_reuseport", 0),
)
_PIECE_BYTES = 256 << 10


class CollectorService(session_pb2_grpc.CollectorServiceServicer):
    """Sessions go through `hub`; models are read from `engine`."""

    def __init__(self, hub: Hub, engine: Engine) -> None:
        self._hub = hub
        self._engine = engine

    async def Session(  # noqa: N802 - the protocol's name
        self, request_iterator: AsyncIterator[session_pb2.SessionRequest], context: Any
    ) -> AsyncIterator[session_pb2.SessionResponse]:
        """Talk with one agent until either side ends it."""
        async for response in Session(self._hub, request_iterator).responses():
            yield response

    async def FetchModel(  # noqa: N802 - the protocol's name
        self, request: model_pb2.FetchModelRequest, context: Any
    ) -> AsyncIterator[model_pb2.FetchModelResponse]:
        """Send a weightless model from `offset` on."""
        try:
            digest = sha256(request.sha256, "the model's digest")
        except RejectedError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        found = await asyncio.to_thread(get_model, self._engine, digest)
        if found is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model {digest}")
            return
        name, data = found
        ref = ModelRef(name, digest, len(data))
        for offset in range(min(request.offset, MODEL_BYTES), len(data), _PIECE_BYTES):
            part = ModelPart(ref, offset, data[offset : offset + _PIECE_BYTES])
            yield model_pb2.FetchModelResponse(part=part_message(part))


def add_service(server: grpc.aio.Server, service: CollectorService) -> None:
    """Register the service."""
    session_pb2_grpc.add_CollectorServiceServicer_to_server(service, server)  # type: ignore[no-untyped-call]
