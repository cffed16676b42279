"""What steps log under every reduction is what one process logs, also where a rank has a part of a batch, or none."""

import pytest
from launching import MANY, SCRIPTS
from ptmigrate.runtime.metrics.parts import Part, Row, in_doubt

from tests.forked import answers, ptrun

SLOW = ("17", "2", "sums", "by hand", "whole", "validates whole")
CASES = ["103", *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("processes", [2, *MANY])
def test_same_values(processes, case):
    one, several = answers("reductions.py", 1)[case], answers("reductions.py", processes)[case]
    assert one.keys() == several.keys()
    for name, value in one.items():
        assert several[name] == pytest.approx(value, rel=1e-5, abs=1e-5), name


@pytest.mark.parametrize(
    ("reduce", "value", "loss", "told"),
    [("max", 0.5, False, True), (None, 0.5, False, True), ("sum", 3.0, False, False), ("sum", 0.5, True, False)],
)
def test_what_may_be_another_value_is_told(reduce, value, loss, told):
    assert in_doubt(reduce, [Part([Row(0, value, 4, 0.5)], loss), Part([Row(0, value, 4, 0.5)], loss)]) == told


@pytest.mark.slow
def test_it_is_told_once():
    done = ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", str(SCRIPTS / "reductions.py"))
    assert done.returncode == 0 and done.stderr.count("'least' is not the loss: reduce_fx=min") == 6  # runs
    assert "'right' is" not in done.stderr and "'loss max' is" not in done.stderr
