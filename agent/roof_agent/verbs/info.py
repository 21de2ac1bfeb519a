"""`roof-agent info`: what this board is."""

from __future__ import annotations

import argparse
import json
import sys

from roof_agent.documents import to_document
from roof_agent.platform import conditions
from roof_agent.platform.discovery import discover
from roof_agent.records import Cache, Conditions, Device


def main(arguments: argparse.Namespace) -> int:
    """Print the device and its state now."""
    device, state = discover(), conditions.sample()
    if arguments.json:
        document = {"device": to_document(device), "conditions": to_document(state)}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    rows = _facts(device) + _state(state)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        sys.stdout.write(f"{name.ljust(width)}  {value or 'not known'}\n")
    return 0


def _facts(device: Device) -> list[tuple[str, str]]:
    rows = [
        ("model", device.model),
        ("chip", device.soc),
        ("architecture", device.architecture),
        ("system", f"{device.os}, Linux {device.kernel}" if device.os else f"Linux {device.kernel}"),
        ("memory", f"{device.memory_bytes / (1 << 20):.0f} MiB" if device.memory_bytes else ""),
        ("page", f"{device.page_bytes} B"),
    ]
    for cluster in device.clusters:
        top = f", up to {cluster.max_hz / 1e6:.0f} MHz" if cluster.max_hz else ""
        rows.append(("cores", f"{len(cluster.cpus)} x {cluster.core or 'unknown'}{top}"))
    rows += [("cache", text) for text in dict.fromkeys(_cache(cache) for cache in device.caches)]
    rows += [
        ("extensions", " ".join(device.isa_features)),
        ("virtual", device.virtualization),
        ("container", device.container),
        ("fingerprint", device.fingerprint),
    ]
    return rows


def _cache(cache: Cache) -> str:
    shared = f", shared by {len(cache.shared_cpus)}" if len(cache.shared_cpus) > 1 else ""
    return f"L{cache.level} {cache.kind} {cache.size_bytes / 1024:.0f} KiB{shared} ({cache.provenance})"


def _state(state: Conditions) -> list[tuple[str, str]]:
    clocks = sorted({round(hz / 1e6) for hz in state.frequency_hz.values()})
    warmth = ", ".join(f"{name} {value:.1f}" for name, value in state.temperature_celsius.items())
    return [
        ("governor", state.governor),
        ("clock now", " / ".join(f"{clock} MHz" for clock in clocks)),
        ("temperature", f"{warmth} C" if warmth else ""),
        ("throttle bits", f"{state.throttled_bits:#x}" if state.throttled_bits is not None else ""),
        ("load", f"{state.load_1m:.2f}" if state.load_1m is not None else ""),
        (
            "available",
            f"{state.memory_available_bytes / (1 << 20):.0f} MiB" if state.memory_available_bytes else "",
        ),
        ("CPU quota", f"{state.cgroup_cpus:g} CPUs" if state.cgroup_cpus is not None else "none"),
    ]
