"""What a session's threads share: its state, and how they wake each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from roof_agent.spool import Spool
from roofline.v1 import session_pb2


@dataclass(frozen=True)
class Timing:
    """How long things may take, in seconds."""

    # From dialing to the collector's HelloAck.
    connect: float = 10.0
    # Records are under way and none is acknowledged: the connection is dead, whatever TCP thinks.
    ack: float = 30.0
    backoff: tuple[float, float] = (1.0, 60.0)
    # What quiet() waits for what is under way.
    settle: float = 1.0
    # What close() gives the collector to end the stream.
    farewell: float = 2.0


class Pulse:
    """Wakes coroutines of one event loop, from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sleepers: set[asyncio.Future[None]] = set()

    def bind(self) -> None:
        """Serve the running loop."""
        self._loop = asyncio.get_running_loop()

    def unbind(self) -> None:
        """Serve none any more."""
        self._loop = None

    async def wait(self, seconds: float | None) -> None:
        """Sleep until woken, or so long."""
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            await asyncio.wait_for(sleeper, seconds)
        except TimeoutError:
            pass
        finally:
            self._sleepers.discard(sleeper)

    def wake(self) -> None:
        """Wake all that wait."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)


@dataclass
class State:
    """What outlives a connection; guarded by `changed`. Every change is followed by notify()."""

    spool: Spool
    hello: session_pb2.Hello
    clock: Callable[[], float]
    timing: Timing
    changed: threading.Condition = field(default_factory=threading.Condition)
    pulse: Pulse = field(default_factory=Pulse)
    # How many hold quiet().
    quiet: int = 0
    heartbeat: session_pb2.Heartbeat | None = None
    plan: session_pb2.Plan | None = None
    delivered: int = 0
    # How often in a row nothing was acknowledged: a slow link needs small batches.
    strikes: int = 0
    rejections: list[tuple[str, int, str]] = field(default_factory=list)

    def notify(self) -> None:
        """Tell threads and coroutines that something has changed."""
        with self.changed:
            self.changed.notify_all()
            self.pulse.wake()
