"""With the global batch kept, several processes draw what one draws: in steps, in validation, and for samples."""

import json

import pytest
from launching import MANY, SCRIPTS

from tests.forked import answers, ptrun

CASES = [
    *"step late manual validated validation unsaid dry split flips".split(),
    *"samples collated masked lazy streamed together hooks workers persistent".split(),
    "masking workers",
    "flipping workers",
]


@pytest.fixture(scope="module", params=[2, *MANY])
def several(request):
    return answers("draws.py", request.param)


@pytest.mark.parametrize("case", CASES)
def test_one_process_s_run(several, case):
    expected, found = answers("draws.py", 1)[case], several[case]
    assert found["losses"] == pytest.approx(expected["losses"], rel=1e-5, abs=1e-5)
    assert found["weights"] == pytest.approx(expected["weights"], rel=1e-4, abs=1e-5)
    assert found["drawn"] == expected["drawn"], "rank 0 must have drawn what one process draws"


@pytest.mark.parametrize("case", ["step", "manual", "masked"])
def test_samples_that_are_not_drawn_are_loaded_once(several, case):
    expected = answers("draws.py", 1)[case]["loads"]
    borrowed = several[case]["loads"] - expected
    assert expected == 2 * 103 and 0 <= borrowed <= 2, "a rank without a sample borrows one"


@pytest.mark.slow
def test_fewer_samples_than_processes():
    assert answers("draws.py", 3, "few")["few"]["losses"] == pytest.approx(
        answers("draws.py", 1, "few")["few"]["losses"]
    )


@pytest.mark.slow
def test_what_differs_is_told():
    options = ["--accelerator", "cpu", "--devices", "2", "--global-batch"]
    done = ptrun(*options, str(SCRIPTS / "draws.py"), "told", "step")
    assert done.returncode == 0, done.stderr[-4000:]
    told = [line for line in done.stderr.splitlines() if line.startswith("random numbers")]
    assert len(told) == 2 and "has drawn more numbers from torch" in told[1] and "one sample after the other" in told[0]


@pytest.mark.slow
def test_a_validation_that_draws_for_the_first_time_later_is_told():
    options = ["--accelerator", "cpu", "--devices", "2", "--global-batch"]
    done = ptrun(*options, str(SCRIPTS / "draws.py"), "late validation", "dry")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr.count("a validation has drawn some; validation_draws = True in the module") == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp_spawn", "fsdp", "horovod", "ddp_sharded", "deepspeed_stage_2", "bagua"])
def test_with_every_engine(strategy):
    options = ["--accelerator", "cpu", "--devices", "2", "--global-batch", "--strategy", strategy]
    done = ptrun(*options, str(SCRIPTS / "draws.py"), "step", "samples")
    assert done.returncode == 0, done.stderr[-4000:]
    for case, answer in json.loads(done.stdout.splitlines()[-1]).items():
        assert answer["losses"] == pytest.approx(answers("draws.py", 1)[case]["losses"], rel=1e-5, abs=1e-5)
