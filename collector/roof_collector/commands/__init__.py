"""The verbs of `roof-collector`, one a module: its parser and what it does.

A verb's module has `add_parser(subparsers)`, which sets the default `run` to the module's
`run(arguments) -> int`. All of them are imported for the parser's sake, so they import nothing heavy
before they run. Add a verb's module to VERBS and it is there.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = Any

# In the order in which help shows them.
VERBS: tuple[str, ...] = (
    "serve",
    "devices",
    "runs",
    "export",
    "analyze",
    "predict",
    "table",
    "models",
    "whatif",
    "demo",
    "report",
    "db",
    "completion",
)

DEFAULT_DATABASE = "sqlite:///roofline.sqlite"


class Verb(Protocol):
    """What a verb's module has."""

    def add_parser(self, subparsers: Subparsers) -> None:
        """Add the verb's own parser."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code."""


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add --database."""
    parser.add_argument(
        "--database",
        default=DEFAULT_DATABASE,
        metavar="URL",
        help="sqlite:///FILE or postgresql+psycopg://... (default: %(default)s)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
