"""`roof-agent doctor`: what will be measured, what is missing, what will disturb the figures."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from roof_agent import child, doctor
from roof_agent import plan as planning
from roof_agent.platform import conditions
from roof_agent.platform.discovery import discover
from roof_agent.presets import DEFAULT
from roof_agent.table import describe_device

_TITLES = {doctor.MISSING: "missing", doctor.DISTURBS: "disturbs the figures", doctor.NOTE: "note"}


def main(arguments: argparse.Namespace) -> int:
    """Print the plan of a default run and the findings."""
    device, state = discover(), conditions.sample()
    findings = doctor.examine(device, state, child.native_problem())
    plan = planning.make(planning.probes(None, (), ()), planning.context(device, DEFAULT))
    if arguments.json:
        document = {
            "findings": [asdict(found) for found in findings],
            "measurements": plan.measurements,
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    probes = ", ".join(dict.fromkeys(task.probe for task in plan.tasks))
    budget = f"about {plan.seconds:.0f} s, at most {plan.memory_bytes / (1 << 20):.0f} MiB"
    lines = [
        describe_device(device),
        f"a run measures {probes}: {plan.measurements} measurements, {budget}",
        *(f"{probe.name} can't be measured: {error}" for probe, error in plan.refused),
        *(f"{_TITLES[found.kind]}: {found.what}\n  -> {found.advice}" for found in findings),
    ]
    if not findings:
        lines.append("nothing is missing, and nothing disturbs the figures")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
