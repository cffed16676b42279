"""How many machines, and how they meet: what ptrun was told, checked before anything starts."""

from __future__ import annotations

from ..errors import ConfigurationError, unknown_name
from ..installed import installed

BACKENDS = ("c10d", "static", "etcd", "etcd-v2")


def counts(text: str) -> tuple[int, int]:
    """(least, most) from "2" or "1:4". Raises ConfigurationError."""
    least, _, most = text.partition(":")
    try:
        numbers = int(least), int(most or least)
    except ValueError:
        raise ConfigurationError(f"--nodes {text}: give a number, or MIN:MAX") from None
    if not 1 <= numbers[0] <= numbers[1]:
        raise ConfigurationError(f"--nodes {text}: from 1 up, the smaller number first")
    return numbers


def check_meeting(least: int, nodes: int, rdzv: str | None, backend: str | None, node_rank: int | None) -> None:
    """Raise ConfigurationError where nodes could not meet."""
    if backend is not None and backend not in BACKENDS:
        raise unknown_name("rendezvous backend", backend, BACKENDS)
    if nodes > 1 and rdzv is None:
        raise ConfigurationError("--nodes: say where the machines meet with --rdzv HOST:PORT (the same on all)")
    if node_rank is not None and node_rank >= nodes:
        raise ConfigurationError(
            f"--node-rank {node_rank}: {nodes} machines have the numbers 0 to {nodes - 1} (--nodes)"
        )
    if nodes > 1 and rdzv is not None:
        _check_address(rdzv)
    if least < nodes and (node_rank is not None or backend == "static"):
        raise ConfigurationError(
            f"--nodes {least}:{nodes}: machines that come and go have no fixed number; leave out --node-rank, and use "
            "--rdzv-backend c10d or etcd"
        )
    if backend in ("etcd", "etcd-v2") and not installed("etcd"):
        raise ConfigurationError(
            f"--rdzv-backend {backend} needs python-etcd, which is not installed: pip install python-etcd, and start a "
            "server with `etcd --enable-v2`; c10d needs neither"
        )


def _check_address(rdzv: str) -> None:
    port = rdzv.rpartition(":")[2] if ":" in rdzv else ""
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigurationError(f"--rdzv {rdzv}: give HOST:PORT, with a port from 1 to 65535")
