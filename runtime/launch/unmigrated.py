"""Scripts that know nothing of other processes: each of several would train all of it by itself."""

from __future__ import annotations

from pathlib import Path

# what a script says that shares its work in some way
SHARES = (
    b"ptmigrate", b"distributed", b"DistributedDataParallel", b"WORLD_SIZE", b"LOCAL_RANK", b"lightning", b"accelerate",
    b"deepspeed", b"horovod", b"fabric", b"Fabric", b"ignite", b"bagua", b"fairscale", b"torch_xla", b"import ray",
)  # fmt: skip


def trains_alone(script: str) -> bool:
    """Whether a script has a training loop, and not a word of what would share it."""
    try:
        raw = Path(script).read_bytes()
    except OSError:
        return False
    return b".backward(" in raw and not any(word in raw for word in SHARES)
