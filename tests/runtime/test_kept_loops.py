"""Loops that stay as they are, on Runtime: several models and backwards, double backward, accumulation, bare
parameters.
"""

import json

import pytest
from launching import MANY, SCRIPTS

from tests.forked import ptrun, run

SHAPES = ["two_backwards", "penalty", "accumulation", "bare", "repeated"]


@pytest.fixture(scope="module")
def plain():
    return json.loads(run(str(SCRIPTS / "kept.py"), "plain").stdout)


@pytest.fixture(scope="module", params=[1, 2, *MANY])
def kept(request):
    done = ptrun("--accelerator", "cpu", "--devices", str(request.param), "--global-batch", str(SCRIPTS / "kept.py"))
    assert done.returncode == 0, done.stderr[-4000:]
    return request.param, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("shape", SHAPES)
def test_same_losses_and_weights(plain, kept, shape):
    processes, answers = kept
    expected, found = plain[shape], answers[shape]
    if processes == 1:
        assert found == expected
        return
    assert found["losses"] == pytest.approx(expected["losses"], rel=2e-6, abs=2e-6)
    assert found["weights"] == pytest.approx(expected["weights"], rel=1e-5, abs=1e-5)
    assert found["drift"] == found["weights"], "every rank holds the same weights"
    assert found["count"] == expected["count"], "evaluation sees each sample once"
    assert found["names"] == expected["names"] and found["none"] == expected["none"]
