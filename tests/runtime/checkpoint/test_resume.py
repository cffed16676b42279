"""Promise 8: a run that stops in the middle of an epoch and goes on is the run that did not stop."""

import json

import pytest
from launching import SCRIPTS, ptrun


def train(processes, *arguments):
    done = ptrun(
        "--accelerator", "cpu", "--devices", str(processes), "--global-batch", str(SCRIPTS / "resume.py"), *arguments
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("loader", "processes"),
    [
        ("shuffled", 1),
        pytest.param("shuffled", 2, marks=pytest.mark.slow),
        pytest.param("generator", 1, marks=pytest.mark.slow),
        pytest.param("workers", 1, marks=pytest.mark.slow),
        pytest.param("stream", 2, marks=pytest.mark.slow),
        pytest.param("generator", 2, marks=pytest.mark.slow),
        pytest.param("workers", 2, marks=pytest.mark.slow),
        ("noisy workers", 1),
        pytest.param("noisy workers", 2, marks=pytest.mark.slow),
        pytest.param("lazy", 1, marks=pytest.mark.slow),
    ],
)
def test_same_run(tmp_path, loader, processes):
    path = str(tmp_path / "mid.ckpt")
    whole = train(processes, loader, "whole", path, "0.5")
    first = train(processes, loader, "stop", path, "0.5")
    rest = train(processes, loader, "resume", path, "0.5")
    assert first["losses"] + rest["losses"] == whole["losses"]
    assert rest["weights"] == whole["weights"]
    assert (rest["steps"], rest["epoch"]) == (whole["steps"], whole["epoch"])


@pytest.mark.parametrize(
    ("before", "after"), [pytest.param(2, 1, marks=pytest.mark.slow), pytest.param(1, 3, marks=pytest.mark.slow)]
)
def test_on_another_number_of_processes(tmp_path, before, after):
    path = str(tmp_path / "mid.ckpt")
    whole = train(1, "shuffled", "whole", path, "0")
    first = train(before, "shuffled", "stop", path, "0")
    rest = train(after, "shuffled", "resume", path, "0")
    assert first["losses"] + rest["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert rest["weights"] == pytest.approx(whole["weights"], rel=1e-4)
