"""`Trainer(devices=2, strategy="ddp")` in a script that was started alone: this process becomes rank 0 and starts the
others.

Each of the others runs the same command again, under the environment of its rank.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
import time

from .. import alike
from ..environment import PREFIX, interactive
from ..errors import ConfigurationError
from ..printing import keep_lines_whole
from ..settings import Settings
from . import interrupts
from .ended import how_it_ended
from .ports import free_port
from .threads import thread_variables

GRACE = 3.0  # seconds between asking a process to end and ending it
LAST_WORDS = 60.0  # seconds that the others have when this process is through
_leaving = threading.Event()
_peers: list[subprocess.Popen] = []


def start_peers(settings: Settings) -> None:
    """Start local ranks 1, 2, ... and set this process's environment as rank 0's. Raises ConfigurationError where
    it cannot.
    """
    check_started_once(settings.place.local_world_size)
    command, start = own_command(), alike.serve_peers()
    shared = {**meeting(settings), **thread_variables(settings.place.local_world_size)}
    for local_rank in range(1, settings.place.local_world_size):
        ranks = ranks_of(local_rank, settings)
        launcher = {PREFIX + "LAUNCHER": "script", PREFIX + "LAUNCHER_PID": str(os.getpid()), **start}
        _peers.append(subprocess.Popen(command, env={**os.environ, **shared, **ranks, **launcher}))
    os.environ.update({**shared, **ranks_of(0, settings)})
    keep_lines_whole()
    atexit.register(_leave)
    signal.signal(signal.SIGTERM, _ended)
    interrupts.listen(_end_all)
    threading.Thread(target=_watch_peers, daemon=True, name="ptmigrate-peers").start()


def meeting(settings: Settings) -> dict[str, str]:
    """Environment variables that all ranks of this node share. Raises ConfigurationError where nodes cannot meet.

    One node meets at a port of its own: one that a script sets for all of its runs may be taken.
    """
    if settings.nodes > 1 and "MASTER_ADDR" not in os.environ:
        raise ConfigurationError(
            "several nodes: start the script with ptrun --nodes N --node-rank R --rdzv HOST:PORT on each"
        )
    return {
        "MASTER_ADDR": os.environ["MASTER_ADDR"] if settings.nodes > 1 else "127.0.0.1",
        "MASTER_PORT": (settings.nodes > 1 and os.environ.get("MASTER_PORT")) or str(free_port()),
        "WORLD_SIZE": str(settings.world_size),
        "LOCAL_WORLD_SIZE": str(settings.place.local_world_size),
        "NODE_RANK": os.environ.get("NODE_RANK", "0"),
    }


def check_started_once(processes: int) -> None:
    """srun that starts the script several times on a node would have each of them start all ranks."""
    tasks = re.match(r"\d+", os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    if tasks and int(tasks[0]) > 1:
        raise ConfigurationError(
            f"srun has started this script {tasks[0]} times on this node, and each of them would start {processes} "
            "processes: start it once a node, with srun --ntasks-per-node=1"
        )


def ranks_of(local_rank: int, settings: Settings) -> dict[str, str]:
    """Environment variables of one rank of this node."""
    rank = int(os.environ.get("NODE_RANK", 0)) * settings.place.local_world_size + local_rank
    return {"RANK": str(rank), "LOCAL_RANK": str(local_rank)}


def own_command() -> list[str]:
    """The command line of this process, to run again."""
    if interactive():
        raise ConfigurationError(
            "strategy 'ddp' starts the script again, which a notebook or an interactive session cannot do: use "
            "strategy 'ddp_fork' or 'dp'"
        )
    original = sys.orig_argv[1:]
    if "-c" in original[:1] or sys.argv[0] in ("", "-", "-c"):  # text, or standard input, which is read only once
        raise ConfigurationError(
            "strategy 'ddp' starts the script again, so it needs a script in a file; use ptrun or a file"
        )
    return [sys.executable, *original]


def _ended(*_: object) -> None:
    """SIGTERM: the others are ended too."""
    _end_all()
    sys.exit(128 + signal.SIGTERM)


def _leave() -> None:
    """The script is through here; the others may still be at their last lines, and fail there."""
    if not _leaving.is_set():
        _wait(LAST_WORDS)
    _end_all()


def _end_all() -> None:
    _leaving.set()
    _end_peers(0.0)


def _watch_peers() -> None:
    """When a peer fails, end the job: this process cannot get past its next collective anyway."""
    while True:
        codes = [peer.poll() for peer in _peers]
        failed = [rank for rank, code in enumerate(codes, start=1) if code not in (None, 0)]
        if _leaving.is_set():
            return
        if failed:
            print(f"{how_it_ended(failed[0], codes[failed[0] - 1])}; the other ranks were ended.", file=sys.stderr)
            _end_peers(GRACE)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        if all(code == 0 for code in codes):
            return
        time.sleep(0.2)


def _wait(seconds: float) -> None:
    """At most so long for peers that are about to end by themselves."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(peer.poll() is None for peer in _peers):
        time.sleep(0.05)


def _end_peers(patience: float) -> None:
    """Wait a little for peers, then end them."""
    _wait(patience)
    for peer in _peers:
        if peer.poll() is None:
            peer.terminate()
    for peer in _peers:
        try:
            peer.wait(GRACE)
        except subprocess.TimeoutExpired:
            peer.kill()
