"""`roof-collector runs`: what boards have measured."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from roof_agent.errors import UsageError
from roof_collector.commands import Subparsers, add_database, add_json


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "list runs, the newest first"
    parser = subparsers.add_parser("runs", help=words, description=words)
    parser.add_argument(
        "--device", default="", metavar="ID", help="of one board, by how its identifier begins"
    )
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="so many (default: %(default)s)")
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a document, or a table."""
    from roof_agent.table import columns
    from roof_collector.store.engine import open_database
    from roof_collector.store.export import newest_runs
    from roof_collector.web.views.common import run_row

    if arguments.limit < 1:
        raise UsageError("--limit is 1 or more")
    engine = open_database(arguments.database, read_only=True)
    try:
        with engine.connect() as connection:
            found = newest_runs(connection, arguments.device, arguments.limit)
    finally:
        engine.dispose()
    listed = [(row.fingerprint, row.hostname, run_row(row)) for row in found]
    if arguments.json:
        runs = [
            {"fingerprint": fingerprint, "hostname": hostname, **dataclasses.asdict(one)}
            for fingerprint, hostname, one in listed
        ]
        json.dump({"schema": 1, "runs": runs}, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return 0
    rows = [("run", "device", "host", "preset", "received", "state", "ok", "unavailable", "failed")]
    for fingerprint, hostname, one in listed:
        counts = ("" if count is None else str(count) for count in (one.ok, one.unavailable, one.failed))
        rows.append((one.run_id, fingerprint[:12], hostname, one.preset, one.received_at, one.state, *counts))
    sys.stdout.write("\n".join(columns(rows)) + "\n")
    return 0
