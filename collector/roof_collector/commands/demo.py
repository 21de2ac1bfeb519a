"""`roof-collector demo`: measure this machine through the whole product, and show it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roof_agent.errors import Exit
from roof_collector.commands import DEFAULT_DATABASE, Subparsers

if TYPE_CHECKING:
    from roof_collector.serve import Collector

_SQLITE = "sqlite:///"


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb."""
    words = (
        "measure this machine with a collector and an agent on loopback, print the tables, serve the pages"
    )
    parser = subparsers.add_parser("demo", help=words, description=words)
    parser.add_argument("--once", action="store_true", help="end after the tables")
    parser.add_argument(
        "--database",
        default=DEFAULT_DATABASE,
        metavar="URL",
        help="where the run is kept (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it all; the exit code is the agent's."""
    if arguments.database.startswith(_SQLITE):
        Path(arguments.database.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_demo(arguments.database, once=arguments.once))


async def _demo(database: str, *, once: bool) -> int:
    from roof_collector.serve import Collector

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Collector(database, note=_say) as collector:
        status = await _agent(collector, stop)
        if stop.is_set():
            return status
        page = await asyncio.to_thread(_print_latest, database)
        _say(f"http://127.0.0.1:{collector.web_port}{page}")
        if once:
            return status
        _say("Ctrl-C ends it")
        await stop.wait()
    return Exit.OK


async def _agent(collector: Collector, stop: asyncio.Event) -> int:
    """Run the agent as the process of its own that it is on a board; its progress goes to the terminal."""
    agent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "roof_agent",
        "run",
        "--quick",
        "--collector",
        f"127.0.0.1:{collector.grpc_port}",
        stdout=asyncio.subprocess.DEVNULL,
    )
    ended = asyncio.create_task(agent.wait())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not ended.done():
        # Ctrl-C reached the agent too where there is a terminal; a SIGTERM of this process didn't.
        with contextlib.suppress(ProcessLookupError):
            agent.terminate()
    return await ended


def _print_latest(database: str) -> str:
    """Print the newest run and return its page's path."""
    from sqlalchemy import select

    from roof_collector import report
    from roof_collector.store.engine import open_database
    from roof_collector.store.schema import run as run_table

    engine = open_database(database, read_only=True)
    try:
        with engine.connect() as connection:
            run_id = connection.scalar(select(run_table.c.run_id).order_by(run_table.c.id.desc()).limit(1))
        if run_id is None:
            return "/"
        sys.stdout.write(report.render(*report.read(engine, run_id)))
        sys.stdout.flush()
    finally:
        engine.dispose()
    return f"/runs/{run_id}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
