"""The one thread that writes: whatever waits goes into one transaction, and is answered after COMMIT."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from roof_agent.errors import RoofError
from roof_collector.store.rows import Batch, Job, Receipt, Rows
from roof_collector.store.writes import write

log = logging.getLogger(__name__)

# What may wait, and what goes into one transaction, by the size of the messages.
QUEUE_BYTES = 8 << 20
GROUP_BYTES = 2 << 20

_RETRY_SECONDS = (0.2, 5.0)


class StoppedError(RoofError):
    """The writer has stopped; what it was given isn't stored."""


@dataclass(frozen=True)
class _Order:
    job: Job
    size: int
    answer: asyncio.Future[Any]


class Writer:
    """Writes jobs for a running event loop.

    A database that can't be written for now (locked, full, away) is tried again until it can be: nothing
    is answered meanwhile, and senders wait.
    """

    def __init__(
        self, engine: Engine, *, queue_bytes: int = QUEUE_BYTES, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._engine = engine
        self._queue_bytes = queue_bytes
        self._clock_ns = clock_ns
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._stopping = threading.Event()
        self._closed = False
        self._waiting_bytes = 0
        self._room = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        # Why the database can't be written, "" while it can be.
        self.trouble = ""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    async def submit(self, job: Job, size: int) -> asyncio.Future[Any]:
        """Return as `put` does, and wait first while too much is queued."""
        async with self._room:
            await self._room.wait_for(
                lambda: (
                    self._closed or not self._waiting_bytes or self._waiting_bytes + size <= self._queue_bytes
                )
            )
        return self.put(job, size)

    def put(self, job: Job, size: int = 0) -> asyncio.Future[Any]:
        """Have a job written, whose message had `size` bytes, and return its answer to come.

        Raises StoppedError after `stop`; the answer raises it where the job could not be committed by then.
        """
        if self._closed:
            raise StoppedError("the collector is stopping")
        self._waiting_bytes += size
        answer: asyncio.Future[Any] = self._loop.create_future()
        # Whoever asked may be gone; an error is no surprise then.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._orders.put(_Order(job, size, answer))
        return answer

    async def stop(self) -> None:
        """Write what waits, and end; what can't be written now is given up unanswered."""
        async with self._room:
            self._closed = True
            self._room.notify_all()
        self._stopping.set()
        self._orders.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        ended = False
        while not ended:
            group: list[_Order] = []
            size = 0
            order = self._orders.get()
            while True:
                if order is None:
                    ended = True
                    break
                group.append(order)
                size += order.size
                if size >= GROUP_BYTES:
                    break
                try:
                    order = self._orders.get_nowait()
                except queue.Empty:
                    break
            if group:
                self._answer(group, self._commit([order.job for order in group]))

    def _commit(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the jobs' answers once they are committed; for one that can't be, its error."""
        delay, longest = _RETRY_SECONDS
        while True:
            try:
                with self._engine.begin() as connection:
                    answers = write(connection, jobs, self._clock_ns())
            except (OperationalError, InterfaceError) as error:
                self._say_trouble(_cause(error))
                if self._stopping.wait(delay):
                    return [StoppedError(self.trouble)] * len(jobs)
                delay = min(2 * delay, longest)
            except (DBAPIError, OverflowError, ValueError) as error:
                if len(jobs) == 1:
                    log.warning("the database refused what passed validation: %s", _cause(error))
                return self._commit_apart(jobs, error)
            else:
                self._say_trouble("")
                return answers

    def _commit_apart(self, jobs: Sequence[Job], error: Exception) -> list[Any]:
        """Find what the database refuses, reject it, and commit the others."""
        if len(jobs) > 1:
            return [answer for job in jobs for answer in self._commit([job])]
        (job,) = jobs
        if not isinstance(job, Batch):
            return [error]
        if job.rows.end - job.rows.first > 1:
            batches = [Batch(job.device_id, job.run_id, job.stream, rows) for rows in job.rows.singly()]
            receipts = [receipt for batch in batches for receipt in self._commit([batch])]
            errors = [receipt for receipt in receipts if isinstance(receipt, Exception)]
            rejections = tuple(
                one for receipt in receipts if isinstance(receipt, Receipt) for one in receipt.rejections
            )
            return errors[:1] or [Receipt(receipts[-1].next_seq, rejections)]
        if job.rows.rejections:
            return [error]
        seq = job.rows.first
        refused = Rows(
            seq, seq + 1, rejections=[(seq, "the database refused it; the collector's log says why")]
        )
        return self._commit([Batch(job.device_id, job.run_id, job.stream, refused)])

    def _say_trouble(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.error("the database can't be written, and is tried again: %s", trouble)
        elif self.trouble and not trouble:
            log.warning("the database is written again")
        self.trouble = trouble

    def _answer(self, group: Sequence[_Order], answers: Sequence[Any]) -> None:
        self._loop.call_soon_threadsafe(self._resolve, group, answers)

    def _resolve(self, group: Sequence[_Order], answers: Sequence[Any]) -> None:
        for order, answer in zip(group, answers, strict=True):
            # A session that is gone doesn't wait any more.
            if order.answer.done():
                continue
            if isinstance(answer, Exception):
                order.answer.set_exception(answer)
            else:
                order.answer.set_result(answer)
        self._waiting_bytes -= sum(order.size for order in group)
        self._loop.create_task(self._notify())

    async def _notify(self) -> None:
        async with self._room:
            self._room.notify_all()


def _cause(error: Exception) -> str:
    """Return what the database said, without the statement and its values."""
    said = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return said.strip().partition("\n")[0]
