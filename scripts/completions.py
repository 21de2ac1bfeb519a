"""Make the shells' completion scripts from the parsers: `python scripts/completions.py [--check]`."""

from __future__ import annotations

import itertools
import sys

import shtab

from roof_agent.cli import parser as agent_parser
from roof_agent.verbs.completion import FOLDER as AGENT_FOLDER
from roof_collector.cli import parser as collector_parser
from roof_collector.commands.completion import FOLDER as COLLECTOR_FOLDER
from roof_collector.commands.completion import SHELLS

PROGRAMS = ((agent_parser, AGENT_FOLDER), (collector_parser, COLLECTOR_FOLDER))


def main() -> int:
    """Write the scripts, or with --check say which differ from what the parser gives."""
    stale = []
    for (make, folder), shell in itertools.product(PROGRAMS, SHELLS):
        parser = make()
        path = folder / f"{parser.prog}.{shell}"
        script = shtab.complete(parser, shell=shell) + "\n"
        if "--check" not in sys.argv:
            folder.mkdir(exist_ok=True)
            path.write_text(script, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != script:
            stale.append(path.name)
    if stale:
        print(f"stale: {', '.join(stale)} (run python scripts/completions.py)")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
