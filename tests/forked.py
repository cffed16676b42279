"""Scripts run in forks of a process that has imported torch (fork_server.py), for tests of what they do once they run.

ptrun's own command line reads the options; what its agent would start is forked. How processes start, fail and end is
tested with the agent and real processes, by runtime/launching.py.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from ptmigrate.migrate.verify import runs
from ptmigrate.runtime.cli import command as command_line
from ptmigrate.runtime.launch import agent

from tests.runtime.launching import LIMIT, SCRIPTS, environment

PROGRAM = Path(__file__).with_name("fork_server.py")
PTRUN = ["-m", "ptmigrate.runtime.cli"]


@cache
def server() -> subprocess.Popen:
    """That of this process, which ends with it."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM)], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    return process


def run(*command: str | Path, cwd: Path | None = None, limit: float = LIMIT, **variables: str):
    """A script and its arguments, as `launching.run` runs them; returns a subprocess.CompletedProcess."""
    return _completed(_plan(list(map(str, command))), cwd, limit, variables)


def ptrun(*arguments: str | Path, cwd: Path | None = None, limit: float = LIMIT, **variables: str):
    """As `launching.ptrun`; returns a subprocess.CompletedProcess."""
    with _inside(cwd):
        plan = _plan([*PTRUN, *map(str, arguments)])
    return _completed(plan, cwd, limit, variables)


@cache
def answers(script: str, processes: int, *arguments: str) -> dict:
    """What a script of tests/runtime/scripts prints as JSON, on so many processes of one machine."""
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    done = ptrun(*options, str(SCRIPTS / script), *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def forked_runs(monkeypatch):
    """The runs of a proof (`--verify`, called in this process) are forks."""
    monkeypatch.setattr(runs, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))


class Process:
    """One that the server has forked, with what is used here of a subprocess.Popen. One at a time."""

    def __init__(self, command: list[str], ranks: list[dict[str, str]], **where: str | dict[str, str]):
        self.returncode: int | None = None
        print(json.dumps({"command": command, "ranks": ranks, **where}), file=server().stdin, flush=True)
        self.pid = int(server().stdout.readline())

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([server().stdout], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("", timeout or 0.0)
            self.returncode = int(server().stdout.readline())
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


def popen(command: Sequence[str], *, env: dict[str, str], stdout, **_) -> Process:
    """subprocess.Popen, as migrate/verify/runs.py calls it."""
    script, ranks = _plan(list(command[1:]))
    out = f"/proc/{os.getpid()}/fd/{stdout.fileno()}"
    return Process(script, ranks, cwd=os.getcwd(), environment=env, out=out, err=out)


@contextlib.contextmanager
def _inside(folder: Path | None):
    before = os.getcwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)


def _plan(command: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The script with its arguments, and what each rank is told; of ptrun: what it would start."""
    if command[:2] != PTRUN:
        return command, [{}]
    with mock.patch.object(agent, "run", return_value=0) as started:
        command_line.main(command[2:], standalone_mode=False)
    job, variables = started.call_args.args
    assert job.nodes == 1 and not job.max_restarts, "launching.ptrun is for those"
    variables = {**variables, "PTMIGRATE_ONE_LINE": "1"}
    places = [{}] if job.processes == 1 else [_place(rank, job.processes) for rank in range(job.processes)]
    return [job.script, *job.arguments], [{**variables, **place} for place in places]


def _place(rank: int, processes: int) -> dict[str, str]:
    """What the agent tells a rank; the server adds where they meet."""
    ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0"}
    sizes = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    of_the_agent = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    return {**ranks, **sizes, **of_the_agent, "PTMIGRATE_LAUNCHER": "ptrun"}


def _completed(
    plan: tuple[list[str], list[dict[str, str]]], cwd: Path | None, limit: float, variables: dict[str, str]
) -> subprocess.CompletedProcess:
    command, ranks = plan
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        where = {"cwd": str(cwd or Path.cwd()), "environment": {**environment(), **variables}}
        process = Process(command, ranks, **where, out=out.name, err=err.name)
        try:
            code = process.wait(limit)
        except BaseException as why:  # a test's own time limit too: the server's answer is read
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(why, subprocess.TimeoutExpired):
                raise
            pytest.fail(f"{command} took more than {limit} s\n{out.read()}\n{err.read()}")
        return subprocess.CompletedProcess(command, code, out.read(), err.read())
