"""Hooks in their order, limits, intervals, predictions and attributes, as Lightning has them."""

import pytest
import torch
from sides import QUIET, THEIRS, Cases, check, common, data, fit, outcome, plain
from torch.utils.data import DataLoader

case = Cases()


MODULE_HOOKS = [
    n for n in dir(THEIRS.Module) if n.startswith("on_") and callable(getattr(THEIRS.Module, n)) and n != "on_gpu"
] + [
    "setup",
    "teardown",
    "prepare_data",
    "configure_callbacks",
    "configure_model",
    "train_dataloader_",
    "lr_scheduler_step",
    "optimizer_step",
    "optimizer_zero_grad",
    "configure_gradient_clipping",
    "transfer_batch_to_device",
]
CB_HOOKS = [n for n in dir(THEIRS.Callback) if n.startswith("on_")] + ["setup", "teardown"]


def full(side, base=None):
    class M(base or common(side)):
        def configure_optimizers(self):
            self.calls.append("configure_optimizers")
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return [o], [torch.optim.lr_scheduler.StepLR(o, 1)]

        def validation_step(self, b, i):
            self.calls.append("vstep")
            self.log("v", self(b[0]).sum())

        def test_step(self, b, i):
            self.calls.append("tstep")

        def predict_step(self, b, i):
            self.calls.append("pstep")
            return b[1]

    def add(n):
        orig = getattr(M, n, None)
        if orig is None:
            return

        def hook(self, *a, **k):
            where = (
                ""
                if n == "configure_callbacks"
                else str(getattr(self.trainer.state.fn, "value", self.trainer.state.fn))
            )
            self.calls.append(f"{n}/{self.training}/{torch.is_grad_enabled()}/{where}")
            return orig(self, *a, **k)

        setattr(M, n, hook)

    for n in MODULE_HOOKS:
        add(n)
    return M


def cb(side, m):
    class C(side.Callback):
        pass

    for n in CB_HOOKS:

        def hook(self, trainer, mod, *a, n=n, **k):
            m.calls.append("cb." + n)

        setattr(C, n, hook)
    return C()


@case
def all_hooks(side):
    m = full(side)()
    t = side.Trainer(
        **{
            **QUIET,
            "callbacks": [cb(side, m)],
            "max_epochs": 2,
            "num_sanity_val_steps": 1,
            "gradient_clip_val": 0.5,
            "accumulate_grad_batches": 2,
            "limit_train_batches": 3,
            "limit_val_batches": 2,
        }
    )
    torch.manual_seed(6)
    t.fit(m, DataLoader(data(), 8), DataLoader(data(20), 10))
    m.calls.append("---")
    t.validate(m, DataLoader(data(20), 10), verbose=False)
    m.calls.append("---")
    t.test(m, DataLoader(data(20), 10), verbose=False)
    m.calls.append("---")
    t.predict(m, DataLoader(data(20), 10))
    return {"calls": m.calls}


@case
def hooks_exception(side):
    M = full(side)

    class X(M):
        def training_step(self, b, i):
            self.boom(i)
            return self.loss(b)

    def boom(self, i):
        if i == 1:
            raise ValueError("x")

    X.boom = boom
    m = X()
    t = side.Trainer(**{**QUIET, "callbacks": [cb(side, m)], "max_epochs": 2})
    try:
        t.fit(m, DataLoader(data(), 8), DataLoader(data(20), 10))
    except ValueError:
        m.calls.append("raised")
    return {"calls": [c for c in m.calls if "teardown" not in str(c)]}


def vmod(side):
    class M(common(side)):
        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())
            self.note("v", i)

        def on_validation_start(self):
            self.note("vs", self.global_step, self.current_epoch)

        def on_train_epoch_end(self):
            self.note("ee")

        def on_train_batch_start(self, b, i):
            self.note(i)

    return M


def simplefit(side, **o):
    return outcome(*fit(side, vmod(side), o))


@case
def vci_frac(side):
    return simplefit(side, val_check_interval=0.3)


@case
def vci_int(side):
    return simplefit(side, val_check_interval=4)


@case
def vci_big(side):
    return simplefit(side, val_check_interval=40)


@case
def vci_across(side):
    return simplefit(side, val_check_interval=7, check_val_every_n_epoch=None)


@case
def vci_every2_frac(side):
    return simplefit(side, val_check_interval=0.5, check_val_every_n_epoch=2, max_epochs=4)


@case
def vci_accum(side):
    return simplefit(side, val_check_interval=3, accumulate_grad_batches=2)


@case
def vci_one(side):
    return simplefit(side, val_check_interval=1, limit_train_batches=3)


@case
def lim_int(side):
    return simplefit(side, limit_train_batches=4, limit_val_batches=1)


@case
def lim_frac(side):
    return simplefit(side, limit_train_batches=0.35, limit_val_batches=0.5)


@case
def lim_zero_val(side):
    return simplefit(side, limit_val_batches=0)


@case
def lim_zero_train(side):
    return simplefit(side, limit_train_batches=0)


@case
def lim_zero_float(side):
    return simplefit(side, limit_train_batches=0.0)


@case
def lim_tiny(side):
    return simplefit(side, limit_train_batches=0.01)


@case
def fdr_true(side):
    return simplefit(side, fast_dev_run=True, max_epochs=7)


@case
def fdr_3(side):
    return simplefit(side, fast_dev_run=3, val_check_interval=0.1)


@case
def overfit_int(side):
    return simplefit(side, overfit_batches=2)


