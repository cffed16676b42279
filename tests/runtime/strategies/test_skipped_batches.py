"""Steps without a loss, gradients that only some ranks have, the module's own backward: as in one process where that
says what has to come out, and never a rank that waits for ever.
"""

import importlib.util
import json
from functools import cache

import pytest
from launching import SCRIPTS

from tests.forked import ptrun

SCRIPT = str(SCRIPTS / "skipping.py")
APART = ("apart", "apart-window")
ALIKE = ("every", "window", "hooks", "own", "undefined", *APART)  # what comes out is the same as in one process
BY_RANK = ("some", "some-window", "some-norm", "late-norm")
HOOKS = ("some-hooks",)
HALF = ("half", "half-some", "half-window")  # a scaler takes a step on all ranks, or on none
AVERAGED = (*ALIKE, *BY_RANK, *HOOKS, "manual-undefined")
DDP = (*AVERAGED, *HALF)
# engine -> (the package it needs, its cases)
ENGINES = {
    "ddp": ("torch", DDP),
    "bagua": ("torch", AVERAGED),
    "ddp_sharded": ("fairscale", DDP),
    "horovod": ("horovod", DDP),
    "fsdp": ("torch", (*DDP, "some-blocks")),
    "deepspeed": ("deepspeed", ("every", "window", "own", *APART, *BY_RANK)),
    "deepspeed_stage_1": ("deepspeed", APART),
    "deepspeed_stage_3": ("deepspeed", ("every", "window", "hooks")),
    "pipeline": ("torch", ("every", "window", "hooks", "own")),
}
QUICK = ("ddp",)


def needs(engine):
    package = ENGINES[engine][0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def run(processes, *cases, strategy="ddp"):
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch", "--strategy", strategy]
    return ptrun(*options, SCRIPT, *cases, limit=280)


@cache
def answers(processes, engine="ddp"):
    cases = ENGINES[engine][1] if processes > 1 else (*ALIKE, "manual-undefined")
    done = run(processes, *cases, strategy=engine)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def of_all(cases):
    return [
        pytest.param(engine, case, marks=() if engine in QUICK else pytest.mark.slow)
        for engine in ENGINES
        for case in ENGINES[engine][1]
        if case in cases
    ]


@pytest.mark.parametrize(("engine", "case"), of_all((*ALIKE, "manual-undefined")))
def test_two_processes_train_as_one(engine, case):
    needs(engine)
    found, expected = answers(2, engine)[case], answers(1)[case]
    assert found["same"], "the ranks differ"
    for name, values in expected["weights"].items():
        assert found["weights"][name] == pytest.approx(values, abs=1e-6), name


@pytest.mark.parametrize(("engine", "case"), of_all((*BY_RANK, *HOOKS, *HALF, "some-blocks")))
def test_ranks_that_skip_alone_stay_alike(engine, case):
    needs(engine)
    found = answers(2, engine)[case]
    assert found["same"], "the ranks differ"
    assert all(value == value for values in found["weights"].values() for value in values)


@pytest.mark.slow
def test_three_processes():
    for found in answers(3).values():
        assert found["same"], "the ranks differ"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ddp", "ddp_sharded", "horovod", "fsdp", "deepspeed"])
def test_a_backward_that_stays_on_its_rank_is_an_error(engine):
    needs(engine)
    done = run(2, "unasked", strategy=engine)
    assert done.returncode == 1
    assert "self.manual_backward(loss) in place of loss.backward()" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "case", "says"),
    [
        ("fsdp", "late-blocks", "training_step gave None"),
        ("deepspeed_stage_3", "some", "training_step gave None"),
        ("fsdp", "apart-blocks", "training_step uses other layers on one rank than on another"),
        ("deepspeed_stage_3", "apart", "training_step uses other layers on one rank than on another"),
    ],
)
def test_what_would_leave_others_waiting_is_an_error(engine, case, says):
    needs(engine.removesuffix("_stage_3"))
    done = run(2, case, strategy=engine)
    assert done.returncode == 1
    assert says in done.stderr
