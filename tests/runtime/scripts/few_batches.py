"""An evaluation of two batches counts by hand, on as many processes as there are: some may have no batch."""

import json

import numpy
import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layer, self.told = torch.nn.Linear(4, 3), []

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.0)
        return optimizer

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def on_validation_epoch_start(self):
        self.number = self.tensor = self.right = self.each = self.array = 0
        self.zero = torch.tensor(0.0)

    def validation_step(self, batch, batch_idx):
        out = self.layer(batch[0])
        loss = torch.nn.functional.cross_entropy(out, batch[1], reduction="sum")
        self.number += loss.item()
        self.tensor += loss
        self.right += (out.argmax(1) == batch[1]).sum()
        self.each += torch.bincount(batch[1], minlength=3)
        self.array += numpy.bincount(batch[1].numpy(), minlength=3) / 2
        self.zero = self.zero + loss.double() * torch.ones(2)

    def on_validation_epoch_end(self):
        values = [self.number, self.tensor, self.right, self.each, self.array, self.zero]
        values = [self.all_reduce(value) for value in values]
        self.plateau.step(values[0])
        rate = self.plateau.optimizer.param_groups[0]["lr"]
        self.told.append([*(value.tolist() if hasattr(value, "tolist") else value for value in values), rate])


torch.manual_seed(1)
data = TensorDataset(torch.randn(12, 4), torch.randint(0, 3, (12,)))
net, trainer = Net(), Trainer(max_epochs=2)
trainer.fit(net, DataLoader(data, batch_size=6), DataLoader(data, batch_size=8))
told = trainer.runtime.all_gather(torch.tensor([row[0] for row in net.told] + [row[-1] for row in net.told]))
told = told.tolist() if told.dim() == 2 else [told.tolist()]
if trainer.is_global_zero:
    print(json.dumps({"rows": net.told, "on every rank": all(row == told[0] for row in told)}))
