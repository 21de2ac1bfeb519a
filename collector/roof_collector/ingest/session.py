"""One agent's stream: it says hello, sends batches, and is told what is committed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from roof_agent.records import Plan
from roof_agent.wire import plan_message
from roof_collector import __version__
from roof_collector.ingest.convert import device_columns, rows_of
from roof_collector.ingest.validation import INT32, RejectedError, entries, label, run_id, whole
from roof_collector.ingest.writer import StoppedError, Writer
from roof_collector.store.rows import Batch, Beat, Farewell, Greeting, Receipt, Welcome
from roofline.v1 import session_pb2

log = logging.getLogger(__name__)

PROTOCOL_VERSION = 1
WINDOW_BATCHES = 8
LIMITS = session_pb2.Limits(batch_records=1000, batch_bytes=256 << 10, window_batches=WINDOW_BATCHES)

# Whoever connects and says nothing is no agent.
_HELLO_SECONDS = 10.0
_RESUMED_RUNS = 10_000

# Gives the plan for a device, from its columns in `schema.device`.
Planner = Callable[[Mapping[str, Any]], Plan]


class Hub:
    """What a collector's sessions share. `planner` None is a collector without wishes."""

    def __init__(self, writer: Writer, planner: Planner | None = None) -> None:
        self.writer = writer
        self.planner = planner
        self.sessions: set[Session] = set()
        self._feeders: dict[tuple[int, str], Session] = {}

    def claim(self, device_id: int, run: str, session: Session) -> None:
        """Have `session` feed a run; the one that did before is a stream left over, and ends."""
        before = self._feeders.get((device_id, run))
        if before is not session:
            self._feeders[device_id, run] = session
            if before is not None:
                before.close("a newer session of this agent goes on with the run")

    def leave(self, session: Session) -> None:
        """Forget a session."""
        self.sessions.discard(session)
        for key in [key for key, feeder in self._feeders.items() if feeder is session]:
            del self._feeders[key]

    def close(self) -> None:
        """Tell every agent that the collector stops; they come back by themselves."""
        for session in list(self.sessions):
            session.close("the collector is stopping")


