"""`roof-agent send`: what waits in the spool goes to the collector."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from roof_agent.config import resolve
from roof_agent.errors import UnreachableError
from roof_agent.platform.discovery import discover
from roof_agent.progress import set_up_logging
from roof_agent.uplink import session_to

log = logging.getLogger(__name__)

_SECONDS = 60.0


def main(arguments: argparse.Namespace) -> int:
    """Send. Raises UsageError without a collector, UnreachableError where it didn't take everything."""
    settings = resolve(arguments.given, os.environ, arguments.config)
    set_up_logging(
        quiet=settings.quiet, verbose=settings.verbose, as_json=settings.log_format == "json", redraw=False
    )
    # gRPC and protobuf are loaded where they are needed only.
    from roof_agent.spool import open_spool

    spool = open_spool(settings.spool, log.warning)
    waiting = len(spool.positions())
    with session_to(settings, discover(), spool) as session:
        if waiting and not session.drain(_SECONDS):
            reason = f" ({session.failure})" if session.failure else ""
            raise UnreachableError(
                f"{settings.collector} hasn't taken everything{reason}; the rest stays in the spool"
            )
    sys.stdout.write(f"{waiting} run{'s' * (waiting != 1)} sent to {settings.collector}\n")
    return 0
