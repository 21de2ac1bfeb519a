"""A collector's address, and whether it may be spoken to in the clear."""

from __future__ import annotations

import ipaddress

from roof_agent.errors import UsageError


def split_address(address: str) -> tuple[str, int]:
    """Return host (without an IPv6 address's brackets) and port. Raises UsageError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"{address!r} is not an address: give host:port, as in 127.0.0.1:50051")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_address(address: str, *, insecure: bool) -> None:
    """Raise UsageError unless `address` is host:port, and this machine's own unless `insecure`."""
    host, _ = split_address(address)
    if not insecure and not is_loopback(host):
        raise UsageError(
            f"{host} is not this machine and the connection would have no encryption: "
            "--insecure allows it on a network you trust"
        )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by name or number."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
