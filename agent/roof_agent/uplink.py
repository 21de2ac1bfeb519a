"""A run's way to the collector, and what stands in for it where the agent runs alone."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from roof_agent.config import Settings
from roof_agent.errors import UnreachableError, UsageError
from roof_agent.platform.capabilities import capabilities
from roof_agent.platform.discovery import boot_id
from roof_agent.probes import LocalModel
from roof_agent.records import Content, Device, Measurement, Plan
from roof_agent.stop import Stop

if TYPE_CHECKING:
    from roof_agent.session import Session
    from roof_agent.spool import Spool

log = logging.getLogger(__name__)

# How long the collector's plan is waited for, and at the end its acknowledgements.
_PLAN_SECONDS = 10.0
_DRAIN_SECONDS = 15.0
# After a signal there is somebody who waits.
_STOPPED_DRAIN_SECONDS = 2.0


class Uplink:
    """No collector: there is no plan, and nothing to deliver."""

    def plan(self) -> Plan | None:
        """Return the collector's plan, None for the agent's own."""
        return None

    def models(self, plan: Plan) -> list[LocalModel]:
        """Return the plan's networks, fetched."""
        return []

    def emit(self, content: Content) -> None:
        """Take a record of the run that was begun last."""

    def begin(self, run_id: str) -> None:
        """Say that the records that follow are of this run."""

    def begins(self, done: int, planned: int, current: str, seconds_left: float) -> None:
        """Say how far the run is."""

    def ended(self, measurement: Measurement) -> None:
        """Say that a measurement ended."""

    def quiet(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is sent, synced or logged."""
        return nullcontext()

    def deliver(self, stop: Stop) -> None:
        """Have the collector acknowledge everything. Raises UnreachableError where it didn't."""


class CollectorUplink(Uplink):
    """Records go to the spool, and from there to the collector by the session's own thread."""

    def __init__(self, address: str, spool: Spool, session: Session, folder: Path) -> None:
        self._address = address
        self._spool = spool
        self._session = session
        self._folder = folder
        self._run_id = ""

    def plan(self) -> Plan | None:
        """Return the collector's plan; where none comes the agent's own stands in, and that is said."""
        plan = self._session.plan(_PLAN_SECONDS)
        if plan is None:
            log.warning(
                "%s hasn't answered: measuring by the agent's own plan, results wait in the spool",
                self._address,
            )
        return plan

    def models(self, plan: Plan) -> list[LocalModel]:
        """Return the plan's networks; one that can't be fetched is left out, and that is said."""
        found = []
        for ref in plan.models:
            try:
                path = self._session.fetch_model(ref, self._folder)
            except UnreachableError as error:
                log.warning("network %s can't be fetched: %s", ref.name, error)
            else:
                found.append(LocalModel(ref, path, weightless=True))
        return found

    def begin(self, run_id: str) -> None:
        """Say that the records that follow are of this run."""
        self._run_id = run_id

    def emit(self, content: Content) -> None:
        """Keep a record in the spool."""
        self._spool.append(self._run_id, content)

    def begins(self, done: int, planned: int, current: str, seconds_left: float) -> None:
        """Send a heartbeat."""
        self._session.heartbeat(self._run_id, done, planned, current)

    def quiet(self) -> AbstractContextManager[None]:
        """Return the session's quiet block."""
        return self._session.quiet()

    def deliver(self, stop: Stop) -> None:
        """Wait for the acknowledgements."""
        with stop.interruptible(again=True):
            delivered = self._session.drain(_STOPPED_DRAIN_SECONDS if stop.requested else _DRAIN_SECONDS)
        if not delivered:
            reason = f" ({self._session.failure})" if self._session.failure else ""
            raise UnreachableError(
                f"the collector {self._address} hasn't taken everything{reason}; the results are in the "
                f"spool and go with: roof-agent send --collector {self._address}"
            )


@contextmanager
def connect(settings: Settings, device: Device) -> Iterator[Uplink]:
    """Open the way to the collector that the settings name, if they name one."""
    if settings.collector is None:
        yield Uplink()
        return
    # gRPC is loaded where there is a collector only.
    from roof_agent.spool import open_spool

    spool = open_spool(settings.spool, log.warning)
    with (
        session_to(settings, device, spool) as session,
        tempfile.TemporaryDirectory(prefix="roof-agent-") as folder,
    ):
        yield CollectorUplink(settings.collector, spool, session, Path(folder))


@contextmanager
def session_to(settings: Settings, device: Device, spool: Spool) -> Iterator[Session]:
    """Return a session with the collector that the settings name. Raises UsageError without one."""
    if settings.collector is None:
        raise UsageError("there is no collector to send to: give --collector HOST:PORT or ROOF_COLLECTOR")
    from roof_agent.session import Session

    session = Session(
        settings.collector,
        spool,
        device,
        boot_id(),
        insecure=settings.insecure,
        capabilities=capabilities(),
    )
    session.start()
    try:
        yield session
    finally:
        session.close()
