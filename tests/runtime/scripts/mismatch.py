"""Rank 1 logs a name that the others do not."""

import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def validation_step(self, batch, batch_idx):
        self.log("extra" if self.global_rank == 1 else "usual", 1.0, sync_dist=True)


Trainer().validate(Net(), DataLoader(TensorDataset(torch.randn(64, 2)), 4))
