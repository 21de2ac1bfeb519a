"""Stopping a run by signal, without tearing a record in two."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from roof_agent.errors import Exit


class Stopped(Exception):  # noqa: N818 - an order, not an error
    """The run was told to stop by a signal."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.exit_code = Exit.INTERRUPTED if signum == signal.SIGINT else Exit.TERMINATED


class Stop:
    """Turns SIGINT and SIGTERM into `Stopped`, but only where that can't tear a record in two."""

    def __init__(self) -> None:
        self._signum: int | None = None
        self._open = False

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Handle both signals for the time of the block."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        former = [signal.signal(number, self._on_signal) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, former, strict=True):
                signal.signal(number, handler)

    @property
    def requested(self) -> bool:
        """Return whether a signal has come."""
        return self._signum is not None

    @contextmanager
    def interruptible(self, *, again: bool = False) -> Iterator[None]:
        """Raise Stopped in the block when a signal comes, or at once if one has come before.

        `again`: one that came before has been dealt with; only another counts.
        """
        self._open = True
        try:
            if self._signum is not None and not again:
                raise Stopped(self._signum)
            yield
        finally:
            self._open = False

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        self._signum = signum
        if self._open:
            # Once: a second signal must not interrupt the clearing up after the first.
            self._open = False
            raise Stopped(signum)
