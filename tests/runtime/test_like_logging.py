"""What is logged, and by whom it is seen, as Lightning has it."""

import csv
import os

import pytest
import torch
import torch.nn.functional as F
import torchmetrics
from sides import Cases, check, common, fit, outcome

case = Cases()


def logger_rows(trainer):
    """What the logger's table holds, by step."""
    with open(os.path.join(trainer.logger.log_dir, "metrics.csv"), newline="") as table:
        rows = [{k: round(float(v), 4) for k, v in row.items() if v} for row in csv.DictReader(table)]
    return sorted(rows, key=lambda row: (row.get("step", 0), sorted(row)))


@case
def log_many(side):
    class M(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("a", loss)
            self.log("b", loss, on_step=True, on_epoch=True, prog_bar=True)
            self.log("c", loss, on_epoch=True, on_step=False, logger=False)
            self.log("d", loss, on_step=False, on_epoch=True, reduce_fx=torch.max)
            self.log("e", loss, on_step=False, on_epoch=True, reduce_fx=min)
            self.log("f", float(i), on_epoch=True, reduce_fx=torch.sum)
            self.log("h", 3, on_epoch=True)
            self.log("k", torch.tensor([2.5]), on_epoch=True)
            self.log("bs", loss, on_epoch=True, on_step=False, batch_size=i + 1)
            self.log_dict({"x/y": loss, "z": 2.0}, prog_bar=True, on_epoch=True, on_step=True)
            self.note(
                self.trainer.callback_metrics, self.trainer.logged_metrics, self.trainer.progress_bar_metrics
            ) if i in (0, 5) else None
            return loss

        def on_train_batch_end(self, o, b, i):
            self.log("be", float(i), on_epoch=True)

        def on_train_epoch_start(self):
            self.log("es", 1.5)

        def on_train_start(self):
            self.log("ts", 4.5)

        def on_train_epoch_end(self):
            self.log("ee", 2.5, prog_bar=True)
            self.note("end", self.trainer.callback_metrics, self.trainer.logged_metrics)

        def validation_step(self, b, i):
            o = self(b[0])
            self.log("va", o.sum())
            self.log("vb", o.sum(), on_step=True, on_epoch=True)
            self.log("vc", o.sum(), on_step=True, on_epoch=False)
            self.log("vm", o.sum(), reduce_fx="max")

        def on_validation_epoch_start(self):
            self.log("ves", 1.0)

        def on_validation_epoch_end(self):
            self.note("vend", self.trainer.callback_metrics)
            self.log("vee", 7.0, prog_bar=True)

        def on_validation_end(self):
            self.note("ve", self.trainer.callback_metrics)

    return outcome(*fit(side, M))


@case
def kinds_of_numbers(side):
    """What is logged as a whole number or a half is seen as float32, float64 stays."""
    numbers = {
        "whole": 3,
        "count": torch.tensor(3),
        "flag": torch.tensor(True),
        "half": torch.tensor([2.5], dtype=torch.float16),
        "wide": torch.tensor(0.1, dtype=torch.float64),
    }

    class M(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            self.log_dict(numbers, on_step=True, on_epoch=True, prog_bar=True)
            numbers["wide"].add_(1)  # what is logged is the value at that moment
            if i == 1:
                self.note(kinds(self.trainer.callback_metrics), kinds(self.trainer.logged_metrics))
            return loss

        def on_train_epoch_end(self):
            self.note(kinds(self.trainer.callback_metrics))

    def kinds(values):
        return {name: [str(value.dtype), list(value.shape)] for name, value in values.items()}

    return outcome(*fit(side, M))


@case
def csv_logger(side):
    class M(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("a", loss)
            self.log("b", loss, on_step=True, on_epoch=True)
            self.log("c", loss, on_step=False, on_epoch=True)
            return loss

        def validation_step(self, b, i):
            o = self(b[0])
            self.log("va", o.sum())
            self.log("vb", o.sum(), on_step=True, on_epoch=True)

        def on_train_epoch_end(self):
            self.log("ee", 2.5)

    m, t = fit(side, M, {"logger": side.CSVLogger("."), "log_every_n_steps": 3, "accumulate_grad_batches": 2})
    return outcome(m, t, rows=logger_rows(t))


@case
def csv_logger_manual(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def configure_optimizers(self):
            return torch.optim.SGD(self.net[0].parameters(), 0.1), torch.optim.SGD(self.net[3].parameters(), 0.1)

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("a", loss)
            x, y = self.optimizers()
            x.zero_grad()
            y.zero_grad()
            self.manual_backward(loss)
            x.step()
            y.step()

    m, t = fit(side, M, {"logger": side.CSVLogger("."), "log_every_n_steps": 4})
    return outcome(m, t, rows=logger_rows(t))


@case
def lr_monitor(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(
                [{"params": self.net[0].parameters(), "lr": 0.1}, {"params": self.net[3].parameters(), "lr": 0.2}],
                lr=0.1,
                momentum=0.9,
            )
            return [o], [{"scheduler": torch.optim.lr_scheduler.StepLR(o, 1), "interval": "epoch"}]

    m, t = fit(
        side, M, {"logger": side.CSVLogger("."), "log_every_n_steps": 4, "callbacks": [side.LearningRateMonitor()]}
    )
    return outcome(m, t, rows=logger_rows(t))


@case
def lr_monitor_named(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.Adam(self.parameters(), lr=0.1)
            return [o], [{"scheduler": torch.optim.lr_scheduler.StepLR(o, 1), "interval": "step", "name": "mylr"}]

    m, t = fit(
        side,
        M,
        {
            "logger": side.CSVLogger("."),
            "log_every_n_steps": 4,
            "callbacks": [side.LearningRateMonitor("step", log_momentum=True)],
        },
    )
    return outcome(m, t, rows=logger_rows(t))


@case
def lr_monitor_epoch(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.Adam(self.parameters(), lr=0.1)
            return [o], [{"scheduler": torch.optim.lr_scheduler.StepLR(o, 1)}]

    m, t = fit(
        side,
        M,
        {"logger": side.CSVLogger("."), "log_every_n_steps": 4, "callbacks": [side.LearningRateMonitor("epoch")]},
    )
    return outcome(m, t, rows=logger_rows(t))


@case
def torchmetrics_objects(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.acc = torchmetrics.Accuracy("multiclass", num_classes=3)
            self.vacc = torchmetrics.Accuracy("multiclass", num_classes=3)
            self.mean = torchmetrics.MeanMetric()
            self.coll = torchmetrics.MetricCollection(
                {
                    "p": torchmetrics.Precision("multiclass", num_classes=3),
                    "r": torchmetrics.Recall("multiclass", num_classes=3),
                },
                prefix="c_",
            )

        def training_step(self, b, i):
            o = self(b[0])
            loss = F.cross_entropy(o, b[1])
            self.acc(o, b[1])
            self.mean.update(loss.detach())
            self.log("acc", self.acc, on_step=True, on_epoch=True, prog_bar=True)
            self.log("mean", self.mean, on_step=False, on_epoch=True)
            self.note(self.trainer.callback_metrics) if i == 3 else None
            return loss

        def validation_step(self, b, i):
            o = self(b[0])
            self.vacc.update(o, b[1])
            self.log("vacc", self.vacc)
            self.coll.update(o, b[1])
            self.log_dict(self.coll)

        def on_train_epoch_end(self):
            self.note("e", self.acc.compute(), self.trainer.callback_metrics)

    return outcome(*fit(side, M))


@case
def torchmetrics_manual_reset(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.acc = torchmetrics.Accuracy("multiclass", num_classes=3)

        def validation_step(self, b, i):
            self.acc.update(self(b[0]), b[1])

        def on_validation_epoch_end(self):
            self.log("acc", self.acc.compute())
            self.acc.reset()

    return outcome(*fit(side, M))


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
