"""Streams are read once, as one process reads them, whatever shuffles, divides or cuts them: the same run on any number
of processes.
"""

import pytest

from tests.forked import answers
from tests.runtime.launching import MANY

COUNTS = ("seen", "ends")
pytestmark = pytest.mark.slow  # some twenty runs on each number of processes


@pytest.mark.parametrize("processes", [2, *MANY])
def test_same_run(processes):
    one, several = answers("streams.py", 1), answers("streams.py", processes)
    assert one.keys() == several.keys()
    for name, expected in one.items():
        found = several[name]
        if isinstance(expected, list):
            assert found == expected, name
            continue
        for part, value in expected.items():
            assert found[part] == (value if part in COUNTS else pytest.approx(value, rel=1e-5, abs=1e-5)), (name, part)


def test_asked_for_its_end():
    one = answers("streams.py", 1)
    assert one["stream, asked for its end"]["ends"] == [12, 12]
    assert one["few, asked for its end"]["ends"] == [1, 1]
