"""Ranks that branch differently end together: a stop that one asks for, a batch that one skips."""

import pytest
from launching import SCRIPTS

from tests.forked import answers, ptrun


@pytest.fixture(scope="module")
def two():
    return answers("stopping.py", 2)


def test_a_stop_that_one_rank_asks_for_is_everybodys_after_that_batch(two):
    assert two["Asks"]["last"] == [[0, 3]] and two["Asks"]["seen"][0] == two["Asks"]["seen"][1]
    assert answers("stopping.py", 1)["Asks"]["last"] == [[0, 3]]


def test_one_that_nobody_could_foresee_waits_for_the_end_of_the_epoch(two):
    assert (
        two["AsksElsewhere"]["last"] == [[0, 11]] and two["AsksElsewhere"]["seen"][0] == two["AsksElsewhere"]["seen"][1]
    )


def test_a_rank_that_skips_its_batch_takes_part(two):
    assert two["Skips"]["seen"] == [[36, 36, 3]] * 2 and two["Skips"]["apart"] == 0.0


def test_no_time_at_all(two):
    assert two["Net"]["seen"] == [[0, 0, 0]] * 2


@pytest.mark.parametrize("at", [3, 11])
def test_different_numbers_of_backward_passes_are_told(at):
    script = str(SCRIPTS / "backwards.py")
    done = ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", script, str(at), limit=120)
    assert done.returncode == 1
    assert "ranks make different numbers of backward passes" in done.stderr
