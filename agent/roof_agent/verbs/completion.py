"""`roof-agent completion SHELL`: a script made by shtab in development, since boards don't have shtab."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "completions"


def main(arguments: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write((FOLDER / f"roof-agent.{arguments.shell}").read_text(encoding="utf-8"))
    return 0
