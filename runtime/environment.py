"""What the launcher tells a process, through environment variables. Nothing here imports torch.

torch's agent sets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; `ptrun` adds its own
options under PTMIGRATE_, and they win over the arguments in the script.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

PREFIX = "PTMIGRATE_"
RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# what launchers, torch's, Slurm and MPI, tell a process about its place, and what that is where it is the only one
ALONE = dict.fromkeys(
    "RANK LOCAL_RANK NODE_RANK GROUP_RANK SLURM_PROCID SLURM_LOCALID OMPI_COMM_WORLD_RANK "
    "OMPI_COMM_WORLD_LOCAL_RANK".split(),
    "0",
) | dict.fromkeys("WORLD_SIZE LOCAL_WORLD_SIZE SLURM_NTASKS OMPI_COMM_WORLD_SIZE".split(), "1")


@dataclass(frozen=True)
class Place:
    """Where this process stands among its peers."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1
    node_rank: int = 0


def interactive() -> bool:
    """Is this a notebook's kernel or an interactive session? There is no script that could be started again."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def launched() -> bool:
    """Did a launcher (ptrun, torchrun, horovodrun, a Trainer in another process) start this process as a rank?"""
    return all(name in os.environ for name in RANKS) or by_horovodrun()


def by_horovodrun() -> bool:
    """Did horovodrun start this process? It tells ranks under names of its own, and not where torch's ranks meet; once
    they have met there, a mark tells.
    """
    return "HOROVOD_RANK" in os.environ and (flag("horovodrun") or not all(name in os.environ for name in RANKS))


def place() -> Place:
    """This process's place; a process that nobody launched is alone."""
    if not launched():
        return Place()
    get = os.environ.get
    if by_horovodrun():
        names = ("RANK", "LOCAL_RANK", "SIZE", "LOCAL_SIZE", "CROSS_RANK")
        return Place(*(int(os.environ[f"HOROVOD_{name}"]) for name in names))
    world = int(os.environ["WORLD_SIZE"])
    return Place(
        rank=int(os.environ["RANK"]),
        local_rank=int(os.environ["LOCAL_RANK"]),
        world_size=world,
        local_world_size=int(get("LOCAL_WORLD_SIZE", world)),
        node_rank=int(get("GROUP_RANK", get("NODE_RANK", 0))),
    )


class PlainEnviron(dict[str, str]):
    """The environment without what a launcher set: asked for that by `[]`, it answers for the only process."""

    def __missing__(self, name: str) -> str:
        return ALONE[name]


def plain_environ() -> dict[str, str]:
    """The environment of a migrated script, which is a plain one on each of its processes."""
    return PlainEnviron((k, v) for k, v in os.environ.items() if k not in ALONE)


def option(name: str) -> str | None:
    """What ptrun was told for `name` (strategy, accelerator, ...), or None."""
    return os.environ.get(PREFIX + name.upper()) or None


def flag(name: str) -> bool:
    return option(name) == "1"


def as_variables(options: dict[str, object]) -> dict[str, str]:
    """Options of ptrun as environment variables; what was not given is left out."""
    variables = {}
    for name, value in options.items():
        if value is not None and value is not False:
            variables[PREFIX + name.upper()] = "1" if value is True else str(value)
    return variables
