"""`roof-collector report`: a stored run as text."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from roof_agent.errors import UsageError
from roof_collector.commands import Subparsers, add_database, add_json


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "print a run: bandwidth, peak, ridge, networks and their layers"
    parser = subparsers.add_parser("report", help=words, description=words)
    parser.add_argument("run_id", metavar="RUN", help="a run's identifier (see roof-collector runs)")
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the run."""
    from roof_collector import report
    from roof_collector.store.engine import open_database
    from roof_collector.web.errors import PageError

    engine = open_database(arguments.database, read_only=True)
    try:
        document, networks = report.read(engine, arguments.run_id)
    except PageError as error:
        raise UsageError(f"{arguments.run_id}: {error}") from error
    finally:
        engine.dispose()
    if arguments.json:
        whole = {
            "run": dataclasses.asdict(document),
            "networks": [dataclasses.asdict(one) for one in networks],
        }
        json.dump(whole, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(report.render(document, networks))
    return 0
