"""How a rank's process ended, in words."""

from __future__ import annotations

import signal


def how_it_ended(rank: int, code: int | None) -> str:
    """`rank 1 ended with exit code 3`, or by which signal."""
    if code is None or code >= 0:
        return f"rank {rank} ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = " (as the system does where memory runs out)" if name == "SIGKILL" else ""
    return f"rank {rank} was ended by {name}{why}"
