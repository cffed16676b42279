"""A BasePredictionWriter on several processes: which samples each rank wrote, and what came of them."""

import json

import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.callbacks import BasePredictionWriter
from torch.utils.data import DataLoader, TensorDataset


class Writer(BasePredictionWriter):
    def write_on_epoch_end(self, trainer, module, predictions, batch_indices):
        self.own = [batch_indices[0], predictions]


class Net(Module):
    def predict_step(self, batch, batch_idx):
        return batch[0].min().item()


writer = Writer("epoch")
trainer = Trainer(callbacks=[writer])
trainer.predict(Net(), DataLoader(TensorDataset(torch.arange(10.0)), 4))
every = [None] * trainer.world_size
torch.distributed.all_gather_object(every, writer.own)
trainer.print(json.dumps(every))