@case
def overfit_frac(side):
    return simplefit(side, overfit_batches=0.4)


@case
def minmax(side):
    return simplefit(side, min_epochs=2, max_epochs=4, max_steps=25)


@case
def maxsteps_accum(side):
    return simplefit(side, max_steps=5, accumulate_grad_batches=3, max_epochs=-1)


@case
def maxsteps_zero(side):
    return simplefit(side, max_steps=0)


@case
def maxepochs_zero(side):
    return simplefit(side, max_epochs=0)


@case
def maxtime(side):
    return simplefit(side, max_time="00:00:00:00", max_epochs=3)


@case
def accum_dict(side):
    return outcome(*fit(side, vmod(side), {"accumulate_grad_batches": 5, "max_epochs": 2}))


@case
def determ(side):
    r = simplefit(side, deterministic=True, benchmark=False, detect_anomaly=True)
    torch.use_deterministic_algorithms(False)
    return r


@case
def infmode(side):
    class M(vmod(side)):
        def validation_step(self, b, i):
            self.note(torch.is_inference_mode_enabled(), torch.is_grad_enabled())

    return outcome(*fit(side, M, {"inference_mode": False}))


@case
def infmode_grad(side):
    class M(vmod(side)):
        def validation_step(self, b, i):
            with torch.enable_grad():
                x = b[0].clone().requires_grad_()
                (g,) = torch.autograd.grad(self(x).sum(), x)
                self.log("g", g.sum())

    return outcome(*fit(side, M, {"inference_mode": False}))


@case
def double(side):
    return simplefit(side, precision="64-true")


@case
def bf16true(side):
    return simplefit(side, precision="bf16-true")


@case
def bf16(side):
    return simplefit(side, precision="bf16-mixed", gradient_clip_val=0.1)


@case
def predict_many(side):
    class M(common(side)):
        def predict_step(self, b, i, dataloader_idx=0):
            return {"p": self(b[0]).argmax(1), "i": i, "d": dataloader_idx}

    m = M()
    t = side.Trainer(**QUIET)
    a = t.predict(m, DataLoader(data(30), 8))
    b = t.predict(m, [DataLoader(data(30), 8), DataLoader(data(10), 8)])
    c = side.Trainer(**{**QUIET, "limit_predict_batches": 2}).predict(m, DataLoader(data(30), 8))
    return {
        "a": plain(a),
        "b": plain(b),
        "c": plain(c),
        "d": t.predict(m, DataLoader(data(30), 8), return_predictions=False),
    }


@case
def predict_default(side):
    class M(common(side)):
        def forward(self, b):
            return self.net(b[0]) if isinstance(b, list) else self.net(b)

    return {"a": plain(side.Trainer(**QUIET).predict(M().eval(), DataLoader(data(30), 8)))}


@case
def callbacks_configured(side):
    class C(side.Callback):
        def on_train_epoch_end(self, t, m):
            m.note("own")

    class M(common(side)):
        def configure_callbacks(self):
            return [C(), side.EarlyStopping("tl", patience=1, min_delta=9.0)]

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss, on_epoch=True)
            return loss

    return outcome(*fit(side, M, {"callbacks": [side.EarlyStopping("zz")]}))


@case
def trainer_attrs(side):
    class M(vmod(side)):
        def on_train_start(self):
            t = self.trainer
            self.note(
                t.max_epochs,
                t.max_steps,
                t.min_epochs,
                t.world_size,
                t.global_rank,
                t.local_rank,
                t.node_rank,
                t.num_devices,
                t.num_nodes,
                t.is_global_zero,
                int(t.num_training_batches),
                [int(x) for x in t.num_val_batches],
                t.current_epoch,
                t.global_step,
                int(t.estimated_stepping_batches),
                t.training,
                t.validating,
                t.sanity_checking,
                t.log_every_n_steps,
                str(t.precision),
                t.gradient_clip_val,
                t.limit_train_batches,
                t.limit_val_batches,
                t.check_val_every_n_epoch,
                t.val_check_interval,
                t.accumulate_grad_batches if isinstance(t.accumulate_grad_batches, int) else "d",
                t.fast_dev_run,
                len(t.optimizers),
                len(t.callbacks) >= 0,
                t.logger is None,
                t.loggers,
                t.lightning_module is self,
                t.model is self,
                str(self.device),
                str(self.dtype),
                self.on_gpu,
                self.example_input_array,
                self.automatic_optimization,
                self.strict_loading,
                self.fabric is None if hasattr(self, "_x") else 0,
                t.enable_validation,
                t.num_sanity_val_steps,
                t.predicting,
                t.testing,
                t.interrupted,
                t.received_sigterm,
                len(t.device_ids),
                str(t.strategy.root_device),
                t.datamodule,
            )

        def on_validation_start(self):
            self.note(self.trainer.validating, self.trainer.training)

    return outcome(*fit(side, M, {"min_epochs": 1}))


@case
def print_and_misc(side):
    class M(vmod(side)):
        def training_step(self, b, i):
            self.all_gather(torch.tensor(1.0))
            self.print("") if i == 0 else None
            self.log("lr", self.lr_schedulers() is None)
            return self.loss(b)

    m, t = fit(side, M)
    m.freeze()
    m.note(any(p.requires_grad for p in m.parameters()), m.training)
    m.unfreeze()
    m.note(all(p.requires_grad for p in m.parameters()), m.training)
    return outcome(m, t)


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
