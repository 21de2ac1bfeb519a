"""`roof-collector export RUN`: a whole run, with every repetition, as one JSON document."""

from __future__ import annotations

import argparse
import json
import sys

from roof_agent.errors import UsageError
from roof_collector.commands import Subparsers, add_database, add_json


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "print a whole run, with every repetition, as one JSON document"
    parser = subparsers.add_parser("export", help=words, description=words)
    parser.add_argument("run_id", metavar="RUN", help="its identifier, or how that begins")
    parser.add_argument(
        "--device", default="", metavar="ID", help="its board's identifier, or how that begins"
    )
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the document; there is no other form, so --json changes nothing."""
    from roof_collector.store.engine import open_database
    from roof_collector.store.export import run_document

    engine = open_database(arguments.database, read_only=True)
    try:
        with engine.connect() as connection:
            document = run_document(connection, arguments.run_id, arguments.device)
    finally:
        engine.dispose()
    if document is None:
        raise UsageError(f"there is no run {arguments.run_id} in {arguments.database}")
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    return 0
