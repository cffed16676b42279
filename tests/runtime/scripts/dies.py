"""A run in which one rank fails at its third batch, or in which everything takes for ever."""

import sys
import time

import torch
from ptmigrate.runtime import Module, Trainer, rank_zero_print
from torch.utils.data import DataLoader, TensorDataset

what, devices = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
rank_zero_print("hello from the script")


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        if what == "raise" and self.global_rank == 1 and batch_idx == 3:
            print("failed at", time.time(), flush=True)
            raise ValueError("the first failure")
        if what in ("exit", "workers") and self.global_rank == 1 and batch_idx == 3:
            sys.exit(7)
        if what == "waits":
            self.print("waiting", flush=True)
            time.sleep(60 * self.global_rank)
            self.all_reduce(1.0)
        if what == "sleep":
            self.print("sleeping", flush=True)
            time.sleep(60)
        return self.layer(batch[0]).mean()


if what == "wrong":
    Trainer(max_epoch=3)
if what == "wrong later":
    Trainer(accelerator="cpu", devices=devices, log_every_n_steps=1, callbacks=[]).fit(Net())


class Slow(TensorDataset):
    def __getitem__(self, index):
        if index > 40:
            time.sleep(60)
        return super().__getitem__(index)


data = (Slow if what == "workers" else TensorDataset)(torch.randn(64, 2))
loader = DataLoader(data, 4, num_workers=int(what == "workers"), prefetch_factor=4 if what == "workers" else None)
Trainer(max_epochs=2, accelerator="cpu", devices=devices).fit(Net(), loader)
rank_zero_print("done")
