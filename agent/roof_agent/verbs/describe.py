"""`roof-agent describe PROBE`: what it does, what it costs, how to read it."""

from __future__ import annotations

import argparse
import inspect
import sys

from roof_agent.probes import choose
from roof_agent.units import quantity


def main(arguments: argparse.Namespace) -> int:
    """Print the probe's story. Raises UsageError for one that isn't there."""
    (probe,) = choose([arguments.probe], [])
    unit = quantity(probe.quantity)
    sys.stdout.write(f"{probe.name}: {probe.help}\n\n{inspect.getdoc(type(probe))}\n\n")
    sys.stdout.write(f"Its figures are {unit.key} ({unit.unit}): {unit.help}.\n")
    if not probe.default:
        sys.stdout.write(f"It runs only with --probe {probe.name}.\n")
    return 0
