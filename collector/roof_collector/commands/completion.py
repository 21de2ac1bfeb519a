"""`roof-collector completion SHELL`: a script made by shtab in development."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from roof_collector.commands import Subparsers

FOLDER = Path(__file__).parent.parent / "completions"
SHELLS = ("bash", "zsh", "tcsh")


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "print a shell's completion script"
    parser = subparsers.add_parser("completion", help=words, description=words)
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write((FOLDER / f"roof-collector.{arguments.shell}").read_text(encoding="utf-8"))
    return 0
