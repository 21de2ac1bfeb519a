"""The agent's connection: sends what the spool holds, and forgets it once the collector has it.

One background thread dials for ever; records are sent in batches with a window and acknowledged after
the collector's commit. Whatever breaks, sending goes on where the collector says it left off. Inside
`quiet()` nothing is sent: measurements are timed there.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from roof_agent import __version__
from roof_agent.diagnose import diagnose
from roof_agent.errors import UnreachableError, UsageError
from roof_agent.records import Device, ModelRef, Plan
from roof_agent.spool import Spool
from roof_agent.wire import device_message, parse_plan
from roofline.v1 import model_pb2, session_pb2, session_pb2_grpc

log = logging.getLogger(__name__)

PROTOCOL_VERSION = 1

# Until the collector says what it takes.
_LIMITS = session_pb2.Limits(batch_records=1000, batch_bytes=256 << 10, window_batches=8)
_RECEIVE_BYTES = 1 << 20
# A model fits in memory on a board; a weightless one is some KB.
_MODEL_BYTES = 64 << 20
_CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Without it a frozen peer took 69 s to notice.
    ("grpc.http2.ping_timeout_ms", 20_000),
    ("grpc.max_receive_message_length", _RECEIVE_BYTES),
    # Reconnecting is this module's work, with its own waits.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # A channel of its own for each attempt: no shared state that remembers a failure.
    ("grpc.use_local_subchannel_pool", 1),
)
_CONNECT_SECONDS = 10.0
# Data is outstanding and nothing is acknowledged: the connection is dead whatever TCP thinks.
_ACK_SECONDS = 30.0
_BACKOFF_SECONDS = (1.0, 60.0)
# How long quiet() waits for what is under way.
_SETTLE_SECONDS = 1.0
_POLL_SECONDS = 5.0


class Session:
    """A connection that keeps itself up. Raises UsageError for an address that isn't one.

    An address off loopback is refused unless `insecure`: the connection has no encryption.
    """

    def __init__(
        self,
        address: str,
        spool: Spool,
        device: Device,
        boot_id: str,
        *,
        insecure: bool = False,
        capabilities: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        check_address(address, insecure=insecure)
        self.address = address
        self._spool = spool
        self._hello = session_pb2.Hello(
            protocol_version=PROTOCOL_VERSION,
            agent_version=__version__,
            capabilities=capabilities,
            device=device_message(device),
            boot_id=boot_id,
            wants_plan=True,
        )
        self._clock = clock
        self._uniform = uniform
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)
        # Guards everything below; notified whenever any of it changes.
        self._changed = threading.Condition()
        self._stopping = False
        self._kicked = False
        self._quiet = 0
        self._stream: _Stream | None = None
        self._answered = False
        self._plan: Plan | None = None
        self._heartbeat: session_pb2.Heartbeat | None = None
        self._final = False
        self._rejected = 0
        self.failure = ""

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._thread.start()

    def plan(self, timeout_seconds: float) -> Plan | None:
        """Return the collector's plan, None where the first attempt failed or nothing came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._answered, timeout_seconds)
            return self._plan

    def heartbeat(self, run_id: str, done: int, planned: int, current: str) -> None:
        """Tell the collector how far a run is, as soon as something may be sent."""
        with self._changed:
            self._heartbeat = session_pb2.Heartbeat(
                run_id=run_id, done=done, planned=planned, current=current
            )
            self._changed.notify_all()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Send nothing in the block. What waits and what is under way is given a moment first."""
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(self._settled, _SETTLE_SECONDS)
            self._quiet += 1
            self._changed.wait_for(lambda: self._stream is None or self._stream.parked, _SETTLE_SECONDS)
        try:
            yield
        finally:
            with self._changed:
                self._quiet -= 1
                self._changed.notify_all()

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until the collector has acknowledged everything; say whether it has."""
        with self._changed:
            self._kicked = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._final or not self._unacknowledged(), timeout_seconds)
            self._kicked = False
            rejected = self._rejected
            if rejected:
                log.warning("the collector rejected %d records; its log says why", rejected)
            return done and not self._unacknowledged()

    def close(self) -> None:
        """End the connection and its thread."""
        with self._changed:
            self._stopping = True
            if self._stream:
                self._stream.cancel()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_CONNECT_SECONDS)

    def fetch_model(self, ref: ModelRef, folder: Path) -> Path:
        """Return the file of a weightless model, fetched into `folder` unless it is there.

        Its name is its digest: the label it came with is never a path. Raises UnreachableError.
        """
        path = folder / f"{ref.sha256}.onnx"
        if path.exists():
            return path
        partial = path.with_suffix(".part")
        offset = partial.stat().st_size if partial.exists() else 0
        try:
            with self._channel() as channel, partial.open("ab") as file:
                stub = session_pb2_grpc.CollectorServiceStub(channel)  # type: ignore[no-untyped-call]
                request = model_pb2.FetchModelRequest(sha256=ref.sha256, offset=offset)
                for response in stub.FetchModel(request, timeout=60):
                    offset += len(response.part.data)
                    if offset > min(ref.size_bytes, _MODEL_BYTES):
                        raise UnreachableError(f"it is longer than the {ref.size_bytes} bytes announced")
                    file.write(response.part.data)
        except grpc.RpcError as error:
            raise UnreachableError(f"{error.code().name.lower()}: {error.details()}") from error
        if hashlib.sha256(partial.read_bytes()).hexdigest() != ref.sha256:
            partial.unlink()
            raise UnreachableError("what came doesn't match its digest")
        partial.chmod(0o400)
        os.replace(partial, path)  # noqa: PTH105 - atomic, and says so
        return path

    # The background thread.

    def _run(self) -> None:
        attempt = 0
        while self._may_connect():
            progressed = self._connect()
            attempt = 0 if progressed else attempt + 1
            with self._changed:
                self._stream = None
                self._answered = True
                self._changed.notify_all()
                if self._final or self._stopping:
                    return
                low, high = _BACKOFF_SECONDS
                # Full jitter: a fleet that lost its collector doesn't come back in step.
                delay = self._uniform(0, min(high, low * 2**attempt))
                self._changed.wait_for(lambda: self._stopping or self._kicked, delay)
            if self._kicked:
                time.sleep(min(low, delay))

    def _may_connect(self) -> bool:
        """Wait until dialing can't disturb a measurement; False to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._quiet)
            return not self._stopping

    def _channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.address, options=_CHANNEL_OPTIONS)

    def _connect(self) -> bool:
        """Hold one connection until it breaks; say whether the collector answered."""
        stream: _Stream | None = None
        with self._channel() as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
                stub = session_pb2_grpc.CollectorServiceStub(channel)  # type: ignore[no-untyped-call]
                stream = _Stream(self)
                stream.hold(stub)
            except (grpc.FutureTimeoutError, grpc.RpcError) as error:
                self._fail(error)
        return stream is not None and stream.greeted

    def _fail(self, error: Exception) -> None:
        if self._stopping:
            return
        details = error.details() if isinstance(error, grpc.RpcError) and hasattr(error, "details") else ""
        reason = diagnose(self.address) or f"the connection broke: {details or type(error).__name__}"
        with self._changed:
            first = not self.failure
            self.failure = reason
        if first:
            log.warning("collector %s: %s", self.address, reason)

    def _unacknowledged(self) -> bool:
        acked = self._stream.acked if self._stream else {}
        return any(acked.get(run_id, 0) < end for run_id, end in self._spool.positions().items())

    def _settled(self) -> bool:
        stream = self._stream
        if stream is None or not stream.greeted:
            return True
        return stream.parked and not stream.outstanding and self._heartbeat is None and not stream.waiting()


class _Stream:
    """One connection's state; its session's condition guards it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = session._changed
        self._limits = _LIMITS
        self._call: Any = None
        self._ended = False
        self._slow_until = 0.0
        self._progress_at = session._clock()
        self._sent: dict[str, int] = {}
        # Ends of the batches that are under way, oldest first.
        self.outstanding: list[tuple[str, int]] = []
        self.acked: dict[str, int] = {}
        self.greeted = False
        # The sending side waits for something to send: nothing of it is in the transport's hands.
        self.parked = False

    def hold(self, stub: session_pb2_grpc.CollectorServiceStub) -> None:
        """Talk until the stream ends. Raises grpc.RpcError where it breaks."""
        with self._changed:
            self._session._stream = self
            self._call = stub.Session(self._requests())
        try:
            for response in self._call:
                with self._changed:
                    self._handle(response)
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def cancel(self) -> None:
        """Break the connection."""
        self._ended = True
        if self._call:
            self._call.cancel()

    def _requests(self) -> Iterator[session_pb2.SessionRequest]:
        hello = session_pb2.Hello()
        hello.CopyFrom(self._session._hello)
        for run_id, end in self._session._spool.positions().items():
            hello.runs.add(run_id=run_id, seq=end)
        yield session_pb2.SessionRequest(hello=hello)
        while (request := self._await_request()) is not None:
            yield request

    def _await_request(self) -> session_pb2.SessionRequest | None:
        with self._changed:
            while not self._ended:
                if self.greeted and not self._session._quiet:
                    request = self._next_request()
                    if request is not None:
                        self.parked = False
                        return request
                if self.outstanding and self._session._clock() - self._progress_at > _ACK_SECONDS:
                    self.cancel()
                    break
                self.parked = True
                self._changed.notify_all()
                self._changed.wait(_POLL_SECONDS)
            return None

    def _next_request(self) -> session_pb2.SessionRequest | None:
        session = self._session
        if session._heartbeat is not None:
            heartbeat, session._heartbeat = session._heartbeat, None
            return session_pb2.SessionRequest(heartbeat=heartbeat)
        if len(self.outstanding) >= self._limits.window_batches or session._clock() < self._slow_until:
            return None
        for run_id, begin, end in self.waiting():
            return session_pb2.SessionRequest(batch=self._batch(run_id, begin, end))
        return None

    def waiting(self) -> list[tuple[str, int, int]]:
        """Return (run, first, end) of the records not yet sent."""
        positions = self._session._spool.positions()
        unsent = [(run_id, self._sent.get(run_id, 0), end) for run_id, end in positions.items()]
        return [(run_id, begin, end) for run_id, begin, end in unsent if begin < end]

    def _batch(self, run_id: str, begin: int, end: int) -> session_pb2.Batch:
        batch = session_pb2.Batch(run_id=run_id)
        size = 0
        for record in self._session._spool.pending(run_id, begin):
            size += record.ByteSize()
            full = len(batch.records) >= self._limits.batch_records or size > self._limits.batch_bytes
            if record.seq >= end or (batch.records and full):
                break
            batch.records.append(record)
        # Records that a damaged spool has lost at its end are sent as lost, or the run never ends.
        if not batch.records:
            batch.records.add(seq=begin)
        self._sent[run_id] = batch.records[-1].seq + 1
        if not self.outstanding:
            self._progress_at = self._session._clock()
        self.outstanding.append((run_id, self._sent[run_id]))
        return batch

    def _handle(self, response: session_pb2.SessionResponse) -> None:
        session = self._session
        kind = response.WhichOneof("message")
        if kind == "hello_ack":
            ack = response.hello_ack
            if ack.HasField("limits"):
                self._limits = ack.limits
            for position in ack.resume:
                self._acknowledge(position.run_id, position.seq)
                self._sent[position.run_id] = position.seq
            if session._plan is None and ack.HasField("plan"):
                session._plan = parse_plan(ack.plan)
            self.greeted = session._answered = True
            session.failure = ""
        elif kind == "ack":
            session._rejected += len(response.ack.rejected)
            self._acknowledge(response.ack.run_id, response.ack.next_seq)
        elif kind == "slow":
            self._slow_until = session._clock() + response.slow.retry_after_seconds
        elif kind == "close":
            session.failure = response.close.reason
            session._final = response.close.final
            log.warning("collector %s: %s", session.address, response.close.reason)
            self.cancel()

    def _acknowledge(self, run_id: str, next_seq: int) -> None:
        self.acked[run_id] = max(next_seq, self.acked.get(run_id, 0))
        # The collector may know less than it did (an older backup): then it is sent again.
        self._sent[run_id] = max(self._sent.get(run_id, 0), next_seq)
        self.outstanding = [
            (run, end) for run, end in self.outstanding if run != run_id or end > self.acked[run_id]
        ]
        self._progress_at = self._session._clock()
        self._session._spool.ack(run_id, next_seq)


def check_address(address: str, *, insecure: bool = False) -> None:
    """Raise UsageError unless `address` is host:port, and on loopback unless `insecure`."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"{address!r} is not an address: give host:port, as in 127.0.0.1:50051")
    if not insecure and not is_loopback(host):
        raise UsageError(
            f"{host} is not this machine and the connection would have no encryption: "
            "--insecure allows it on a network you trust"
        )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by name or number."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
