"""Validation, test and prediction: exact values over 1, 2, 3 processes, ranks without a batch among them."""

import json

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))
        self.order = []

    def forward(self, x):
        return self.layers(x)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self(batch[0]), batch[1])
        self.log("train", loss, on_epoch=True, sync_dist=True)
        self.log(
            "hits",
            self(batch[0]).argmax(1).eq(batch[1]).sum(),
            on_step=False,
            on_epoch=True,
            reduce_fx="sum",
            sync_dist=True,
        )
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        x, y = batch
        self.order.append((dataloader_idx, batch_idx))
        out = self(x)
        self.log("loss", F.cross_entropy(out, y), sync_dist=True)
        self.log("hits", out.argmax(1).eq(y).sum(), reduce_fx="sum", sync_dist=True)
        self.log("least", out.min(), reduce_fx=torch.min, sync_dist=True)
        self.log_dict({"most": out.max()}, reduce_fx="max", sync_dist=True)
        self.log("median", out.mean(), reduce_fx=lambda values: values.sort().values[len(values) // 2], sync_dist=True)

    test_step = validation_step

    def predict_step(self, batch, batch_idx):
        return self(batch[0])


def main():
    torch.manual_seed(1)
    answers = {}
    for samples in (103, 8, 1):
        data = TensorDataset(torch.randn(samples, 4), torch.randint(0, 3, (samples,)))
        net, trainer = Net(), Trainer(max_epochs=1)
        many, few = DataLoader(data, 10), DataLoader(data, 60, shuffle=True)
        answers[f"validate-{samples}"] = trainer.validate(net, many)
        answers[f"several-{samples}"] = trainer.test(net, [many, few])
        answers[f"predict-{samples}"] = [x.tolist() for x in trainer.predict(net, DataLoader(data, 10))]
        answers[f"limited-{samples}"] = Trainer(limit_val_batches=3).validate(net, many)
        if samples == 103:
            trainer.fit(net, DataLoader(data, 10, drop_last=True), many)
            answers["fit"] = {k: v.item() for k, v in sorted(trainer.callback_metrics.items()) if "train" in k}
            answers["after"] = trainer.validate(net, many)
            answers["same"] = net.all_reduce([b.double().sum().item() for b in net.buffers()], "max")
            answers["order"] = net.all_reduce(len(net.order))
    net.print(json.dumps(answers))


main()
