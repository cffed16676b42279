"""Users' own code that reads weights and gradients, or changes them: each engine trains as one process does, or says
that it cannot.
"""

import importlib.util
import json
from functools import cache

import pytest
from engine_matrix import numbers
from launching import SCRIPTS

from tests.forked import ptrun

SCRIPT = str(SCRIPTS / "hands_on.py")
CASES = (
    "reads clamps_after clamps_before clamps_in_its_step clamps_by_hand norms teaches reads_gradients "
    "changes_gradients changes_by_hand clips clips_half hooked skips averages penalized "
    "reads_each reads_between clamps_each reads_weights cut_short accumulates_itself halves exchanges thaws_by_hand "
    "clips_by_hand reads_by_hand zeroes_by_hand zeroes_at_once reads_after takes_turns double"
).split()
IN_STEP = dict.fromkeys(("norms", "teaches"), "training_step changes the parameter")
HANDS = "clamps changes thaws clips reads zeroes".split()
BY_HAND = dict.fromkeys([f"{does}_by_hand" for does in HANDS] + ["zeroes_at_once"], "manual optimization")
DEEPSPEED = {
    "changes_by_hand": "come about in the step",
    "clips_by_hand": "call self.clip_gradients",
    "thaws_by_hand": "were frozen when training started",
    **dict.fromkeys(
        ("reads_by_hand", "zeroes_by_hand", "reads_after", "reads_between", "halves"),
        "does not have it: under DeepSpeed",
    ),
    "takes_turns": "several optimizers",
    "accumulates_itself": "has not zeroed",
}
EACH = dict.fromkeys(("reads_each", "clamps_each"), "where gradients are accumulated")
# engine -> what it refuses, and the word that stands for the reason
ENGINES = {
    "ddp": {},
    "dp": {**IN_STEP, **BY_HAND},
    "bagua": {},
    "horovod": {},
    "ddp_sharded": {},
    "fsdp": {},
    **{f"deepspeed{stage}": {**DEEPSPEED, **EACH} for stage in ("_stage_1", "")},
    "deepspeed_stage_3": {**DEEPSPEED, "double": "precision 64"},
    "pipeline": {**IN_STEP, **BY_HAND, "penalized": "besides calling", "takes_turns": "several optimizers"},
}
AWAY = {("ddp_sharded", case) for case in ("reads_after", "reads_between")}  # there each rank has those of its own part
PACKAGES = {"ddp_sharded": "fairscale", "horovod": "horovod"}


@cache
def found(engine, processes=2):
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    zero3 = {"PERSISTS": "0"} if engine == "deepspeed_stage_3" else {}
    named = ["--strategy", "deepspeed" if zero3 else engine] if engine else []
    done = ptrun(*options, *named, SCRIPT, *CASES, limit=280, **zero3)
    print(done.stdout[:2000], done.stderr[-4000:], sep="\n")  # shown where a case fails: what the engine has said
    assert done.returncode == 0
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "case"), [(e, case) for e in ENGINES for case in CASES if (e, case) not in AWAY])
def test_two_processes_train_as_one(engine, case):
    package = PACKAGES.get(engine, "deepspeed" if engine.startswith("deepspeed") else "torch")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    mine, wanted = found(engine)[case], found(None, 1)[case]
    if case in ENGINES[engine]:
        assert ENGINES[engine][case] in mine["refused"]
    else:
        assert "refused" not in mine, mine["refused"]
        assert numbers(mine) == pytest.approx(numbers(wanted), abs=1e-6)
