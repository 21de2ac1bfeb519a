"""One connection to the collector, from Hello to its end.

Its coroutines run in the session's own thread; what others read of it is guarded by a condition. grpc.aio
because its idle stream sleeps, while a blocking one wakes up 15 times a second beside the measurements.
Whatever breaks ends the stream; the session dials again and the collector says where to go on, so
nothing here needs to be undone.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import grpc

from roof_agent.session_state import State
from roofline.v1 import session_pb2, session_pb2_grpc

log = logging.getLogger(__name__)

PROTOCOL_VERSION = 1

# Until the collector says what it takes.
_LIMITS = session_pb2.Limits(batch_records=1000, batch_bytes=256 << 10, window_batches=8)
_SLOW_SECONDS = 60.0
# A batch of a thousandth of 256 KiB is as small as one record.
_MOST_STRIKES = 5
# A run that Hello doesn't name is sent from its beginning, which is harmless.
_HELLO_RUNS = 1000


class Stream:
    """One connection's progress. The public attributes are read under the state's condition."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._changed = state.changed
        self._limits = _LIMITS
        # Nothing more is to be sent; the call is to be broken off; it has ended.
        self._closing = False
        self._aborted = False
        self._ended = False
        # The next record of each run to be sent, and batches (run, begin, end) under way, oldest first.
        self._next: dict[str, int] = {}
        self._outstanding: list[tuple[str, int, int]] = []
        self._slow_until = 0.0
        self._waiting_since = state.clock()
        # Whether the transport has taken all that it was given.
        self.parked = False
        self.greeted = False
        self.progressed = False
        # Why it ended, and that dialing again can't help.
        self.failure = ""
        self.code: grpc.StatusCode | None = None
        self.final = False

    async def hold(self, channel: grpc.aio.Channel) -> None:
        """Talk until the stream ends; `failure` and `code` say why it did."""
        stub = session_pb2_grpc.CollectorServiceStub(channel)  # type: ignore[no-untyped-call]
        call = stub.Session()
        tasks = [asyncio.create_task(self._send(call)), asyncio.create_task(self._read(call))]
        while not self._ended and not self._aborted:
            deadline = self._deadline()
            left = None if deadline is None else deadline - self._state.clock()
            if left is not None and left <= 0:
                self._give_up()
            else:
                await self._state.pulse.wait(left)
        call.cancel()
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    def finish(self) -> None:
        """Send nothing more, and let the collector end the stream."""
        self._closing = True
        self._aborted = not self.greeted
        self._state.notify()

    def cancel(self, reason: str = "") -> None:
        """End the stream now."""
        self.failure = self.failure or reason
        self._closing = self._aborted = True
        self._state.notify()

    def settled(self) -> bool:
        """Say whether all that can be sent now has been, and was acknowledged."""
        return self.greeted and self.parked and not self._outstanding and not self._has_work()

    def pause(self, seconds: float) -> None:
        """Leave out a time in which nothing could be sent or read."""
        self._waiting_since += seconds

    def _deadline(self) -> float | None:
        """Return when the stream is given up unless something happens."""
        if self._state.quiet or self._closing:
            return None
        if not self.greeted:
            return self._waiting_since + self._state.timing.connect
        return self._waiting_since + self._state.timing.ack if self._outstanding else None

    def _give_up(self) -> None:
        timing = self._state.timing
        if self.greeted:
            self._state.strikes = min(self._state.strikes + 1, _MOST_STRIKES)
            self.cancel(f"nothing was acknowledged in {timing.ack:.0f} s")
        else:
            # The session finds out why.
            self.code = grpc.StatusCode.UNAVAILABLE
            self.cancel(f"it didn't answer in {timing.connect:.0f} s")

    # What is sent.

    async def _send(self, call: Any) -> None:
        try:
            await call.write(session_pb2.SessionRequest(hello=self._hello()))
            while (request := await self._await_request()) is not None:
                await call.write(request)
            await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The call has ended: its reader finds out why.
            return
        except Exception:
            self._ended = True
            self._state.notify()
            raise

    def _hello(self) -> session_pb2.Hello:
        hello = session_pb2.Hello()
        hello.CopyFrom(self._state.hello)
        for run_id, end in itertools.islice(self._state.spool.positions().items(), _HELLO_RUNS):
            hello.runs.add(run_id=run_id, seq=end)
        return hello

    async def _await_request(self) -> session_pb2.SessionRequest | None:
        """Return what is to be sent next as soon as it may be; None ends the stream."""
        # To come here for the next means that the transport took the last.
        with self._changed:
            self.parked = True
        self._state.notify()
        while not self._closing:
            with self._changed:
                if self.greeted and not self._state.quiet and self._has_work():
                    self.parked = False
                    request = self._next_request()
                    # The deadline may have changed.
                    self._state.notify()
                    return request
                slow = self._slow_until - self._state.clock()
                left = slow if slow > 0 and not self._state.quiet else None
            await self._state.pulse.wait(left)
        return None

    def _has_work(self) -> bool:
        if self._state.heartbeat is not None:
            return True
        if len(self._outstanding) >= max(self._limits.window_batches >> self._state.strikes, 1):
            return False
        return self._state.clock() >= self._slow_until and self._unsent() is not None

    def _unsent(self) -> tuple[str, int] | None:
        for run_id, end in self._state.spool.positions().items():
            begin = self._next.get(run_id, 0)
            if begin < end:
                return run_id, begin
        return None

    def _next_request(self) -> session_pb2.SessionRequest:
        heartbeat, self._state.heartbeat = self._state.heartbeat, None
        if heartbeat is not None:
            return session_pb2.SessionRequest(heartbeat=heartbeat)
        unsent = self._unsent()
        assert unsent is not None
        return session_pb2.SessionRequest(batch=self._batch(*unsent))

    def _batch(self, run_id: str, begin: int) -> session_pb2.Batch:
        """Return the records from `begin` on, as many as fit, and count them as under way."""
        batch = session_pb2.Batch(run_id=run_id)
        size = 0
        most_bytes = self._limits.batch_bytes >> 2 * self._state.strikes
        for record in self._state.spool.pending(run_id, begin):
            size += record.ByteSize()
            full = len(batch.records) >= self._limits.batch_records or size > most_bytes
            if batch.records and full:
                break
            batch.records.append(record)
        following = batch.records[-1].seq + 1
        self._next[run_id] = following
        if not self._outstanding:
            self._waiting_since = self._state.clock()
        self._outstanding.append((run_id, begin, following))
        return batch

    # What is received.

    async def _read(self, call: Any) -> None:
        try:
            while (response := await call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]
                # An acknowledgement deletes files: not while something is timed.
                while self._state.quiet and not self._closing:
                    await self._state.pulse.wait(None)
                with self._changed:
                    self._handle(response)
                self._state.notify()
            code, details = await call.code(), await call.details()
            if code is grpc.StatusCode.OK:
                self._lost("the collector ended the session")
            else:
                self._lost(one_line(details or ""), code)
        except grpc.RpcError as error:
            self._lost(one_line(error.details() or ""), error.code())
        finally:
            self._ended = True
            self._state.notify()

    def _lost(self, reason: str, code: grpc.StatusCode | None = None) -> None:
        """Note why the stream ended, unless it was meant to or that is known."""
        with self._changed:
            if not self._closing:
                self.failure = self.failure or reason
                self.code = self.code or code

    def _handle(self, response: session_pb2.SessionResponse) -> None:
        kind = response.WhichOneof("message")
        if kind == "hello_ack":
            self._greet(response.hello_ack)
        elif kind == "ack":
            self._acknowledge(response.ack)
        elif kind == "slow":
            wait = min(response.slow.retry_after_seconds, _SLOW_SECONDS)
            self._slow_until = self._state.clock() + wait
        elif kind == "close":
            self.final = response.close.final
            self.cancel(one_line(response.close.reason) or "the collector closed the session")

    def _greet(self, ack: session_pb2.HelloAck) -> None:
        if ack.protocol_version != PROTOCOL_VERSION:
            self.final = True
            self.cancel(
                f"it speaks protocol {ack.protocol_version} and this agent {PROTOCOL_VERSION}: "
                "update the older of the two"
            )
            return
        if ack.HasField("limits"):
            self._limits = session_pb2.Limits(
                batch_records=ack.limits.batch_records or _LIMITS.batch_records,
                batch_bytes=ack.limits.batch_bytes or _LIMITS.batch_bytes,
                window_batches=ack.limits.window_batches or _LIMITS.window_batches,
            )
        ends = self._state.spool.positions()
        for position in ack.resume:
            # The collector may know less than it did (an older backup): then that is sent again.
            self._next[position.run_id] = min(position.seq, ends.get(position.run_id, 0))
            self._state.spool.ack(position.run_id, position.seq)
        if self._state.plan is None and ack.HasField("plan"):
            self._state.plan = ack.plan
        self.greeted = True

    def _acknowledge(self, ack: session_pb2.Ack) -> None:
        rejected = [(ack.run_id, rejection.seq, one_line(rejection.reason)) for rejection in ack.rejected]
        if rejected:
            _, seq, reason = rejected[0]
            log.warning(
                "the collector rejected %d of run %s's records; record %d: %s",
                len(rejected),
                ack.run_id,
                seq,
                reason,
            )
        self._state.rejections += rejected
        # What wasn't sent can't have been committed, whatever the collector says.
        next_seq = min(ack.next_seq, self._next.get(ack.run_id, 0))
        left = []
        for run_id, begin, end in self._outstanding:
            if run_id != ack.run_id or begin >= next_seq:
                left.append((run_id, begin, end))
                continue
            self._state.delivered += min(end, next_seq) - begin
            if end > next_seq:
                left.append((run_id, next_seq, end))
        self._outstanding = left
        self._waiting_since = self._state.clock()
        self._state.strikes = max(self._state.strikes - 1, 0)
        self.progressed = True
        self._state.spool.ack(ack.run_id, next_seq)


def one_line(text: str) -> str:
    """Return text fit for the other side or a log: without control characters, not long."""
    return "".join(char if char.isprintable() else "?" for char in text)[:200]