class Session:
    """One stream. Its requests are read by a task of its own, so that answers wait for no request."""

    def __init__(self, hub: Hub, requests: AsyncIterator[session_pb2.SessionRequest]) -> None:
        self._hub = hub
        self._requests = requests
        self._stream = uuid.uuid4().hex
        self._device_id = 0
        self._fingerprint = ""
        # Answers in the order of what they answer; an unfinished one is a batch's.
        self._outbox: asyncio.Queue[session_pb2.SessionResponse | tuple[str, asyncio.Future[Receipt]] | None]
        self._outbox = asyncio.Queue()
        # An agent that doesn't keep to the window isn't read until it does.
        self._window = asyncio.Semaphore(2 * WINDOW_BATCHES)
        self._reader: asyncio.Task[None] | None = None

    async def responses(self) -> AsyncIterator[session_pb2.SessionResponse]:
        """Yield what the agent is to be told, until the end."""
        self._hub.sessions.add(self)
        self._reader = asyncio.create_task(self._read())
        self._reader.add_done_callback(self._reader_ended)
        try:
            while (answer := await self._outbox.get()) is not None:
                if isinstance(answer, session_pb2.SessionResponse):
                    yield answer
                    if answer.HasField("close"):
                        return
                else:
                    run, receipt = answer
                    yield _ack(run, await receipt)
                    self._window.release()
        except StoppedError as error:
            yield _close(str(error))
        finally:
            self._reader.cancel()
            self._hub.leave(self)
            with contextlib.suppress(StoppedError):
                self._hub.writer.put(Farewell(self._stream))

    def close(self, reason: str, *, final: bool = False) -> None:
        """End the stream once what was committed is acknowledged."""
        if self._reader:
            self._reader.cancel()
        self._outbox.put_nowait(_close(reason, final=final))

    def _reader_ended(self, reader: asyncio.Task[None]) -> None:
        """End the stream of a reader that broke: its agent comes back, and isn't left waiting."""
        error = None if reader.cancelled() else reader.exception()
        if error is not None:
            log.error("a session of device %.12s broke", self._fingerprint, exc_info=error)
            self._outbox.put_nowait(_close("the collector could not go on; its log says why"))

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                first = await anext(self._requests, None)
            if first is None:
                self._outbox.put_nowait(None)
                return
            await self._greet(first)
            async for request in self._requests:
                await self._take(request)
        except RejectedError as error:
            log.warning("a session of device %.12s was refused: %s", self._fingerprint, error)
            self._outbox.put_nowait(_close(str(error), final=True))
        except StoppedError as error:
            self._outbox.put_nowait(_close(str(error)))
        except TimeoutError:
            self._outbox.put_nowait(_close("no hello came"))
        else:
            self._outbox.put_nowait(None)

    async def _greet(self, request: session_pb2.SessionRequest) -> None:
        if not request.HasField("hello"):
            raise RejectedError("a session begins with a hello")
        hello = request.hello
        if hello.protocol_version != PROTOCOL_VERSION:
            raise RejectedError(
                f"this collector ({__version__}) speaks version {PROTOCOL_VERSION} of the protocol and "
                f"the agent version {hello.protocol_version}: install matching versions of roofline"
            )
        entries(len(hello.runs), "runs", _RESUMED_RUNS)
        facts = device_columns(hello.device, hello.agent_version)
        runs = tuple(run_id(position.run_id) for position in hello.runs)
        answer = await self._hub.writer.submit(Greeting(facts, runs, self._stream), request.ByteSize())
        welcome: Welcome = await answer
        self._device_id = welcome.device_id
        self._fingerprint = facts["fingerprint"]
        for run in runs:
            self._hub.claim(self._device_id, run, self)
        ack = session_pb2.HelloAck(
            protocol_version=PROTOCOL_VERSION, collector_version=__version__, limits=LIMITS
        )
        for run, next_seq in welcome.next_seqs.items():
            ack.resume.add(run_id=run, seq=next_seq)
        if hello.wants_plan and self._hub.planner:
            ack.plan.CopyFrom(plan_message(self._hub.planner(facts)))
        self._outbox.put_nowait(session_pb2.SessionResponse(hello_ack=ack))

    async def _take(self, request: session_pb2.SessionRequest) -> None:
        kind = request.WhichOneof("message")
        if kind == "batch":
            await self._store(request.batch, request.ByteSize())
        elif kind == "heartbeat":
            await self._beat(request.heartbeat)
        elif kind == "hello":
            raise RejectedError("a session has one hello")

    async def _store(self, batch: session_pb2.Batch, size: int) -> None:
        run = run_id(batch.run_id)
        entries(len(batch.records), "a batch", LIMITS.batch_records)
        rows = rows_of(batch.records, self._fingerprint)
        for seq, reason in rows.rejections:
            log.warning("record %d of run %s was rejected: %s", seq, run, reason)
        self._hub.claim(self._device_id, run, self)
        await self._window.acquire()
        job = Batch(self._device_id, run, self._stream, rows)
        self._outbox.put_nowait((run, await self._hub.writer.submit(job, size)))

    async def _beat(self, beat: session_pb2.Heartbeat) -> None:
        job = Beat(
            self._device_id,
            run_id(beat.run_id),
            self._stream,
            whole(beat.done, "done", INT32),
            whole(beat.planned, "planned", INT32),
            label(beat.current, "current"),
        )
        await self._hub.writer.submit(job, beat.ByteSize())


def _ack(run: str, receipt: Receipt) -> session_pb2.SessionResponse:
    ack = session_pb2.Ack(run_id=run, next_seq=receipt.next_seq)
    for seq, reason in receipt.rejections:
        ack.rejected.add(seq=seq, reason=reason)
    return session_pb2.SessionResponse(ack=ack)


def _close(reason: str, *, final: bool = False) -> session_pb2.SessionResponse:
    return session_pb2.SessionResponse(close=session_pb2.Close(reason=reason, final=final))
