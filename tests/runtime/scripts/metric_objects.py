"""torchmetrics objects, on ranks with and without batches."""

import json

import torch
import torchmetrics
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Listed(torchmetrics.Metric):
    """States of all kinds; what it gives depends on the order of the batches."""

    def __init__(self):
        super().__init__()
        self.add_state("values", default=[], dist_reduce_fx="cat")
        self.add_state("sums", default=[], dist_reduce_fx=None)
        self.add_state("least", default=torch.tensor(9.0), dist_reduce_fx="min")

    def update(self, values):
        self.values.append(values)
        self.sums.append(values.sum())
        self.least = torch.minimum(self.least, values.min())

    def compute(self):
        values, sums = torchmetrics.utilities.dim_zero_cat(self.values).double(), torch.stack(list(self.sums)).double()
        return (
            (values * torch.arange(len(values))).sum() + (sums * torch.arange(len(sums))).sum() + self.least + len(sums)
        )


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(3, average="micro")
        self.retrieval = torchmetrics.retrieval.RetrievalMAP(empty_target_action="skip")
        self.listed, self.by_hand = Listed(), Listed()
        self.seen = torchmetrics.MetricCollection([torchmetrics.SumMetric(), torchmetrics.CatMetric()])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)

    def training_step(self, batch, batch_idx):
        self.seen.update(batch[0][:, 0])
        self.log("sum", self.seen["SumMetric"], on_step=False, on_epoch=True)
        return self.layer(batch[0]).mean()

    def on_train_epoch_end(self):
        self.log("order", (self.seen["CatMetric"].compute() * torch.arange(17)).sum())
        self.seen["CatMetric"].reset()

    def validation_step(self, batch, batch_idx):
        self.accuracy(self.layer(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)
        scores = self.layer(batch[0])[:, 0]
        self.retrieval.update(scores, batch[1] == 1, indexes=batch[1] * 0 + len(batch[1]) // 7)
        self.listed.update(scores)
        self.by_hand.update(scores)
        self.log_dict({"retrieval": self.retrieval, "listed": self.listed})

    def on_validation_epoch_end(self):
        self.log("by_hand", self.by_hand.compute())
        self.by_hand.reset()


torch.manual_seed(0)
answers = []
for samples in (103, 5):
    data = TensorDataset(torch.randn(samples, 4), torch.randint(0, 3, (samples,)))
    answers.append({k: round(float(v), 5) for k, v in Trainer().validate(Net(), DataLoader(data, 10))[0].items()})
trainer = Trainer(max_epochs=2)  # the last batch is one sample: one of two ranks borrows it, and counts nothing
trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(17, 4, generator=torch.Generator().manual_seed(1))), 8))
answers.append({name: round(float(value), 5) for name, value in trainer.callback_metrics.items()})
strategy = trainer.strategy
strategy.barrier()
ranks = [strategy.broadcast(f"rank {strategy.global_rank}"), float(strategy.reduce(torch.tensor(3.0)))]
answers.append([*ranks, strategy.lightning_module is trainer.model, strategy.is_global_zero])
Trainer().print(json.dumps(answers))
