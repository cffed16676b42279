"""Restarts from the last checkpoint, and machines that come: as torch's elastic agent does it."""

import json
import subprocess
import sys
import time
from functools import cache

import pytest
from launching import SCRIPTS, environment, free_port, ptrun, run

SCRIPT = str(SCRIPTS / "elastic.py")
TWO = ("--accelerator", "cpu", "--devices", "2", "--global-batch")


@cache
def undisturbed(folder):
    return json.loads(run(SCRIPT, folder, "never").stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raise", "kill", "exit"])
def test_starts_again_where_the_checkpoint_stands(how, tmp_path, tmp_path_factory):
    done = ptrun(*TWO, "--max-restarts", "2", SCRIPT, str(tmp_path), how, limit=250)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    one = undisturbed(str(tmp_path_factory.getbasetemp()))
    assert answer["restarts"] == 1 and answer["steps"] == one["steps"] == 28
    for found, expected in zip(answer["weights"], one["weights"], strict=True):
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_gives_up_after_the_last_restart(tmp_path):
    done = ptrun(*TWO, SCRIPT, str(tmp_path), "raise")
    assert done.returncode == 1 and "ValueError: once" in done.stderr


@pytest.mark.slow
def test_a_node_joins(tmp_path):
    """One machine begins; when a second comes, both start again from the last checkpoint, as twice as many."""
    command = [
        *("-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "1", "--global-batch", "--nodes", "1:2"),
        *(
            "--rdzv",
            f"127.0.0.1:{free_port()}",
            "--rdzv-id",
            "job",
            "--max-restarts",
            "3",
            SCRIPT,
            str(tmp_path),
            "wait",
        ),
    ]
    nodes = [start(command)]
    try:
        limit = time.monotonic() + 120
        while not (tmp_path / "last.ckpt").exists():
            assert time.monotonic() < limit and nodes[0].poll() is None
            time.sleep(0.1)
        nodes.append(start(command))
        out = [node.communicate(timeout=200) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], out
    worlds = [line.split()[0] for file in tmp_path.glob("worlds.*") for line in file.read_text().splitlines()]
    assert {"1", "2"} <= set(worlds)
    line = next(line for text, _ in out for line in text.splitlines() if line.startswith("{"))
    assert json.loads(line)["steps"] == 28


def start(command):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *command], env=environment(), text=True, **pipes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--nodes", "2:1", "--rdzv", "a:1"], "the smaller number first"),
        (["--nodes", "two"], "give a number, or MIN:MAX"),
        (["--nodes", "1:2"], "--rdzv HOST:PORT"),
        (["--nodes", "1:2", "--rdzv", "a:1", "--node-rank", "0"], "leave out --node-rank"),
        (["--rdzv-backend", "c10"], "did you mean 'c10d'"),
        (["--rdzv-backend", "etcd", "--rdzv", "a:1"], "pip install python-etcd"),
    ],
)
def test_wrong_usage_of_the_rendezvous(options, says):
    done = ptrun("--accelerator", "cpu", *options, SCRIPT)
    assert done.returncode == 2 and says in done.stderr
