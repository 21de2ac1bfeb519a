"""`roof-collector devices`: the boards that were heard of."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from roof_collector.commands import Subparsers, add_database, add_json

if TYPE_CHECKING:
    from roof_collector.web.documents import DeviceRow


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "list the boards, those last heard first"
    parser = subparsers.add_parser("devices", help=words, description=words)
    add_database(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the document of the page of devices, or its table."""
    from roof_agent.table import columns
    from roof_collector.store.engine import open_database
    from roof_collector.web.documents import DevicesDocument
    from roof_collector.web.reading import PageStore
    from roof_collector.web.tables import MAX_SIZE, TableQuery
    from roof_collector.web.views.devices import devices_page

    engine = open_database(arguments.database, read_only=True)
    try:
        document = devices_page(PageStore(engine), TableQuery(size=MAX_SIZE)).document
    finally:
        engine.dispose()
    assert isinstance(document, DevicesDocument)
    if arguments.json:
        json.dump(dataclasses.asdict(document), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return 0
    rows: list[tuple[str, ...]] = [
        ("device", "host", "cores", "bandwidth", "peak", "kernels", "runs", "last seen", "newest run")
    ]
    rows += [_row(device) for device in document.devices.rows]
    sys.stdout.write("\n".join(columns(rows)) + "\n")
    return 0


def _row(device: DeviceRow) -> tuple[str, ...]:
    from roof_agent.units import format_si

    return (
        device.fingerprint[:12],
        device.hostname,
        device.core_kinds,
        format_si(device.bytes_per_s, "B/s") if device.bytes_per_s is not None else "",
        format_si(device.flops_per_s, "FLOP/s") if device.flops_per_s is not None else "",
        device.backend,
        str(device.runs),
        device.last_seen_at,
        device.state,
    )
