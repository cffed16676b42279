"""Checkpoints, hyper-parameters, data modules and early stopping, as Lightning has them."""

import os

import pytest
import torch
import torch.nn.functional as F
from sides import QUIET, Cases, check, common, data, fit, outcome, plain
from torch.utils.data import DataLoader

case = Cases()


def files(d="."):
    return sorted(os.path.relpath(os.path.join(r, f), d) for r, _, fs in os.walk(d) for f in fs if f.endswith(".ckpt"))


@case
def datamodule(side):
    class D(side.DataModule):
        def __init__(self, n=50, bs=8):
            super().__init__()
            self.save_hyperparameters()
            self.log_ = []

        def prepare_data(self):
            self.log_.append("prep")

        def setup(self, stage):
            self.log_.append("setup " + getattr(stage, "value", stage))
            self.d = data(self.hparams.n)

        def teardown(self, stage):
            self.log_.append("teardown " + getattr(stage, "value", stage))

        def train_dataloader(self):
            self.log_.append("train")
            return DataLoader(self.d, batch_size=self.hparams.bs)

        def val_dataloader(self):
            self.log_.append("val")
            return DataLoader(self.d, batch_size=10)

        def test_dataloader(self):
            return DataLoader(self.d, batch_size=10)

        def predict_dataloader(self):
            return DataLoader(self.d, batch_size=20)

        def on_after_batch_transfer(self, batch, dataloader_idx):
            return [batch[0] * 2, batch[1]]

        def state_dict(self):
            return {"q": 3}

        def load_state_dict(self, s):
            self.log_.append(("load", s["q"]))

    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", b[0].sum())

        def test_step(self, b, i):
            self.log("t", b[0].sum())

        def predict_step(self, b, i):
            return self(b[0]).argmax(1)

        def setup(self, stage):
            self.note("msetup", getattr(stage, "value", stage), self.trainer.datamodule.hparams.n)

        def on_before_batch_transfer(self, batch, dataloader_idx):
            self.note("hook")
            return batch

    m = M()
    dm = D(bs=7)
    t = side.Trainer(**QUIET)
    torch.manual_seed(6)
    t.fit(m, datamodule=dm)
    te = t.test(m, datamodule=dm, verbose=False)
    p = t.predict(m, dm)
    v = t.validate(m, dm, verbose=False)
    t.save_checkpoint("x.ckpt")
    m2 = M()
    dm2 = D()
    t2 = side.Trainer(**{**QUIET, "max_epochs": 4})
    torch.manual_seed(6)
    t2.fit(m2, datamodule=dm2, ckpt_path="x.ckpt")
    return outcome(m, t, te=te, p=p, v=v, dlog=dm.log_, d2=dm2.log_, m2=m2.calls[:1], hp=dict(dm.hparams))


@case
def transfer_hooks(side):
    class M(common(side)):
        def on_before_batch_transfer(self, batch, dataloader_idx):
            self.note("b", dataloader_idx)
            return batch

        def transfer_batch_to_device(self, batch, device, dataloader_idx):
            self.note("t", str(device), dataloader_idx)
            return super().transfer_batch_to_device(batch, device, dataloader_idx)

        def on_after_batch_transfer(self, batch, dataloader_idx):
            self.note("a")
            return [batch[0] + 1, batch[1]]

        def validation_step(self, b, i, dataloader_idx=0):
            self.log("v", b[0].sum())

        def predict_step(self, b, i):
            return b[0].sum()

    m, t = fit(side, M, loaders=(DataLoader(data(), 8), [DataLoader(data(30, 2), 10), DataLoader(data(20, 3), 7)]))
    p = t.predict(m, DataLoader(data(30, 2), 10))
    return outcome(m, t, p=p)


@case
def hparams(side):
    class B(common(side)):
        def __init__(self, hidden=3, lr=0.1, **kw):
            super().__init__()
            self.save_hyperparameters()
            self.extra = kw

    class M(B):
        def __init__(self, width, depth=2, *, name="x", hidden=5, **kw):
            super().__init__(hidden=hidden, **kw)
            self.width = width

    m = M(4, name="y", lr=0.5)
    hp = dict(m.hparams)
    m.hparams.lr = 0.7
    t = side.Trainer(**QUIET)
    t.fit(m, DataLoader(data(20), 8))
    t.save_checkpoint("a.ckpt")
    m2 = M.load_from_checkpoint("a.ckpt", depth=9)
    return outcome(
        m,
        t,
        hp=hp,
        hp2=dict(m2.hparams),
        w=m2.width,
        init=dict(m.hparams_initial),
        same=all(torch.equal(a, b) for a, b in zip(m.parameters(), m2.parameters(), strict=False)),
    )


