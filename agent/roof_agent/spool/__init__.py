"""What a run has found, kept on the board until a collector has committed it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from roof_agent.spool.base import Spool
from roof_agent.spool.disk import DiskSpool
from roof_agent.spool.memory import MemorySpool

__all__ = ["DiskSpool", "MemorySpool", "Spool", "default_folder", "open_spool"]


def open_spool(folder: Path | None = None, warn: Callable[[str], None] | None = None) -> Spool:
    """Return the spool of `folder` (the default one if None), or one in memory, said through `warn`."""
    place = folder or default_folder()
    try:
        spool = DiskSpool(place, warn=warn)
    except OSError as error:
        if warn:
            warn(f"{place} can't be written ({error.strerror}): until sent, results are in memory only")
        return MemorySpool()
    if spool.damaged and warn:
        warn(f"{spool.damaged} damaged parts of the spool were skipped; copies are in {place / 'quarantine'}")
    return spool


def default_folder(environment: dict[str, str] | None = None) -> Path:
    """Return where results wait: systemd's state directory, else the user's."""
    known = os.environ if environment is None else environment
    if known.get("STATE_DIRECTORY"):
        return Path(known["STATE_DIRECTORY"]) / "spool"
    state = known.get("XDG_STATE_HOME") or Path(known.get("HOME") or "/var/tmp") / ".local/state"  # noqa: S108
    return Path(state) / "roofline" / "spool"
