"""After a fit in processes of its own, the script goes on as after one that ran here."""

import json

import pytest
from launching import SCRIPTS, run


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_everything_comes_back(method, tmp_path):
    done = run(str(SCRIPTS / "spawned.py"), method, str(tmp_path), limit=250)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["moved"] and answer["steps"] == 8 and answer["seen"] == 8
    assert answer["frozen"] == ["norm.bias"]
    assert len(answer["losses"]) == 2 and answer["losses"][-1] == answer["loss"]
    assert answer["ranks"] == [2, True, 3], "the process that called is alone"
    assert any(value in answer["saved"].values() for value in answer["weights"])
    once = run(str(SCRIPTS / "spawned.py"), method, str(tmp_path), limit=250, PTMIGRATE_DEVICES="1")
    assert json.loads(once.stdout.splitlines()[-1])["drawn"] == answer["drawn"], "generators go on as in one process"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_first_failure_reaches_the_caller(method, tmp_path):
    done = run(str(SCRIPTS / "spawned.py"), method, str(tmp_path), "raise", limit=250)
    assert done.returncode == 1
    assert "rank 1 stopped at epoch 0, batch 3:" in done.stderr and "ValueError: the first failure" in done.stderr
    assert done.stderr.splitlines()[-1] == "rank 1 failed; the other ranks were ended."


@pytest.mark.slow
def test_what_the_processes_refuse_is_refused_to_the_caller():
    pytest.importorskip("fairscale")
    options = {"PTMIGRATE_STRATEGY": "ddp_sharded_spawn", "PTMIGRATE_DEVICES": "2", "PTMIGRATE_ACCELERATOR": "cpu"}
    done = run(str(SCRIPTS / "hard_models.py"), "trunk", limit=250, **options)
    assert "a parameter in two optimizers" in json.loads(done.stdout)["trunk"]["refused"]
