"""Promise 8: a run that stops in the middle of an epoch and goes on is the run that did not stop."""

import json
from functools import cache

import pytest
from launching import SCRIPTS, ptrun

LOADERS = {  # the first one's ranks draw apart; those after it are seeded alike
    1: ("noisy workers", "shuffled", "generator", "workers", "lazy"),
    2: ("noisy workers", "shuffled", "generator", "workers", "stream"),
}


@cache
def train(processes, loaders, what, folder, dropout):
    """The answers by loader, each trained in its turn by one launch."""
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    done = ptrun(*options, str(SCRIPTS / "resume.py"), ",".join(loaders), what, str(folder), dropout)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("resume")


@pytest.mark.parametrize(
    ("processes", "loader"),
    [
        *((1, loader) for loader in LOADERS[1]),
        *(pytest.param(2, loader, marks=pytest.mark.slow) for loader in LOADERS[2]),
    ],
)
def test_same_run(folder, processes, loader):
    runs = (train(processes, LOADERS[processes], what, folder, "0.5") for what in ("whole", "stop", "resume"))
    whole, first, rest = (run[loader] for run in runs)
    assert first["losses"] + rest["losses"] == whole["losses"]
    assert rest["weights"] == whole["weights"]
    assert (rest["steps"], rest["epoch"]) == (whole["steps"], whole["epoch"])


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_on_another_number_of_processes(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("another")
    whole = train(1, ("shuffled",), "whole", "", "0")["shuffled"]
    first, rest = (
        train(processes, ("shuffled",), what, folder, "0")["shuffled"]
        for processes, what in ((before, "stop"), (after, "resume"))
    )
    assert first["losses"] + rest["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert rest["weights"] == pytest.approx(whole["weights"], rel=1e-4)
