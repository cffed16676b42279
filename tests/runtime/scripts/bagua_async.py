"""Averages of the weights behind training's back, one begun in each step and added in the next, so that what comes out
does not go by the clock: prints every rank's batches, and its weights after the last step and at the end.
"""

import json
import time

import torch
import torch.nn.functional as F
from ptmigrate.runtime import BaguaStrategy, Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 1)
        self.batches = []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def on_train_batch_start(self, batch, batch_idx):
        while self.trainer.strategy.algorithm.thread is not None and self.trainer.strategy.algorithm.thread.busy:
            time.sleep(0.001)

    def training_step(self, batch, batch_idx):
        self.batches.append(torch.cat(batch, 1))
        return F.mse_loss(self.layer(batch[0]), batch[1])

    def on_train_epoch_end(self):
        self.last = numbers(self)


def numbers(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()]).tolist()


module = Net()
begin = numbers(module)
generator = torch.Generator().manual_seed(1)
data = TensorDataset(torch.randn(24, 3, generator=generator), torch.randn(24, 1, generator=generator))
trainer = Trainer(
    accelerator="cpu", devices=2, max_epochs=2, strategy=BaguaStrategy("async", warmup_steps=2, sync_interval_ms=0)
)
trainer.fit(module, DataLoader(data, 2))
batches, last = trainer.runtime.all_gather([torch.stack(module.batches), torch.tensor(module.last)])
if trainer.is_global_zero:
    rounds = trainer.strategy.algorithm.rounds
    found = {"begin": begin, "last": last.tolist(), "end": numbers(module), "rounds": rounds}
    print(json.dumps({**found, "batches": batches.tolist()}))
