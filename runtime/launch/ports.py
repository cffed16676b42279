"""A port for processes to meet at."""

from __future__ import annotations

import contextlib
import secrets
import socket

from ..errors import ConfigurationError

PORTS = range(20000, 32768)  # systems give others, Linux those from 32768 up, to whoever asks for any


def free_port() -> int:
    """One that is free now, and that the system gives to nobody else before a rank listens at it.

    Raises ConfigurationError where every one is taken.
    """
    for port in (secrets.choice(PORTS) for _ in PORTS):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise ConfigurationError(f"no port from {PORTS[0]} to {PORTS[-1]} is free, and processes need one to meet at")
