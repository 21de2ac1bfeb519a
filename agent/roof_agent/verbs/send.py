"""`roof-agent send`: what waits in the spool goes to the collector."""

from __future__ import annotations

import argparse
import os
import sys

from roof_agent.config import resolve
from roof_agent.errors import UnreachableError, UsageError
from roof_agent.platform.discovery import boot_id, discover
from roof_agent.progress import set_up_logging

_SECONDS = 60.0


def main(arguments: argparse.Namespace) -> int:
    """Send. Raises UsageError without a collector, UnreachableError where it didn't take everything."""
    settings = resolve(arguments.given, os.environ, arguments.config)
    if settings.collector is None:
        raise UsageError("send needs --collector HOST:PORT (or ROOF_COLLECTOR)")
    set_up_logging(
        quiet=settings.quiet, verbose=settings.verbose, as_json=settings.log_format == "json", redraw=False
    )
    from roof_agent.session import Session
    from roof_agent.spool import open_spool

    spool = open_spool(settings.spool)
    waiting = len(spool.positions())
    if not waiting:
        sys.stdout.write("nothing waits in the spool\n")
        return 0
    session = Session(settings.collector, spool, discover(), boot_id())
    session.start()
    try:
        if not session.drain(_SECONDS):
            raise UnreachableError(f"{settings.collector} hasn't taken everything; it stays in the spool")
    finally:
        session.close()
    sys.stdout.write(f"sent {waiting} run{'s' * (waiting != 1)} to {settings.collector}\n")
    return 0
