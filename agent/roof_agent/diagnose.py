"""Why a collector can't be reached, found step by step: the transport's own words rarely tell."""

from __future__ import annotations

import socket

from roof_agent.address import split_address

_SECONDS = 3.0
# RFC 9113, 3.4: the client's preface and an empty SETTINGS frame; a server answers with its own.
_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS_TYPE = 4
_TLS_ALERT = 0x15


def diagnose(address: str, *, tls: bool = False, seconds: float = _SECONDS) -> str:
    """Return the first step that fails, in words; empty where all that can be tried here is fine.

    The steps are name, TCP, and without TLS whether HTTP/2 is spoken; each takes up to `seconds`.
    """
    host, port = split_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return f"the name {host} can't be resolved ({error.strerror})"
    reason = ""
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(seconds)
            try:
                probe.connect(place)
            except ConnectionRefusedError:
                reason = f"nothing listens on port {port} (connection refused): is roof-collector running?"
            except TimeoutError:
                reason = f"no answer in {seconds:.0f} s: a firewall, a wrong address, or it is off"
            except OSError as error:
                reason = f"no way to it ({error.strerror})"
            else:
                return "" if tls else _greet(probe, port)
    return reason


def _greet(probe: socket.socket, port: int) -> str:
    """Return what is wrong with whoever answers on a connected socket."""
    try:
        probe.sendall(_HTTP2_HELLO)
        answer = probe.recv(9)
    except TimeoutError:
        return f"port {port} is open but silent: something else than a collector, or one that hangs"
    except OSError as error:
        return f"it closes the connection at once ({error.strerror})"
    return _judge(answer, port)


def _judge(answer: bytes, port: int) -> str:
    if not answer:
        return "it closes the connection at once: it may want TLS"
    if answer[0] == _TLS_ALERT:
        return "it wants TLS"
    if answer.startswith(b"HTTP/1"):
        return f"port {port} serves web pages, not agents: give the collector's gRPC port"
    if len(answer) < 4 or answer[3] != _SETTINGS_TYPE:
        return f"whatever answers on port {port} isn't a collector"
    return ""
