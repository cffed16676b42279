"""What an evaluation fills is the same on any number of processes, in the same order."""

import json

import pytest
from launching import MANY, SCRIPTS

from tests.forked import answers, ptrun


@pytest.mark.parametrize("processes", [2, *MANY])
@pytest.mark.parametrize("samples", ["35", "3"])
def test_as_one_process_fills_it(processes, samples):
    assert answers("in_order.py", processes)[samples] == answers("in_order.py", 1)[samples]


def test_one_process_calls_at_once():
    found = answers("in_order.py", 1)["35"]
    assert found[1][:-1] == list(range(9)) and found[-4:] == [[0, 0, 4], [0, 1, 4], [0, 2, 1], [1, 0, 2]]


def test_what_no_other_rank_can_find_is_refused():
    assert answers("in_order.py", 1)["Hidden"] == "filled"
    assert "list that it fills is no attribute of Hidden" in answers("in_order.py", 2)["Hidden"]


def test_what_cannot_be_sent_is_refused():
    assert "what Unsent fills with cannot be sent: Can't pickle" in answers("in_order.py", 2)["Unsent"]


def test_devices_of_one_process_take_whole_batches():
    done = ptrun("--accelerator", "cpu", "--devices", "2", "--strategy", "dp", str(SCRIPTS / "in_order.py"))
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == answers("in_order.py", 1)
