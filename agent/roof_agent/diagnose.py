"""Why a collector can't be reached, found step by step: the transport's own words rarely tell."""

from __future__ import annotations

import socket

_SECONDS = 3.0


def diagnose(address: str) -> str:
    """Return the first step that fails in words, empty where name and TCP are fine."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return f"the name {host} can't be resolved ({error.strerror})"
    family, kind, protocol, _, place = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.settimeout(_SECONDS)
        try:
            probe.connect(place)
        except ConnectionRefusedError:
            return (
                f"nothing listens there (connection refused): is roof-collector serve running on port {port}?"
            )
        except TimeoutError:
            return f"no answer within {_SECONDS:.0f} s: a firewall, a wrong address or a machine that is off"
        except OSError as error:
            return f"no way to it ({error.strerror})"
    return ""
