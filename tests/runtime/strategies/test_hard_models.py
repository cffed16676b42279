"""What models have that engines stumble over: each engine trains them as one process does, or says that it cannot."""

import importlib.util
import json
from functools import cache

import pytest
from engine_matrix import numbers
from launching import SCRIPTS

from tests.forked import ptrun

SCRIPT = str(SCRIPTS / "hard_models.py")
CASES = (
    "shared buffers recomputed reentrant thawed thawed_by_hand renewed accumulating gan penalized in_turn trunk "
    "closure rows words words_by_hand kept_words best transposed scheduled_late"
).split()
# engine -> what it refuses, and the word that stands for the reason
LOOPS = {"kept_words": "kept"}
DENSE = {"words": "sparse", "words_by_hand": "sparse"}
PARTS = {"closure": "closure", "rows": "whole parameters"}
ENGINES = {
    "ddp": {},
    "bagua": LOOPS,
    "horovod": {"trunk": "two optimizers"},
    "ddp_sharded": {**LOOPS, **DENSE, "closure": "closure", "trunk": "two optimizers"},
    "fsdp": {**LOOPS, **DENSE, **PARTS},
    "deepspeed": {
        **LOOPS,
        **DENSE,
        **PARTS,
        "thawed": "add_param_group",
        "thawed_by_hand": "add_param_group",
        **dict.fromkeys(("gan", "in_turn", "trunk"), "several optimizers"),
        "penalized": "call self.clip_gradients",
    },
    "deepspeed_stage_3": {
        **LOOPS,
        **DENSE,
        **PARTS,
        "shared": "'temperature'",
        "closure": "precision 64",
        "thawed": "add_param_group",
        "thawed_by_hand": "add_param_group",
        **dict.fromkeys(("gan", "in_turn", "trunk"), "several optimizers"),
        "penalized": "call self.clip_gradients",
    },
}
PACKAGES = {
    "ddp_sharded": "fairscale",
    "horovod": "horovod",
    "deepspeed": "deepspeed",
    "deepspeed_stage_3": "deepspeed",
}


@cache
def found(engine, processes=2):
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    done = ptrun(*options, *(["--strategy", engine] if engine else []), SCRIPT, *CASES, limit=280)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(engine, case, processes=2):
    package = PACKAGES.get(engine, "torch")
    for needed in (package, "fairscale"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    mine, wanted = found(engine, processes)[case], found(None, 1)[case]
    if case in ENGINES[engine]:
        assert ENGINES[engine][case] in mine["refused"]
    else:
        assert "refused" not in mine, mine["refused"]
        assert numbers(mine) == pytest.approx(numbers(wanted), abs=1e-6)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "case"), [(engine, case) for engine in ENGINES for case in CASES])
def test_two_processes_train_as_one(engine, case):
    check(engine, case)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["fsdp", "ddp_sharded"])
def test_three_processes_where_parts_are_uneven(engine, case):
    check(engine, case, 3)
