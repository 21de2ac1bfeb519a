"""A plain client of the protocol, and the collector that it talks to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import pytest

from roof_agent.records import Device, Record
from roof_agent.wire import device_message, record_message
from roofline.v1 import model_pb2, session_pb2, session_pb2_grpc

SECONDS = 20.0


class Client:
    """One session, spoken by hand."""

    def __init__(self, port: int, device: Device) -> None:
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.stub = session_pb2_grpc.CollectorServiceStub(self.channel)  # type: ignore[no-untyped-call]
        self.call: Any = self.stub.Session()
        self.device = device

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.call.cancel()
        await self.channel.close()

    async def send(self, **message: Any) -> None:
        await self.call.write(session_pb2.SessionRequest(**message))

    async def receive(self) -> session_pb2.SessionResponse:
        answer = await asyncio.wait_for(self.call.read(), SECONDS)
        assert answer is not grpc.aio.EOF, "the collector ended the stream"
        found: session_pb2.SessionResponse = answer
        return found

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.call.read(), SECONDS) is grpc.aio.EOF

    async def hello(self, *run_ids: str, **changes: Any) -> session_pb2.HelloAck:
        hello = session_pb2.Hello(protocol_version=1, agent_version="0.1.0", wants_plan=True)
        hello.device.CopyFrom(device_message(self.device))
        for run_id in run_ids:
            hello.runs.add(run_id=run_id)
        for name, value in changes.items():
            setattr(hello, name, value)
        await self.send(hello=hello)
        return (await self.receive()).hello_ack

    async def batch(self, run_id: str, records: Sequence[Record]) -> None:
        await self.send(batch=session_pb2.Batch(run_id=run_id, records=map(record_message, records)))

    async def store(self, run_id: str, records: Sequence[Record]) -> session_pb2.Ack:
        await self.batch(run_id, records)
        return (await self.receive()).ack

    async def fetch(self, sha256: str, offset: int = 0) -> list[model_pb2.ModelPart]:
        request = model_pb2.FetchModelRequest(sha256=sha256, offset=offset)
        return [response.part async for response in self.stub.FetchModel(request, timeout=SECONDS)]


@pytest.fixture
def connect(device: Device) -> Callable[[int], Client]:
    """Opens a session to a port on loopback."""
    return lambda port: Client(port, device)


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits until something is so."""

    async def wait(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not holds():
                await asyncio.sleep(0.01)

    return wait
