"""`roof-collector demo`: measure this machine through the whole product, and show it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
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
        status, run_id = await _agent(collector, stop)
        if stop.is_set() or run_id is None:
            return status
        await asyncio.to_thread(_print, database, run_id)
        if once:
            _say(f"its pages: roof-collector serve --database {database}, then /runs/{run_id}")
            return status
        _say(f"http://127.0.0.1:{collector.web_port}/runs/{run_id}")
        _say("Ctrl-C ends it")
        await stop.wait()
    return Exit.OK


async def _agent(collector: Collector, stop: asyncio.Event) -> tuple[int, str | None]:
    """Run the agent as the process of its own that it is on a board; its progress goes to the terminal.

    Return its exit code and its run, None where it didn't come to one.
    """
    agent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "roof_agent",
        "run",
        "--quick",
        "--collector",
        f"127.0.0.1:{collector.grpc_port}",
        "--json",
        stdout=asyncio.subprocess.PIPE,
    )
    ended = asyncio.create_task(agent.communicate())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not ended.done():
        # Ctrl-C reached the agent too where there is a terminal; a SIGTERM of this process didn't.
        with contextlib.suppress(ProcessLookupError):
            agent.terminate()
    output, _ = await ended
    return agent.returncode or 0, json.loads(output)["run"] if output else None


def _print(database: str, run_id: str) -> None:
    from roof_collector import report
    from roof_collector.store.engine import open_database

    engine = open_database(database, read_only=True)
    try:
        sys.stdout.write(report.render(*report.read(engine, run_id)))
        sys.stdout.flush()
    finally:
        engine.dispose()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
