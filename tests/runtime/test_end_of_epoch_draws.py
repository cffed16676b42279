"""An evaluation that a module goes through by itself at an epoch's end has one order on all ranks: rank 0's.

So have the samples that it chooses as an epoch begins, or in the loader that it makes.

What a script draws between two fits, such as the halves of its data, is rank 0's too; what a step draws, each rank's.
"""

import subprocess
import sys

TEXT = """
import random

import numpy
import torch
from ptmigrate.runtime import Module, Trainer


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        with open(f'own_{self.global_rank}', 'a') as file:
            print(torch.randperm(50).tolist(), random.random(), numpy.random.rand(), file=file)
        return torch.dropout(self.layer(batch), 0.5, True).sum()

    def say(self, name):
        with open(f'{name}_{self.global_rank}', 'a') as file:
            print(torch.randperm(50).tolist(), random.random(), numpy.random.rand(), file=file)

    def setup(self, stage):
        self.say('setup')

    def train_dataloader(self):
        self.say('made')
        return torch.utils.data.DataLoader(torch.ones(9, 2), batch_size=2)

    def on_train_start(self):
        self.say('started')

    def on_train_epoch_start(self):
        self.say('began')

    def on_train_epoch_end(self):
        self.say('drawn')

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


for _ in range(2):
    trainer = Trainer(max_epochs=2, reload_dataloaders_every_n_epochs=1)
    trainer.fit(Net())
    with open(f'between_{trainer.global_rank}', 'a') as file:
        print(torch.randperm(50).tolist(), random.random(), numpy.random.rand(), file=file)
"""


ALIKE = {"setup": 2, "made": 4, "started": 2, "began": 4, "drawn": 4, "between": 2}


def test_ranks_draw_alike_outside_of_the_batches_only(tmp_path):
    (tmp_path / "script.py").write_text(TEXT)
    command = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = {p.name: p.read_text().splitlines() for p in tmp_path.glob("*_[01]")}
    for kind, count in ALIKE.items():
        assert lines[f"{kind}_0"] == lines[f"{kind}_1"] and len(set(lines[f"{kind}_0"])) == count
    steps = [*lines["own_0"], *lines["own_1"]]
    assert len(steps) == 2 * 2 * 2 * 3 and len(set(steps)) == len(steps)  # in the second fit too, and no stream again


WHOLE = """
import torch
from ptmigrate.runtime import Module, Trainer


class Net(Module):
    divide_batches = False

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        with open(f'own_{self.global_rank}', 'a') as file:
            print(torch.rand(1).item(), batch.tolist(), file=file)
        return self.layer(batch).sum()

    def on_train_epoch_end(self):
        if self.trainer.is_global_zero:
            list(torch.utils.data.DataLoader(torch.ones(3)))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.arange(12.0).view(6, 2), batch_size=2, shuffle=True)
Trainer(max_epochs=2).fit(Net(), data)
"""


def test_what_rank_0_alone_draws_at_the_end_of_an_epoch_leaves_whole_batches_alike(tmp_path):
    (tmp_path / "script.py").write_text(WHOLE)
    command = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = ((tmp_path / f"own_{rank}").read_text().splitlines() for rank in (0, 1))
    assert first == second and len(first) == 6
