"""Engines that are packages, and fully_shard, for real: two processes train as one, whatever comes together."""

import importlib.util
import json
from functools import cache

import pytest
from launching import SCRIPTS, ptrun
from ptmigrate.runtime import Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies import choose_strategy

SCRIPT = str(SCRIPTS / "engine_cases.py")
EVERY = ("plain", "clip", "accumulate", "groups", "branches", "zeroed", "accumulate+resume", "evaluate", "validate")
# engine -> (the package it needs, its cases beyond EVERY)
ENGINES = {
    "ddp_sharded": ("fairscale", ("clip-value", "own-step", "manual", "bf16", "half")),
    "horovod": ("horovod", ("clip-value", "own-step", "manual", "bf16", "half")),
    "fsdp": ("torch", ("clip-value", "own-step", "blocks", "bf16", "half")),
}
LOOSE = {"bf16": 5e-3, "half": 1e-3}  # half precision rounds the halves of a batch otherwise than the whole


def run(processes, *cases, strategy=None):
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    done = ptrun(*options, *(["--strategy", strategy] if strategy else []), SCRIPT, *cases, limit=280)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def one_process():
    beyond = [case for _, cases in ENGINES.values() for case in cases]
    return run(1, *dict.fromkeys([*EVERY, *beyond]))


@cache
def several(engine, processes=2):
    return run(processes, *EVERY, *ENGINES[engine][1], strategy=engine)


def needs(engine):
    package = ENGINES[engine][0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def check(found, expected, tolerance):
    assert found["losses"] == pytest.approx(expected["losses"], abs=tolerance)
    assert found["weights"] == pytest.approx(expected["weights"], abs=tolerance)
    for name in ("steps", "count", "class"):
        assert found.get(name) == expected.get(name), name
    assert found.get("same", True), "the ranks differ"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "case"), [(engine, case) for engine, (_, more) in ENGINES.items() for case in (*EVERY, *more)]
)
def test_two_processes_train_as_one(engine, case):
    needs(engine)
    check(several(engine)[case], one_process()[case], LOOSE.get(case, 1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_checkpoint_goes_from_engine_to_one_process_and_back(engine, tmp_path):
    needs(engine)
    there, here = tmp_path / "there.ckpt", tmp_path / "here.ckpt"
    run(2, f"save={there}", strategy=engine)
    straight = run(1, f"save={here}", "accumulate")["accumulate"]
    back = run(2, f"continue={here}", strategy=engine)[f"continue={here}"]
    alone = run(1, f"continue={there}")[f"continue={there}"]
    for found in (back, alone):
        assert found["weights"] == pytest.approx(straight["weights"], abs=1e-6)
        assert found["losses"] == pytest.approx(straight["losses"][13:], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_step_ends_the_job(engine):
    needs(engine)
    options = ["--accelerator", "cpu", "--devices", "2", "--strategy", engine]
    done = ptrun(*options, str(SCRIPTS / "dies.py"), "raise")
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and "ValueError: the first failure" in done.stderr


@pytest.mark.parametrize(("engine", "package"), [("ddp_sharded", "fairscale"), ("horovod", "horovod")])
def test_what_is_not_installed_says_what_to_install(engine, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ConfigurationError, match=f"needs {package}, which is not installed; .*(install|python -m)"):
        choose_strategy(engine, devices=2)


@pytest.mark.parametrize(
    ("engine", "feature"), [("fsdp", "manual"), ("fsdp", "closure"), ("fsdp", "kept"), ("ddp_sharded", "closure")]
)
def test_refused_with_the_reason(engine, feature):
    needs(engine)
    with pytest.raises(ConfigurationError, match="use 'ddp'"):
        choose_strategy(engine, devices=2).check({feature: True})


def test_the_guides_spelling():
    needs("ddp_sharded")
    for given in (
        {"strategy": "ddp_sharded"},
        {"plugins": "ddp_sharded"},
        {"plugins": ["ddp_sharded"], "strategy": "ddp"},
        {"plugins": "ddp_sharded", "accelerator": "ddp", "num_nodes": 2},
    ):
        given = {"devices": 2, "accelerator": "cpu"} | given
        if given["accelerator"] == "ddp":
            del given["devices"]
        assert Trainer(**given).strategy.name == "ddp_sharded", given
