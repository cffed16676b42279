"""Promise 8: a run that stops in the middle of an epoch and goes on is the run that did not stop."""

import json
from functools import cache

import pytest
import torch
from launching import SCRIPTS
from ptmigrate.runtime import Callback, Module, Trainer
from torch.utils.data import DataLoader

from tests.forked import ptrun

# one launch trains the loaders of a row: the first one's ranks draw apart; those after it are seeded alike
ROWS = [
    (1, ("shuffled", "generator", "lazy")),
    (1, ("noisy workers", "workers")),
    (2, ("noisy workers", "shuffled", "generator", "workers", "stream", "own generator", "noisy")),
]


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


RUNS = [
    pytest.param(processes, row, loader, id=f"{processes}-{loader}", marks=[pytest.mark.slow] * (i > 0))
    for i, (processes, row) in enumerate(ROWS)
    for loader in row
]


@pytest.mark.parametrize(("processes", "row", "loader"), RUNS)
def test_same_run(folder, processes, row, loader):
    runs = (train(processes, row, what, folder, "0.5")[loader] for what in ("whole", "stop", "resume"))
    whole, first, rest = runs
    assert first["losses"] + rest["losses"] == whole["losses"]
    assert rest["weights"] == whole["weights"]
    assert (rest["steps"], rest["epoch"]) == (whole["steps"], whole["epoch"])


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
@pytest.mark.parametrize("loader", ["shuffled", "noisy"])
def test_on_another_number_of_processes(tmp_path_factory, before, after, loader):
    folder = tmp_path_factory.mktemp("another")
    whole = train(1, (loader,), "whole", "", "0.5")[loader]
    first, rest = (
        train(processes, (loader,), what, folder, "0.5")[loader]
        for processes, what in ((before, "stop"), (after, "resume"))
    )
    assert first["losses"] + rest["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert rest["weights"] == pytest.approx(whole["weights"], rel=1e-4)


def test_several_loaders_with_generators_of_their_own(tmp_path):
    class Sums(Module):
        def __init__(self):
            super().__init__()
            self.weight, self.seen = torch.nn.Parameter(torch.zeros(())), []

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def training_step(self, batch, batch_idx):
            self.seen.append({name: part.tolist() for name, part in batch.items()})
            return self.weight * batch["one"].float().mean()

    class Saves(Callback):
        def on_train_batch_end(self, trainer, module, *_):
            if trainer.global_step == 6:
                trainer.save_checkpoint(tmp_path / "six.ckpt")

    def train(seed, **given):
        module, loaders = Sums(), {}
        for name, size in (("one", 11), ("two", 7)):
            generator = torch.Generator().manual_seed(seed)
            loaders[name] = DataLoader(range(size), 3, shuffle=True, generator=generator)
        Trainer(max_epochs=3, accelerator="cpu", callbacks=[Saves()]).fit(module, loaders, **given)
        return module.seen

    whole = train(4)
    assert train(5, ckpt_path=tmp_path / "six.ckpt") == whole[6:]
