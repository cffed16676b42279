"""Rank 1 logs a name that the others do not: in validation, or at a step of training ("steps")."""

import sys

import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def name(self):
        return "extra" if self.global_rank == 1 else "usual"

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).mean()
        self.log(self.name(), loss, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log(self.name(), 1.0, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


trainer, loader = Trainer(max_epochs=1), DataLoader(TensorDataset(torch.randn(64, 2)), 4)
trainer.fit(Net(), loader) if "steps" in sys.argv else trainer.validate(Net(), loader)
