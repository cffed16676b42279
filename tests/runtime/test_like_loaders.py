"""Several loaders at once, and loaders without a length, as Lightning has them."""

import pytest
import torch
from sides import Cases, check, common, data, fit, outcome, rate
from torch.utils.data import DataLoader, IterableDataset

case = Cases()


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


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
