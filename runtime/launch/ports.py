"""A port for processes to meet at."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigurationError

PORTS = range(20000, 32768)  # below those that systems give to whoever asks for any, unless Linux is told otherwise
GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """One that is free now, and that the system gives to nobody else before a rank listens at it.

    Raises ConfigurationError where every one is taken.
    """
    kept = kept_ports()
    for port in (secrets.choice(kept) for _ in kept):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise ConfigurationError(f"no port from {kept[0]} to {kept[-1]} is free, and processes need one to meet at")


def kept_ports() -> Sequence[int]:
    """Those that the system gives away only when it is asked for them by number; any, where it gives away all."""
    first, last = 0, -1
    with contextlib.suppress(OSError, ValueError):
        first, last = map(int, GIVEN_AWAY.read_text().split())
    return [port for port in PORTS if not first <= port <= last] or PORTS
