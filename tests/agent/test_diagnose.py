"""Each way not to reach a collector is told apart, against real sockets."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc
import pytest

from roof_agent.diagnose import diagnose


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve one connection with `answer` on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(5)


def test_a_name_that_isnt_known() -> None:
    assert diagnose("no-such-board.invalid:50051").startswith(
        "the name no-such-board.invalid can't be resolved"
    )


def test_a_port_where_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert "connection refused" in diagnose(f"127.0.0.1:{port}")


def test_a_host_that_answers_nothing() -> None:
    """A full backlog drops what comes, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as filler:
        filler.connect(server.getsockname())
        others = [socket.socket() for _ in range(3)]
        for other in others:
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        assert diagnose(f"127.0.0.1:{server.getsockname()[1]}", seconds=0.3).startswith("no answer in")
        for other in others:
            other.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "serves web pages"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "wants TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "isn't a collector"),
        (b"", "closes the connection at once"),
    ],
)
def test_something_else_answers(answer: bytes, words: str) -> None:
    def reply(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(answer)

    with answering(reply) as address:
        assert words in diagnose(address)


def test_something_that_says_nothing() -> None:
    with answering(lambda connection: connection.recv(100) and connection.recv(1) and None) as address:  # type: ignore[func-returns-value]
        assert "open but silent" in diagnose(address, seconds=0.2)


def test_a_grpc_server_is_fine_as_far_as_can_be_seen() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    assert diagnose(f"127.0.0.1:{port}") == ""
    assert diagnose(f"localhost:{port}") == ""
    server.stop(None).wait()
