"""A running collector: the agents' service, the pages and the writer, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

import grpc
import uvicorn
from sqlalchemy import Engine

from roof_agent.errors import UsageError
from roof_collector.ingest.plans import zoo_planner
from roof_collector.ingest.service import SERVER_OPTIONS, CollectorService, add_service
from roof_collector.ingest.session import Hub, Planner
from roof_collector.ingest.writer import Writer
from roof_collector.store.engine import open_database
from roof_collector.store.writes import forget_streams

# How long a stopping collector waits for its agents to have heard it, and its pages to be sent.
_GRACE_SECONDS = 3.0


class Collector:
    """A collector from `async with` on until `stop`. Port 0 takes a free one.

    `listen` and `web` are host:port; web None serves no pages, which answer to `web_hosts` besides
    that address. `planner` makes the plan for a device
    from an engine: the zoo's first networks unless told otherwise. Raises UserError on entering where an
    address or the database can't be used.
    """

    def __init__(
        self,
        database: str,
        *,
        listen: str = "127.0.0.1:0",
        web: str | None = "127.0.0.1:0",
        web_hosts: Iterable[str] = (),
        planner: Callable[[Engine], Planner] = zoo_planner,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._database = database
        self._listen = parse_address(listen)
        self._web = parse_address(web) if web is not None else None
        self._web_hosts = tuple(web_hosts)
        self._make_planner = planner
        self._note = note
        self._stack = contextlib.AsyncExitStack()
        self.grpc_port = 0
        self.web_port = 0

    async def __aenter__(self) -> Self:
        """Start everything, or nothing."""
        async with contextlib.AsyncExitStack() as stack:
            engine = open_database(self._database, note=self._note)
            stack.callback(engine.dispose)
            if engine.dialect.name == "sqlite":
                # What a killed collector left; a server's database may have other collectors.
                with engine.begin() as connection:
                    forget_streams(connection)
            writer = Writer(engine)
            writer.start()
            stack.push_async_callback(writer.stop)
            await self._start_service(stack, Hub(writer, self._make_planner(engine)), engine)
            if self._web is not None:
                await self._start_pages(stack, self._web)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.stop()

    async def stop(self) -> None:
        """Tell the agents, store what is on its way, and end; a second time does nothing."""
        await self._stack.aclose()

    async def _start_service(self, stack: contextlib.AsyncExitStack, hub: Hub, engine: Engine) -> None:
        server = grpc.aio.server(options=SERVER_OPTIONS)
        add_service(server, CollectorService(hub, engine))
        host, port = self._listen
        try:
            self.grpc_port = server.add_insecure_port(f"{_in_url(host)}:{port}")
        except RuntimeError as error:
            raise UsageError(f"agents can't be served at {host}:{port}: {_why(host, port)}") from error
        await server.start()

        async def stop() -> None:
            hub.close()
            await server.stop(_GRACE_SECONDS)

        stack.push_async_callback(stop)

    async def _start_pages(self, stack: contextlib.AsyncExitStack, address: tuple[str, int]) -> None:
        from roof_collector.web.app import create_app

        host, port = address
        try:
            listener = socket.create_server((host, port), family=_family(host))
        except OSError as error:
            raise UsageError(f"pages can't be served at {host}:{port}: {error.strerror}") from error
        stack.callback(listener.close)
        self.web_port = listener.getsockname()[1]
        engine = open_database(self._database, read_only=True)
        stack.callback(engine.dispose)
        config = uvicorn.Config(
            create_app(engine, hosts=(_in_url(host), *self._web_hosts)),
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=int(_GRACE_SECONDS),
        )
        server = _Pages(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))

        async def stop() -> None:
            server.should_exit = True
            await serving

        stack.push_async_callback(stop)
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)


class _Pages(uvicorn.Server):
    """A uvicorn that leaves the signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of host:port, [::1]:80 for IPv6; port 0 is allowed. Raises UsageError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise UsageError(f"{address!r} is no address: give host:port, as in 127.0.0.1:50051")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _why(host: str, port: int) -> str:
    """Return why an address can't be bound, which gRPC keeps to itself."""
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        return error.strerror or str(error)
    return "it can't be bound"
