"""Ranks that wait for one another for ever are ended, and each one's line is told; a slow rank is waited for."""

import os
import time

import pytest
from launching import SCRIPTS, ptrun

TWO = ("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "waits.py"))
LINES = {"logs": 'self.log("only_here"', "reduces": "self.all_reduce(loss)", "kinds": "runtime.barrier() if alone"}
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not tell of its work")


@pytest.mark.parametrize("case", ["logs", *(pytest.param(c, marks=pytest.mark.slow) for c in ("reduces", "kinds"))])
def test_the_line_that_one_rank_alone_has_reached(case):
    done = ptrun(*TWO, case, limit=150)  # of which most is the start, on a busy machine
    assert done.returncode == 1 and LINES[case] in done.stderr
    assert done.stderr.count("the ranks wait for one another") == 1


def test_messages_of_different_sizes_are_told_with_the_line_of_each_rank():
    done = ptrun(*TWO, "sizes", limit=150)
    assert done.returncode == 1 and "got a message of another size than its own" in done.stderr
    assert "  rank 0: waits.py" in done.stderr and "  rank 1: waits.py" in done.stderr, done.stderr
    assert "self.all_gather(torch.ones(5 + self.global_rank))" in done.stderr


SAID = {
    "saves": "rank 0 brings its part of a checkpoint (save_checkpoint); rank 1 brings logged values",
    "rounds": "all_gather in validation_step: its batches go round among the ranks without padding",
    "leaves": "rank 1 came to the end of the script, where rank 0 still waits for all of them: waits.py:",
}


@pytest.mark.parametrize("case", SAID)
def test_what_one_rank_alone_does_is_told_once(case, tmp_path):
    done = ptrun(*TWO, case, limit=150, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count(SAID[case]) == 1, done.stderr
    assert done.stderr.count("Traceback") == (case != "leaves") and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_rank_that_sleeps_is_waited_for():
    begun = time.monotonic()
    done = ptrun(*TWO, "sleeps", limit=150)
    assert (done.returncode, done.stdout.strip()) == (0, "8"), done.stderr
    assert time.monotonic() - begun > 12
