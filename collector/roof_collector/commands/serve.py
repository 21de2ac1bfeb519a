"""`roof-collector serve`: take what agents send, and show it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

from roof_agent.errors import UsageError
from roof_collector.commands import Subparsers, add_database

# The warning lasts: it is seen in the log of a collector that has run for long.
_WARNING_SECONDS = 3600.0


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = "take what agents send, and show it"
    parser = subparsers.add_parser("serve", help=words, description=words)
    parser.add_argument(
        "--listen", default="127.0.0.1:50051", metavar="HOST:PORT", help="for agents (default: %(default)s)"
    )
    parser.add_argument(
        "--web", default="127.0.0.1:8080", metavar="HOST:PORT", help="for the pages (default: %(default)s)"
    )
    parser.add_argument(
        "--web-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that the pages answer to besides their address; may be repeated",
    )
    add_database(parser)
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="allow addresses that others can reach, though nothing is encrypted or authenticated",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    exposed = _exposed(arguments)
    if exposed and not arguments.insecure:
        raise UsageError(
            f"{' and '.join(exposed)} can be reached from other machines, without encryption or passwords: "
            "--insecure allows that on a network you trust"
        )
    # gRPC writes lines of its own beside ours, and tells us the same in its errors.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return asyncio.run(_serve(arguments, exposed))


def _exposed(arguments: argparse.Namespace) -> list[str]:
    from roof_agent.address import is_loopback
    from roof_collector.serve import parse_address

    return [
        address for address in (arguments.listen, arguments.web) if not is_loopback(parse_address(address)[0])
    ]


async def _serve(arguments: argparse.Namespace, exposed: list[str]) -> int:
    from roof_collector.serve import Collector

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Collector(
        arguments.database,
        listen=arguments.listen,
        web=arguments.web,
        web_hosts=arguments.web_host,
        note=_say,
    ) as collector:
        listen_host, web_host = arguments.listen.rpartition(":")[0], arguments.web.rpartition(":")[0]
        _say(f"agents: roof-agent --collector {listen_host}:{collector.grpc_port}")
        _say(f"pages:  http://{web_host}:{collector.web_port}/")
        while not stop.is_set():
            if exposed:
                _say(f"warning: {' and '.join(exposed)} is open to the network without encryption")
            try:
                await asyncio.wait_for(stop.wait(), _WARNING_SECONDS)
            except TimeoutError:
                continue
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
