"""What the steps of an evaluation fill, in order: lists, a meter, a dictionary's lists; a ragged batch, and none."""

import json

import torch
import torchmetrics
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


def checked(method):
    def of_another_name(self, *args, **kwargs):
        return method(self, *args, **kwargs)

    return of_another_name


class Meter:
    def __init__(self):
        self.values, self.total, self.count = [], 0.0, 0

    @checked
    def update(self, value, n=1):
        self.values.append(value)
        self.total, self.count = self.total + value * n, self.count + n


class Holder:
    def __init__(self):
        self.numbers = []


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.holder, self.found = Holder(), []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def training_step(self, batch, batch_idx):
        self.in_order(self.holder.numbers.append, -1.0)  # in training: at once
        return self.layer(batch[0]).mean()

    def on_validation_epoch_start(self):
        self.meter, self.lists = Meter(), {"rows": [], "odd": []}
        self.metric = torchmetrics.SumMetric()

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        self.in_order(self.meter.update, x[:, 0].mean().item(), n=len(x))
        self.in_order(self.lists["rows"].extend, x)
        self.in_order(self.metric.update, x.sum())
        for value in x[:, 0].tolist():
            if value % 2:
                self.in_order(self.lists["odd"].append, value)
        self.in_order(self.holder.numbers.append, batch_idx)

    def on_validation_epoch_end(self):
        rows = torch.stack(self.lists["rows"])[:, 0].tolist() if self.lists["rows"] else []
        self.found.append([self.meter.values, self.meter.total, self.meter.count, rows, self.lists["odd"]])
        self.found.append([*(n for n in self.holder.numbers if n >= 0), self.metric.compute().item()])
        self.holder.numbers.clear()

    def test_step(self, batch, batch_idx, dataloader_idx=0):
        self.in_order(self.found.append, (dataloader_idx, batch_idx, len(batch[0])))


class Hidden(Net):
    def validation_step(self, batch, batch_idx):
        self.in_order([].append, 1)


class Unsent(Net):
    def validation_step(self, batch, batch_idx):
        self.in_order(self.lists["rows"].append, lambda: batch_idx)


def loader(samples, batch):
    return DataLoader(TensorDataset(torch.arange(float(samples)).unsqueeze(1).repeat(1, 2)), batch)


def main():
    answers = {}
    for samples in (35, 3):
        net, trainer = Net(), Trainer(max_epochs=2, accelerator="cpu")
        trainer.fit(net, loader(8, 4), loader(samples, 4))
        trainer.in_order.kept = [((0, 0), net.found.append, ("of one that was interrupted",), {})]
        trainer.test(net, [loader(9, 4), loader(2, 4)])
        answers[str(samples)] = net.found
    for kind in (Hidden, Unsent):
        try:
            Trainer(max_epochs=1, accelerator="cpu").fit(kind(), loader(8, 4), loader(35, 4))
            answers[kind.__name__] = "filled"
        except Exception as why:
            answers[kind.__name__] = f"{type(why).__name__}: {why}"
    Trainer(accelerator="cpu").print(json.dumps(answers))


if __name__ == "__main__":
    main()
