"""The command line of `roof-collector`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import cast

from roof_agent.errors import EXIT_HELP, UserError
from roof_collector import __version__
from roof_collector.commands import VERBS, Verb

_EPILOG = "exit codes:\n" + "\n".join(f"  {code.value:3}  {words}" for code, words in EXIT_HELP.items())


def parser() -> argparse.ArgumentParser:
    """Return the whole command line's parser; completion scripts and documents are made from it."""
    top = argparse.ArgumentParser(
        prog="roof-collector",
        description="Keep what boards measured, show what they can do, predict what networks will cost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"roof-collector {__version__}")
    subparsers = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name in VERBS:
        verb = cast("Verb", importlib.import_module(f"roof_collector.commands.{name}"))
        verb.add_parser(subparsers)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code; a UserError becomes one line."""
    chosen = parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except UserError as error:
        sys.stderr.write(f"roof-collector: {error}\n")
        return int(error.exit_code)
    except BrokenPipeError:
        # Whoever read standard output has gone (`| head`); nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
