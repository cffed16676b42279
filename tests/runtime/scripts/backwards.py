"""Manual optimization where the last rank makes one backward pass more: in the middle of an epoch, or in its last
batch.
"""

import sys

import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

AT = int(sys.argv[1])


class Net(Module):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layer = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        self.manual_backward(self.layer(batch[0]).mean())
        if batch_idx == AT and self.global_rank == 1:
            self.manual_backward(self.layer(batch[0]).mean())
        self.optimizers().step()
        self.log("seen", 1.0, on_step=False, on_epoch=True, sync_dist=True)


Trainer(max_epochs=2).fit(Net(), DataLoader(TensorDataset(torch.ones(48, 2)), 4))
