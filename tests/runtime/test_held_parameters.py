"""Optimizers of parameters that the module does not hold: on several processes nothing would average them."""

import pytest

from tests.forked import ptrun

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from ptmigrate.runtime import Module, Trainer

torch.manual_seed(0)

class Owner:
    net = torch.nn.Linear(2, 1)

class Outside(Module):
    divide_batches = {divide}

    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def configure_optimizers(self):
        return torch.optim.SGD(self.owner.net.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        return self.owner.net(batch[0]).pow(2).mean()

owner = Owner()
Trainer(max_epochs=2).fit(Outside(owner), DataLoader(TensorDataset(torch.randn(10, 2)), batch_size=4))
print("weights", owner.net.weight.tolist())
"""


def on(tmp_path, processes, divide):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(divide=divide))
    return ptrun("--accelerator", "cpu", "--devices", str(processes), "--global-batch", str(script))


def weights(done):
    assert done.returncode == 0, done.stderr
    return sorted({line for line in done.stdout.splitlines() if line.startswith("weights")})


def test_divided_batches_are_refused_and_the_way_out_is_told(tmp_path):
    done = on(tmp_path, 2, True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "SGD steps 2 parameters that Outside does not hold" in done.stderr and "divide_batches" in done.stderr
    assert "weights" not in done.stdout


@pytest.mark.parametrize("divide", [True, False])
def test_one_process_may(tmp_path, divide):
    assert len(weights(on(tmp_path, 1, divide))) == 1


@pytest.mark.slow
def test_whole_batches_may(tmp_path):
    assert weights(on(tmp_path, 2, False)) == weights(on(tmp_path, 1, False))
