"""A module that a Trainer gives back to the CPU, with what its attributes hold."""

import pytest
import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.back import give_back
from torch.utils.data import DataLoader


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.register_buffer("mean", torch.zeros(2))

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_what_attributes_hold_stays_the_same_objects():
    net, losses = Net(), [torch.ones(1), 3.0, ("a", torch.ones(2))]
    losses.append(losses)  # a list may hold itself
    net.losses, net.outs, net.others = losses, {"y": torch.ones(2)}, [torch.nn.Linear(2, 2)]
    weight, other = net.layer.weight, net.others[0].weight
    given = [losses[0], losses[2][1], net.outs["y"]]
    give_back(net)
    assert net.losses is losses and net.layer.weight is weight and net.others[0].weight is other
    assert all(a is b for a, b in zip(given, [losses[0], losses[2][1], net.outs["y"]], strict=True))


@pytest.mark.parametrize("asked", [True, False])
def test_a_trainer_gives_it_back_when_it_is_asked_to(monkeypatch, asked):
    calls = []
    monkeypatch.setattr("ptmigrate.runtime.trainer.give_back", calls.append)
    trainer, net, loader = (
        Trainer(max_epochs=1, accelerator="cpu", back_on_cpu=asked),
        Net(),
        DataLoader(torch.ones(4, 2)),
    )
    trainer.fit(net, loader)
    assert calls == [net] * asked
