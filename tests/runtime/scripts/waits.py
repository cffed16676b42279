"""Ranks that send different messages; and one that takes its time, which is no reason to end anything."""

import sys
import time

import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

case = sys.argv[1]


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        alone = self.global_rank == 1 and batch_idx == 2
        if case == "logs" and alone:
            self.log("only_here", loss, sync_dist=True)
        if case == "reduces" and alone:
            self.all_reduce(loss)
        if case == "kinds" and batch_idx == 2:
            self.trainer.runtime.barrier() if alone else self.all_reduce(loss)
        if case == "sizes" and batch_idx == 2:
            self.all_gather(torch.ones(5 + self.global_rank))
        if case == "sleeps" and alone:
            time.sleep(12)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def validation_step(self, batch, batch_idx):
        if case == "rounds":
            self.all_gather(batch[0].mean())

    def on_train_epoch_end(self):
        if case == "saves" and self.trainer.is_global_zero:
            self.trainer.save_checkpoint("alone.ckpt")


data = TensorDataset(torch.randn(64, 2, generator=torch.Generator().manual_seed(1)))
trainer = Trainer(max_epochs=1)

net = Net()
trainer.fit(net, DataLoader(data, 4), DataLoader(data, 6) if case == "rounds" else None)
if case == "leaves" and trainer.is_global_zero:
    trainer.validate(net, DataLoader(data, 4))
trainer.print(trainer.global_step)