@case
def hparams_ignore_named(side):
    class M(common(side)):
        def __init__(self, a, b=2, c=3):
            super().__init__()
            self.save_hyperparameters("a", "c")
            self.note(dict(self.hparams))

    class M2(common(side)):
        def __init__(self, a, b=2, c=3):
            super().__init__()
            self.save_hyperparameters(ignore=["b"])
            self.note(dict(self.hparams))

    class M3(common(side)):
        def __init__(self, conf):
            super().__init__()
            self.save_hyperparameters(conf)
            self.note(dict(self.hparams))
            self.note(self.hparams.k)

    return {"a": M(1).calls, "b": M2(1).calls, "c": M3({"k": 2}).calls}


def ckpt(side, M=None, opts=None, **kw):
    class C(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss)
            return loss

        def validation_step(self, b, i):
            self.log("vl", F.cross_entropy(self(b[0]), b[1]))
            self.log("va", (self(b[0]).argmax(1) == b[1]).float().mean())

    cb = side.ModelCheckpoint(dirpath="ck", **kw)
    m, t = fit(side, M or C, {"callbacks": [cb], "enable_checkpointing": True, **(opts or {})})
    return outcome(
        m,
        t,
        files=files(),
        best=os.path.relpath(cb.best_model_path) if cb.best_model_path else "",
        last=os.path.relpath(cb.last_model_path) if cb.last_model_path else "",
        score=cb.best_model_score if cb.best_model_score is not None else None,
        k=sorted((os.path.relpath(p), plain(v)) for p, v in cb.best_k_models.items()),
        kth=os.path.relpath(cb.kth_best_model_path) if cb.kth_best_model_path else "",
    )


@case
def ck_default(side):
    return ckpt(side)


@case
def ck_topk(side):
    return ckpt(side, monitor="vl", save_top_k=2, filename="{epoch}-{vl:.2f}", opts={"max_epochs": 5})


@case
def ck_max_last(side):
    return ckpt(side, monitor="va", mode="max", save_last=True, save_top_k=1, opts={"max_epochs": 5})


@case
def ck_all(side):
    return ckpt(side, save_top_k=-1, opts={"max_epochs": 4}, every_n_epochs=2)


@case
def ck_steps(side):
    return ckpt(side, save_top_k=-1, every_n_train_steps=7)


@case
def ck_steps_monitor(side):
    return ckpt(side, monitor="tl", save_top_k=2, every_n_train_steps=5, filename="{step}-{tl:.3f}")


@case
def ck_last_only(side):
    return ckpt(side, save_top_k=0, save_last=True)


@case
def ck_weights_only(side):
    return ckpt(
        side, save_weights_only=True, auto_insert_metric_name=False, filename="m-{epoch:02d}-{vl:.2f}", monitor="vl"
    )


@case
def ck_train_end(side):
    return ckpt(side, save_on_train_epoch_end=True, monitor="tl", save_top_k=-1)


@case
def ck_inside_epoch(side):
    return ckpt(side, monitor="vl", save_top_k=-1, opts={"val_check_interval": 0.5})


@case
def ck_same_name(side):
    return ckpt(side, monitor="vl", save_top_k=-1, filename="same")


@case
def ck_every2_val(side):
    return ckpt(side, monitor="vl", save_top_k=-1, opts={"check_val_every_n_epoch": 2, "max_epochs": 5})


@case
def ck_link(side):
    return ckpt(side, save_last="link", save_top_k=2, monitor="vl")


@case
def ck_nested_name(side):
    return ckpt(side, save_top_k=1, filename="sub/{epoch}", monitor="vl")


@case
def ck_maxsteps(side):
    return ckpt(side, opts={"max_steps": 13, "max_epochs": -1})


@case
def ck_exception(side):
    return ckpt(side, monitor="nothere")


@case
def ck_best_path(side):
    class M(common(side)):
        def validation_step(self, b, i):
            self.log("vl", F.cross_entropy(self(b[0]), b[1]))

        def test_step(self, b, i):
            self.log("tt", F.cross_entropy(self(b[0]), b[1]))

    cb = side.ModelCheckpoint(dirpath="ck", monitor="vl", mode="max")
    m, t = fit(side, M, {"callbacks": [cb], "enable_checkpointing": True, "max_epochs": 4})
    return outcome(
        m,
        t,
        te=t.test(ckpt_path="best", dataloaders=DataLoader(data(40, 3), 8), verbose=False),
        va=t.validate(m, DataLoader(data(40, 3), 8), ckpt_path=cb.best_model_path, verbose=False),
        p=t.checkpoint_callback is cb,
    )


