"""Promises 4 and 5: one process bit for bit, several processes with the global batch kept to rounding, whatever
the sampler.
"""

import json

import pytest
from launching import MANY, SCRIPTS

from tests.forked import ptrun, run

CASES = [
    *(
        "sequential-mean",
        "shuffled-mean",
        "dropped-mean",
        "generator-mean",
        "weighted-mean",
        "replacement-mean",
        "subset-mean",
    ),
    *("eager-mean", "lazy-mean", "tiny-mean", "workers-mean", "stream-mean", "unbatched-mean", "list-mean"),
    "several-mean",
    *("shuffled-sum", "tiny-sum"),
]


@pytest.fixture(scope="module")
def plain():
    return json.loads(run(str(SCRIPTS / "samplers.py"), "plain").stdout)


@pytest.fixture(scope="module", params=[1, 2, *MANY])
def divided(request):
    options = ["--accelerator", "cpu", "--devices", str(request.param), "--global-batch"]
    done = ptrun(*options, str(SCRIPTS / "samplers.py"))
    assert done.returncode == 0, done.stderr[-4000:]
    return request.param, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", CASES)
def test_same_losses_and_weights(plain, divided, case):
    processes, answers = divided
    expected, found = plain[case], answers[case]
    if processes == 1:
        assert found == expected
        return
    assert found["losses"] == pytest.approx(expected["losses"], rel=2e-6, abs=2e-6)
    assert found["weights"] == pytest.approx(expected["weights"], rel=1e-5, abs=1e-5)
    assert found["random"] == expected["random"], "rank 0 must draw what one process draws"


@pytest.mark.parametrize("case", CASES)
def test_every_sample_counted_once(plain, divided, case):
    assert divided[1][case]["seen"] == plain[case]["seen"]
