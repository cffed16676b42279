"""torchmetrics objects, on ranks with and without batches."""

import json

import torch
import torchmetrics
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(3, average="micro")

    def validation_step(self, batch, batch_idx):
        self.accuracy(self.layer(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)


torch.manual_seed(0)
answers = []
for samples in (103, 5):
    data = TensorDataset(torch.randn(samples, 4), torch.randint(0, 3, (samples,)))
    answers.append({k: float(v) for k, v in Trainer().validate(Net(), DataLoader(data, 10))[0].items()})
Trainer().print(json.dumps(answers))
