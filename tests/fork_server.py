"""Becomes scripts by forks, torch imported already: a launch on two processes imports it three times.

`python fork_server.py` takes requests as lines of JSON (forked.py writes them): the command's script and arguments,
the environment of each rank, the working folder and the files for its output. It answers with the number of the
process that launches the ranks, and with the exit code once that has ended.
"""

import builtins
import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import numpy
import torch._dynamo  # noqa: F401  every optimizer imports it, and DDP
from torch.distributed import TCPStore

USAGE = 2  # the exit code of a script that says what is wrong, which ptrun passes on
GRACE = 5.0  # seconds between asking a rank to end and ending it
SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


def serve() -> Callable[[], None] | None:
    """Answer requests until there are no more; returns what is to be run in a process that is to become a script."""
    for line in sys.stdin:
        request = json.loads(line)
        launcher = os.fork()
        if launcher == 0:
            return launch(**request)
        print(launcher, flush=True)
        _, status = os.waitpid(launcher, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher, signal.SIGKILL)  # whatever it has left behind
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def launch(
    command: list[str], ranks: list[dict[str, str]], cwd: str, environment: dict[str, str], out: str, err: str
) -> Callable[[], None]:
    """A script alone where there is one rank, which nobody launched; returns in the processes that become it."""
    os.setsid()
    die_with_parent()
    for number, file, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        os.dup2(os.open(file, flags | os.O_APPEND), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if len(ranks) == 1:
        os.environ.update(ranks[0])
        return lambda: become(*command)
    there, here = os.pipe()
    started = {}
    for rank, variables in enumerate(ranks):
        if (process := os.fork()) == 0:
            os.environ.update(variables, MASTER_ADDR="127.0.0.1", MASTER_PORT=os.read(there, 5).decode())
            return lambda: become(*command)
        started[process] = rank
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # after the forks: it has a thread
    os.write(here, f"{store.port:5}".encode() * len(ranks))
    os._exit(wait(started))


def wait(started: dict[int, int]) -> int:
    """Until all ranks have ended, {process: rank}; the first that fails ends the others, as ptrun's agent has it."""
    while started:
        process, status = os.wait()
        rank, code = started.pop(process), os.waitstatus_to_exitcode(status)
        if code:
            end(started)
            if code == USAGE:
                return USAGE
            print(f"rank {rank} ended with exit code {code}; the other ranks were ended.", file=sys.stderr, flush=True)
            return 1
    return 0


def end(started: dict[int, int]) -> None:
    for process in started:
        os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while started and time.monotonic() < deadline:
        time.sleep(0.05)
        started = {process: rank for process, rank in started.items() if os.waitpid(process, os.WNOHANG)[0] == 0}
    for process in started:
        os.kill(process, signal.SIGKILL)


def die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def become(script: str, *arguments: str) -> None:
    """`python -u script arguments`, but for the imports."""
    sys.stdout.reconfigure(write_through=True)
    sys.stderr.reconfigure(write_through=True)
    sys.argv = [script, *arguments]
    sys.orig_argv = [sys.executable, "-u", *sys.argv]
    sys.path[0] = str(Path(script).absolute().parent)
    numpy.random.seed()  # as the others do by themselves in a fork, and all do in a process of their own
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __loader__=None)
    sys.modules["__main__"] = main
    exec(compile(Path(script).read_bytes(), script, "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    die_with_parent()
    gc.collect()
    gc.freeze()
    work = serve()
    if work is not None:
        work()
