"""What is logged, by whom it is seen, and several loaders at once, as Lightning has it."""

import csv
import os

import pytest
import torch
import torch.nn.functional as F
import torchmetrics
from sides import check, common, data, fit, outcome, rate
from torch.utils.data import DataLoader, IterableDataset

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


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


@case
def several_val(side):
    class M(common(side)):
        def validation_step(self, b, i, dataloader_idx=0):
            o = self(b[0])
            self.log("v", o.sum())
            self.log(f"w{dataloader_idx}", o.sum(), add_dataloader_idx=False)
            self.log("s", o.sum(), on_step=True, on_epoch=True)
            self.note(i, dataloader_idx)

        def on_validation_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0):
            self.note("be", dataloader_idx)

        def on_validation_epoch_end(self):
            self.log("all", 1.0)
            self.note(self.trainer.callback_metrics)

        def test_step(self, b, i, dataloader_idx):
            self.log("t", self(b[0]).mean())
            self.log("x", 1.0 + dataloader_idx, add_dataloader_idx=False) if dataloader_idx else None

    m, t = fit(side, M, loaders=(DataLoader(data(), 8), [DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)]))
    v = t.validate(m, [DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)], verbose=False)
    te = t.test(m, [DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)], verbose=False)
    return outcome(m, t, v=v, te=te)


@case
def several_no_idx(side):
    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

    return outcome(
        *fit(side, M, loaders=(DataLoader(data(), 8), [DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)]))
    )


@case
def val_hooks_no_idx(side):
    class M(common(side)):
        def validation_step(self, batch):
            self.log("v", self(batch[0]).sum())

        def training_step(self, batch):
            return self.loss(batch)

        def on_validation_batch_start(self, batch, batch_idx):
            self.note("s", batch_idx)

        def on_validation_batch_end(self, outputs, batch, batch_idx):
            self.note("e", batch_idx)

    class C(side.Callback):
        def on_validation_batch_end(self, trainer, m, outputs, batch, batch_idx):
            m.note("cb", batch_idx)

        def on_train_batch_end(self, trainer, m, outputs, batch, batch_idx):
            m.note("tb", outputs)

    return outcome(*fit(side, M, {"callbacks": [C()]}))


@case
def train_dict_loaders(side):
    class M(common(side)):
        def training_step(self, b, i):
            self.note(sorted(b), len(b["b"][0]))
            return self.loss(b["a"]) + 0.1 * self.loss(b["b"])

    m, t = fit(
        side,
        M,
        loaders={"train_dataloaders": 1}
        and ({"a": DataLoader(data(), 8, shuffle=True), "b": DataLoader(data(30, 2), 5, shuffle=True)},),
    )
    return outcome(m, t, n=t.num_training_batches)


@case
def train_list_loaders_limit(side):
    class M(common(side)):
        def training_step(self, b, i):
            return self.loss(b[0]) + 0.1 * self.loss(b[1])

    m, t = fit(
        side,
        M,
        {"limit_train_batches": 0.5, "accumulate_grad_batches": 2},
        loaders=([DataLoader(data(), 8, shuffle=True), DataLoader(data(30, 2), 5, shuffle=True)],),
    )
    return outcome(m, t, n=t.num_training_batches)


@case
def combined_min_size(side):
    class M(common(side)):
        def training_step(self, b, i):
            return self.loss(b["a"]) + 0.1 * self.loss(b["b"])

    m, t = fit(
        side,
        M,
        loaders=(
            side.CombinedLoader(
                {"a": DataLoader(data(), 8, shuffle=True), "b": DataLoader(data(30, 2), 5)}, "min_size"
            ),
        ),
    )
    return outcome(m, t, n=t.num_training_batches)


@case
def combined_max_size_val(side):
    class M(common(side)):
        def training_step(self, b, i):
            return self.loss(b["a"] if b["a"] is not None else b["b"])

        def validation_step(self, b, i):
            self.note(len(b), [None if x is None else len(x[0]) for x in b])
            self.log("v", self(b[0][0]).sum(), batch_size=3)

    m, t = fit(
        side,
        M,
        loaders=(
            side.CombinedLoader(
                {"a": DataLoader(data(), 8, shuffle=True), "b": DataLoader(data(30, 2), 1)}, "max_size"
            ),
            side.CombinedLoader([DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)], "min_size"),
        ),
    )
    return outcome(m, t, n=t.num_training_batches)


@case
def iterable_dataset(side):
    class It(IterableDataset):
        def __iter__(self):
            d = data(50)
            for i in range(50):
                yield d[i]

    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return [o], [torch.optim.lr_scheduler.StepLR(o, 1)]

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss, on_epoch=True, on_step=True)
            return loss

        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def on_train_epoch_end(self):
            self.note("ee", rate(self), str(self.trainer.num_training_batches))

    return outcome(*fit(side, M, {"accumulate_grad_batches": 3}, loaders=(DataLoader(It(), 8), DataLoader(It(), 10))))


@case
def iterable_val_interval(side):
    class It(IterableDataset):
        def __iter__(self):
            d = data(50)
            for i in range(50):
                yield d[i]

    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def on_validation_start(self):
            self.note("vs", self.global_step)

    return outcome(*fit(side, M, {"val_check_interval": 3}, loaders=(DataLoader(It(), 8), DataLoader(It(), 10))))


@case
def iterable_limit(side):
    class It(IterableDataset):
        def __iter__(self):
            d = data(50)
            for i in range(50):
                yield d[i]

    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def on_validation_start(self):
            self.note("vs", self.global_step)

        def training_step(self, b, i):
            self.note(self.trainer.is_last_batch) if i == 4 else None
            return self.loss(b)

    return outcome(
        *fit(
            side,
            M,
            {"limit_train_batches": 5, "limit_val_batches": 2},
            loaders=(DataLoader(It(), 8), DataLoader(It(), 10)),
        )
    )


@case
def a_batch_with_names(side):
    """The strings in a batch say nothing of its size."""

    class M(common(side)):
        def training_step(self, batch, batch_idx):
            loss = self.loss((batch["x"]["a"], batch["y"]))
            self.log("loss", loss, on_epoch=True)
            return loss

    def collate(items):
        x, y = zip(*items, strict=True)
        return {"name": [f"sample {i}" for i in range(len(x))], "x": {"a": torch.stack(x)}, "y": torch.stack(y)}

    return outcome(*fit(side, M, loaders=(DataLoader(data(), 8, collate_fn=collate),)))


@pytest.mark.parametrize("name", CASES)
def test_same(name, tmp_path, monkeypatch):
    check(CASES[name], tmp_path, monkeypatch)
