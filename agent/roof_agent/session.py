"""The agent's way to the collector: sends what the spool holds, and forgets it once it is committed.

A background thread dials for ever. Whatever breaks, sending goes on where the collector says that it
left off. Inside `quiet()` nothing is sent, read, synced or logged: measurements are timed there.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from roof_agent import __version__
from roof_agent.address import check_address, is_loopback, split_address
from roof_agent.diagnose import diagnose
from roof_agent.fetch import fetch_model
from roof_agent.records import Device, ModelRef, Plan
from roof_agent.session_state import State, Timing
from roof_agent.spool import Spool
from roof_agent.stream import PROTOCOL_VERSION, Stream, one_line
from roof_agent.wire import device_message, parse_plan
from roofline.v1 import session_pb2

log = logging.getLogger(__name__)

_CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Without it a frozen peer took 69 s to notice.
    ("grpc.http2.ping_timeout_ms", 20_000),
    ("grpc.max_receive_message_length", 1 << 20),
    # Dialing again is this module's work, with its own waits, on a channel that remembers no failure.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # Estimating the bandwidth pings after what is received, maybe into a measurement.
    ("grpc.http2.bdp_probe", 0),
    # A collector stands on the bench, not behind the proxy to the web.
    ("grpc.enable_http_proxy", 0),
)


class Session:
    """A connection that keeps itself up.

    Raises UsageError for an address that isn't one, and for one off this machine without `credentials`
    unless `insecure`: there is no encryption then.
    """

    def __init__(
        self,
        address: str,
        spool: Spool,
        device: Device,
        boot_id: str,
        *,
        insecure: bool = False,
        credentials: grpc.ChannelCredentials | None = None,
        capabilities: tuple[str, ...] = (),
        timing: Timing = Timing(),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        check_address(address, insecure=insecure or credentials is not None)
        self.address = address
        self._credentials = credentials
        self._timing = timing
        self._uniform = uniform
        self._spool = spool
        hello = session_pb2.Hello(
            protocol_version=PROTOCOL_VERSION,
            agent_version=__version__,
            capabilities=capabilities,
            device=device_message(device),
            boot_id=boot_id,
            wants_plan=True,
        )
        self._state = State(spool, hello, clock, timing)
        self._changed = self._state.changed
        self._thread = threading.Thread(target=self._run, name="roof-session", daemon=True)
        self._stream: Stream | None = None
        self._stopping = False
        self._diagnosing = False
        # The first attempt has come to its end, one way or the other.
        self._answered = False
        # Somebody waits: don't back off for long.
        self._drains = 0
        self._kicked = False
        self._final = False
        self._failure = ""
        # What was last said of it: an outage is no news at each attempt.
        self._said = ""
        spool.listener = self._state.notify

    @property
    def state(self) -> str:
        """`connected`, `connecting`, or why the last attempt failed."""
        with self._changed:
            return "connected" if self._greeted() else self._failure or "connecting"

    @property
    def failure(self) -> str:
        """Why the collector can't be reached, empty where it can or nothing is known yet."""
        with self._changed:
            return "" if self._greeted() else self._failure

    @property
    def delivered(self) -> int:
        """How many records the collector has acknowledged to this session, rejected ones included."""
        return self._state.delivered

    @property
    def rejections(self) -> list[tuple[str, int, str]]:
        """Records that the collector has refused for good: run, sequence number, reason."""
        return list(self._state.rejections)

    def start(self) -> None:
        """Begin to connect, in the background."""
        if self._credentials is None and not is_loopback(split_address(self.address)[0]):
            log.warning("what goes to %s is neither encrypted nor authenticated", self.address)
        self._thread.start()

    def plan(self, timeout_seconds: float) -> Plan | None:
        """Return the collector's plan, None where the first attempt failed or nothing came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._answered or self._greeted(), timeout_seconds)
            return None if self._state.plan is None else parse_plan(self._state.plan)

    def fetch_model(self, ref: ModelRef, folder: Path) -> Path:
        """Return the read-only file of a model, fetched into `folder`. Raises UnreachableError."""
        if self._credentials is None:
            channel = grpc.insecure_channel(self.address, options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.secure_channel(self.address, self._credentials, options=_CHANNEL_OPTIONS)
        with channel:
            return fetch_model(channel, ref, folder)

    def heartbeat(self, run_id: str, done: int, planned: int, current: str) -> None:
        """Tell the collector how far a run is, as soon as something may be sent."""
        with self._changed:
            self._state.heartbeat = session_pb2.Heartbeat(
                run_id=run_id, done=done, planned=planned, current=one_line(current)
            )
            self._state.notify()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Send, read and log nothing in the block.

        What is under way is given a moment to arrive first; a connection that is then still busy is
        broken off, since sending twice is harmless and a disturbed measurement isn't.
        """
        clock = self._state.clock
        with self._changed:
            settle = self._timing.settle
            self._changed.wait_for(self._settled, settle)
            self._state.quiet += 1
            begin = clock()
            stream = self._stream
            if stream is not None and not (stream.greeted and stream.parked):
                stream.cancel()
                self._changed.wait_for(lambda: self._stream is not stream, settle)
        try:
            yield
        finally:
            with self._changed:
                self._state.quiet -= 1
                if self._stream is not None:
                    self._stream.pause(clock() - begin)
                self._state.notify()

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until the collector has acknowledged everything; say whether it has."""
        with self._changed:
            self._drains += 1
            self._kicked = True
            self._state.notify()
            self._changed.wait_for(lambda: self._final or not self._spool.unacknowledged(), timeout_seconds)
            self._drains -= 1
        return not self._spool.unacknowledged()

    def close(self) -> None:
        """End the connection and its thread."""
        with self._changed:
            self._stopping = True
            if self._stream is not None:
                self._stream.finish()
            self._state.notify()
        if not self._thread.is_alive():
            return
        self._thread.join(self._timing.farewell)
        with self._changed:
            if self._stream is not None:
                self._stream.cancel()
        self._thread.join(self._timing.connect)

    def _settled(self) -> bool:
        return not self._diagnosing if self._stream is None else self._stream.settled()

    def _greeted(self) -> bool:
        return self._stream is not None and self._stream.greeted

    def _channel(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.address, options=_CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(self.address, self._credentials, options=_CHANNEL_OPTIONS)

    # The background thread.

    def _run(self) -> None:
        asyncio.run(self._stay())

    async def _stay(self) -> None:
        """Dial for ever, until closed or told for good to go away."""
        self._state.pulse.bind()
        try:
            attempt = 0
            while (stream := await self._dial()) is not None:
                attempt = 0 if stream.progressed else attempt + 1
                await self._explain(stream)
                with self._changed:
                    self._final = stream.final
                    self._answered = True
                self._state.notify()
                if stream.final:
                    break
                await self._back_off(attempt)
        finally:
            with self._changed:
                self._state.pulse.unbind()

    async def _dial(self) -> Stream | None:
        """Hold one connection until it ends; None where the session is closed."""
        while True:
            with self._changed:
                if self._stopping:
                    return None
                if not self._state.quiet:
                    stream = self._stream = Stream(self._state)
                    break
            await self._state.pulse.wait(None)
        async with self._channel() as channel:
            await stream.hold(channel)
        with self._changed:
            self._stream = None
            if stream.greeted:
                self._failure = ""
            if stream.progressed:
                self._said = ""
        self._state.notify()
        return stream

    async def _explain(self, stream: Stream) -> None:
        """Find out why a stream ended, and say so where that is news."""
        reason = stream.failure
        if stream.code is grpc.StatusCode.UNIMPLEMENTED:
            reason = "a gRPC server answers, but no roofline collector of this version"
        elif stream.code is grpc.StatusCode.UNAVAILABLE:
            reason = self._diagnose() or reason
        while self._state.quiet and not self._stopping:
            await self._state.pulse.wait(None)
        with self._changed:
            self._failure = reason or self._failure
            new = reason not in {"", self._said} and not self._stopping
            self._said = reason or self._said
        if new:
            log.warning("collector %s: %s", self.address, reason)

    def _diagnose(self) -> str:
        with self._changed:
            if self._stopping or self._state.quiet:
                return ""
            self._diagnosing = True
        # It blocks: there is nothing else to be done meanwhile.
        reason = diagnose(self.address, tls=self._credentials is not None)
        with self._changed:
            self._diagnosing = False
        self._state.notify()
        return reason

    async def _back_off(self, attempt: int) -> None:
        low, high = self._timing.backoff
        ceiling = low if self._drains else min(high, low * 2 ** min(attempt, 16))
        # Full jitter: a fleet that lost its collector doesn't come back in step.
        end = self._state.clock() + self._uniform(0, ceiling)
        while (left := end - self._state.clock()) > 0 and not self._stopping and not self._kicked:
            await self._state.pulse.wait(left)
        self._kicked = False
