"""`roof-agent list`: the probes."""

from __future__ import annotations

import argparse
import json
import sys

from roof_agent.probes import all_probes


def main(arguments: argparse.Namespace) -> int:
    """Print each probe's name, whether it runs by default, and its help."""
    probes = all_probes().values()
    if arguments.json:
        document = [{"name": found.name, "default": found.default, "help": found.help} for found in probes]
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    width = max(len(found.name) for found in probes)
    for found in probes:
        own = "" if found.default else " (only with --probe)"
        sys.stdout.write(f"{found.name.ljust(width)}  {found.help}{own}\n")
    return 0
