"""Ranks that branch differently: one asks for a stop, or skips its batch. Prints what each rank saw."""

import json
import sys

import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.seen = torch.nn.Linear(2, 1), []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        self.seen.append([self.current_epoch, batch_idx])
        return self.layer(batch[0]).mean()


class Asks(Net):
    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx == 3 and self.global_rank == self.trainer.world_size - 1:
            self.trainer.should_stop = True


class AsksElsewhere(Net):
    """The code of the class does not show that it asks."""

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx == 3 and self.global_rank == self.trainer.world_size - 1:
            ask(self.trainer)


class Skips(Net):
    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        return None if batch_idx == 2 and self.global_rank == 1 else loss


def ask(trainer):
    trainer.should_stop = True


answers = {}
for kind, options in ((Asks, {}), (AsksElsewhere, {}), (Skips, {}), (Net, {"max_time": "00:00:00:00"})):
    module = kind()
    trainer = Trainer(max_epochs=3, accelerator="cpu", **options)
    trainer.fit(module, DataLoader(TensorDataset(torch.ones(48, 2)), 4))
    weights = module.all_gather(module.layer.weight.detach().double().sum())
    every = module.all_gather(torch.tensor([len(module.seen), trainer.global_step, trainer.current_epoch]))
    answers[kind.__name__] = {
        "seen": every.tolist(),
        "last": module.seen[-1:],
        "apart": float(weights.max() - weights.min()),
    }
Trainer(accelerator="cpu").print(json.dumps(answers))
sys.stdout.flush()
