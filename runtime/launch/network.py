"""The way from this machine to the place where several machines meet.

Where a machine's own name means 127.0.0.1 to itself, as on many, torch and gloo would offer the others an address that
nobody else reaches, and the machine would not know the meeting place for its own. The way there tells the right one.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass

_ADDRESS_OF_INTERFACE = 0x8915  # SIOCGIFADDR, netdevice(7)


@dataclass(frozen=True)
class Way:
    """This machine's `address` on the network of the meeting place, its interface (None: not found), and whether the
    meeting place is on this machine and nobody listens there yet, which torch would not see by the machine's name.
    """

    address: str
    interface: str | None
    hosts: bool


def way_to(meeting: str) -> Way | None:
    """`meeting`: HOST:PORT. None where that is the loopback, or cannot be looked up: then torch does as it does."""
    host, _, port = meeting.rpartition(":")
    try:
        there = socket.gethostbyname(host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((there, int(port)))  # sends nothing; the kernel chooses the way
            address = probe.getsockname()[0]
    except (OSError, ValueError):
        return None
    if address.startswith("127."):
        return None
    known = there in _own_addresses()
    return Way(address, _interface(address), there == address and not known and not _listens(there, int(port)))


def _own_addresses() -> list[str]:
    """What this machine's name stands for."""
    with contextlib.suppress(OSError):
        return socket.gethostbyname_ex(socket.gethostname())[2]
    return []


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0


def _interface(address: str) -> str | None:
    """The name of the network interface with this address (on Linux)."""
    with contextlib.suppress(ImportError, OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        import fcntl

        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                told = fcntl.ioctl(probe.fileno(), _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(told[20:24]) == address:
                    return name
    return None