@case
def ck_hooks(side):
    class M(common(side)):
        def on_save_checkpoint(self, c):
            c["mine"] = 5
            self.note("save", c["epoch"], c["global_step"])

        def on_load_checkpoint(self, c):
            self.note("load", c["mine"])

    class C(side.Callback):
        def __init__(self):
            self.n = 0

        def on_train_epoch_end(self, *a):
            self.n += 1

        def state_dict(self):
            return {"n": self.n}

        def load_state_dict(self, s):
            self.n = s["n"]

    c = C()
    m, t = fit(side, M, {"callbacks": [c]})
    t.save_checkpoint("q.ckpt")
    keys = sorted(torch.load("q.ckpt", weights_only=False))
    c2 = C()
    m2 = M()
    t2 = side.Trainer(**{**QUIET, "max_epochs": 5, "callbacks": [c2]})
    torch.manual_seed(6)
    t2.fit(m2, DataLoader(data(), 8), ckpt_path="q.ckpt")
    return {
        "calls": m.calls,
        "c2": c2.n,
        "m2": m2.calls[:1],  # afterwards this resumes the generators too, and Lightning does not
        "ep": t2.current_epoch,
        "st": t2.global_step,
        "keys": [
            k
            for k in ("epoch", "global_step", "state_dict", "optimizer_states", "lr_schedulers", "callbacks", "mine")
            if k in keys
        ],
    }


@case
def early_stops(side):
    class M(common(side)):
        def validation_step(self, b, i):
            self.log("vl", F.cross_entropy(self(b[0]), b[1]))

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss, on_epoch=True)
            return loss

    out = {}
    for k, (kw, o) in {
        "mid": ({"monitor": "vl", "patience": 1, "min_delta": 0.5}, {"val_check_interval": 0.25}),
        "train": ({"monitor": "tl", "patience": 0, "min_delta": 1.0, "check_on_train_epoch_end": True}, {}),
        "thr": ({"monitor": "vl", "stopping_threshold": 1.2}, {}),
        "div": ({"monitor": "vl", "divergence_threshold": 0.5}, {}),
        "min": ({"monitor": "vl", "patience": 1, "min_delta": 1.0}, {"min_epochs": 4}),
        "mins": ({"monitor": "vl", "patience": 1, "min_delta": 1.0}, {"min_steps": 27}),
        "max": ({"monitor": "vl", "patience": 1, "mode": "max"}, {}),
        "nonstrict": ({"monitor": "zz", "strict": False}, {}),
        "stepmon": ({"monitor": "tl_step", "patience": 1, "min_delta": 0.2, "check_on_train_epoch_end": True}, {}),
    }.items():
        cb = side.EarlyStopping(**kw)
        m, t = fit(side, M, {"callbacks": [cb], "max_epochs": 6, **o})
        out[k] = [t.current_epoch, t.global_step, cb.stopped_epoch, cb.wait_count, plain(cb.best_score), len(m.calls)]
    return out


@case
def should_stop_mid(side):
    class M(common(side)):
        def on_train_batch_end(self, o, b, i):
            if self.global_step == 14:
                self.trainer.should_stop = True

        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def on_validation_start(self):
            self.note("vs", self.global_step)

        def on_train_epoch_end(self):
            self.note("ee")

        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return [o], [torch.optim.lr_scheduler.StepLR(o, 1)]

    out = [
        outcome(*fit(side, M, o))
        for o in ({}, {"min_epochs": 3}, {"min_steps": 18}, {"val_check_interval": 3}, {"check_val_every_n_epoch": 3})
    ]
    return {str(i): r for i, r in enumerate(out)}


@case
def evaluated_from_a_checkpoint(side):
    """Data module and callbacks get what they have kept, before loaders are made."""

    class Counting(side.Callback):
        def __init__(self):
            self.count = 0

        def on_train_epoch_end(self, trainer, module):
            self.count += 1

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

        def on_load_checkpoint(self, trainer, module, checkpoint):
            module.note("loads", checkpoint["epoch"])

    class Data(side.DataModule):
        def __init__(self):
            super().__init__()
            self.size = 1

        def train_dataloader(self):
            self.size = 10
            return DataLoader(data(), batch_size=8)

        def test_dataloader(self):
            return DataLoader(data(20), batch_size=self.size)

        val_dataloader = test_dataloader

        def state_dict(self):
            return {"size": self.size}

        def load_state_dict(self, state):
            self.size = state["size"]

    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def test_step(self, b, i):
            self.note("size", len(b[0]))
            self.log("t", self(b[0]).sum())

    options = {**QUIET, "enable_checkpointing": True}
    first = side.Trainer(**options, callbacks=[side.ModelCheckpoint("kept", monitor="v"), Counting()])
    torch.manual_seed(6)
    first.fit(M(), datamodule=Data())
    best, counting, module = first.checkpoint_callback.best_model_path, Counting(), M()
    kept = side.ModelCheckpoint("kept", monitor="v")
    second = side.Trainer(**options, callbacks=[kept, counting])
    results = second.test(module, datamodule=Data(), ckpt_path=best, verbose=False)
    names = [os.path.basename(path) for path in (best, kept.best_model_path)]
    return plain([results, module.calls, counting.count, names, kept.best_model_score])


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
