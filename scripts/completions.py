"""Make the shells' completion scripts from the agent's parser: `python scripts/completions.py [--check]`."""

from __future__ import annotations

import sys

import shtab

from roof_agent.cli import parser
from roof_agent.verbs.completion import FOLDER


def main() -> int:
    """Write the scripts, or with --check say which differ from what the parser gives."""
    stale = []
    for shell in ("bash", "zsh", "tcsh"):
        path = FOLDER / f"roof-agent.{shell}"
        script = shtab.complete(parser(), shell=shell) + "\n"
        if "--check" not in sys.argv:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(script, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != script:
            stale.append(path.name)
    if stale:
        print(f"stale: {', '.join(stale)} (run python scripts/completions.py)")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
