"""Restarts from the last checkpoint, and machines that come: as torch's elastic agent does it."""

import json
import subprocess
import sys
import time
from functools import cache

import pytest
from launching import SCRIPTS, environment, ptrun, run
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch.nodes import check_meeting, counts
from ptmigrate.runtime.launch.ports import free_port

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
    steps = [line.split() for file in tmp_path.glob("worlds.*") for line in file.read_text().splitlines()]
    assert [epoch for _, epoch, _ in steps].count("0") == 2 * 7  # the first epoch is not run again
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


@pytest.mark.parametrize(("text", "numbers"), [("2", (2, 2)), ("1:4", (1, 4)), ("3:3", (3, 3))])
def test_how_many_nodes(text, numbers):
    assert counts(text) == numbers


@pytest.mark.parametrize(
    ("text", "says"), [("2:1", "the smaller number first"), ("two", "MIN:MAX"), ("0", "from 1 up")]
)
def test_how_many_nodes_refused(text, says):
    with pytest.raises(ConfigurationError, match=says):
        counts(text)


@pytest.mark.parametrize(
    ("meeting", "says"),
    [
        ((1, 2, None, None, None), "--rdzv HOST:PORT"),
        ((1, 2, "a:1", None, 0), "leave out --node-rank"),
        ((1, 2, "a:1", "static", None), "leave out --node-rank"),
        ((1, 1, None, "c10", None), "did you mean 'c10d'"),
    ],
)
def test_meetings_refused(meeting, says):
    with pytest.raises(ConfigurationError, match=says):
        check_meeting(*meeting)


@pytest.mark.parametrize("meeting", [(1, 1, None, None, None), (2, 2, "a:1", None, 0), (1, 3, "a:1", "c10d", None)])
def test_meetings(meeting):
    check_meeting(*meeting)


def test_what_etcd_needs(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install python-etcd"):
        check_meeting(1, 1, "a:1", "etcd", None)
