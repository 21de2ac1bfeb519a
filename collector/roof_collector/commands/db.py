"""`roof-collector db upgrade`: bring a database to this version's tables."""

from __future__ import annotations

import argparse
import sys

from roof_collector.commands import Subparsers, add_database


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "look after the database"
    parser = subparsers.add_parser("db", help=words, description=words)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "bring the database to this version's tables, after a copy of it was made"
    add_database(actions.add_parser("upgrade", help=words, description=words))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Upgrade."""
    from roof_collector.store.engine import open_database

    open_database(arguments.database, note=_say).dispose()
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
