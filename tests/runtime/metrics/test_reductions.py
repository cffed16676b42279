"""What steps log under every reduction is what one process logs, also where a rank has a part of a batch, or none."""

import pytest
from launching import MANY, answers

CASES = ["103", "17", "2", "sums", "by hand", "whole", "validates whole"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("processes", [2, *MANY])
def test_same_values(processes, case):
    one, several = answers("reductions.py", 1)[case], answers("reductions.py", processes)[case]
    assert one.keys() == several.keys()
    for name, value in one.items():
        assert several[name] == pytest.approx(value, rel=1e-5, abs=1e-5), name
