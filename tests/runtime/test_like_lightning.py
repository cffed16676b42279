"""The same class body, trained by Lightning and by this: equal losses, metrics, hooks and weights on the CPU.

Where Lightning is off, the test says how: its epoch means add up in float32, ours in float64, so metrics agree to
rounding.
"""

import logging
import warnings

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.runtime import EarlyStopping, Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning")
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


class Common:
    """What the bodies share; put in front of either base."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        )
        self.losses, self.calls = [], []

    def forward(self, x):
        return self.net(x)

    def loss(self, batch):
        loss = F.cross_entropy(self(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def training_step(self, batch, batch_idx):
        return self.loss(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Logs(Common):
    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("a", loss)
        self.log("b", loss, on_step=True, on_epoch=True)
        self.log("c", loss, on_step=False, on_epoch=True, reduce_fx="sum")
        self.log_dict({"d": loss, "e": 2.0}, on_epoch=True, reduce_fx="max")
        self.log("f", torch.tensor(float(batch_idx)), on_step=False, on_epoch=True, batch_size=3)
        return {"loss": loss, "more": 1}

    def validation_step(self, batch, batch_idx):
        out = self(batch[0])
        self.log("val", F.cross_entropy(out, batch[1]))
        self.log("hits", out.argmax(1).eq(batch[1]).float().mean(), prog_bar=True)

    def on_validation_epoch_end(self):
        self.log("at_end", 7.0)


class DictForm(Common):
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)}


class StepScheduler(Common):
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
        return [optimizer], [{"scheduler": scheduler, "interval": "step", "frequency": 2}]


class Plateau(Logs):
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=10.0)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val"}}


class TwoSchedulers(Common):
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        warm = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=5)
        slow = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        return [optimizer], [{"scheduler": warm, "interval": "step"}, slow]


class Lbfgs(Common):
    def __init__(self):
        super().__init__()
        self.net[1] = torch.nn.Identity()

    def configure_optimizers(self):
        return torch.optim.LBFGS(self.parameters(), lr=0.1, max_iter=3)


class OwnStep(Common):
    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        optimizer.step(closure=optimizer_closure)
        for group in optimizer.param_groups:
            group["lr"] *= 0.9

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        self.calls.append("zero")
        optimizer.zero_grad(set_to_none=False)


class Manual(Common):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        first, second = self.optimizers()
        first.zero_grad()
        self.manual_backward(self.loss(batch))
        first.step()
        second.zero_grad()
        self.manual_backward(self.loss(batch))
        self.clip_gradients(second, gradient_clip_val=0.1, gradient_clip_algorithm="norm")
        second.step()
        if self.trainer.is_last_batch:
            self.lr_schedulers().step()

    def configure_optimizers(self):
        first = torch.optim.SGD(self.net[0].parameters(), lr=0.1)
        second = torch.optim.Adam(self.net[3].parameters(), lr=0.01)
        return [first, second], [torch.optim.lr_scheduler.StepLR(first, 1)]


class Hooks(Logs):
    """Every hook writes down its name, and where in the run it is."""

    def note(self, name):
        self.calls.append((name, self.current_epoch, self.global_step, self.training, torch.is_grad_enabled()))


def add_hook(name):
    def hook(self, *args):
        self.note(name)

    setattr(Hooks, name, hook)


for _name in (
    *("on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_epoch_end", "on_train_end", "on_fit_end"),
    *("on_validation_start", "on_validation_epoch_start", "on_validation_epoch_end", "on_validation_end"),
):
    add_hook(_name)
Hooks.on_train_batch_start = lambda self, batch, batch_idx: self.note("batch_start")
Hooks.on_train_batch_end = lambda self, outputs, batch, batch_idx: self.note("batch_end")
Hooks.on_validation_batch_start = lambda self, batch, batch_idx, dataloader_idx=0: self.note("val_start")
Hooks.on_validation_batch_end = lambda self, outputs, batch, batch_idx, dataloader_idx=0: self.note("val_end")
Hooks.on_before_zero_grad = lambda self, optimizer: self.note("before_zero")
Hooks.on_before_backward = lambda self, loss: self.note("before_backward")
Hooks.on_after_backward = lambda self: self.note("after_backward")
Hooks.on_before_optimizer_step = lambda self, optimizer: self.note("before_step")


class Skips(Common):
    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        return None if batch_idx % 3 == 1 else loss


class EndsEpoch(Common):
    def on_train_batch_start(self, batch, batch_idx):
        return -1 if batch_idx == 4 else None


class Frozen(Common):
    def __init__(self):
        super().__init__()
        self.net[0].requires_grad_(False)


class Eval(Common):
    def on_train_epoch_start(self):
        self.net.eval()


class BatchNorm(Logs):
    def __init__(self):
        super().__init__()
        self.net[1] = torch.nn.BatchNorm1d(8)


class Several(Common):
    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.log("val", self(batch[0]).mean())
        self.log("one", self(batch[0]).sum(), add_dataloader_idx=False) if dataloader_idx == 1 else None


class Stops(Logs):
    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.global_step == 15:
            self.trainer.should_stop = True


CASES = {
    "plain": (Common, {}),
    "logs": (Logs, {}),
    "dict": (DictForm, {}),
    "step scheduler": (StepScheduler, {}),
    "plateau": (Plateau, {}),
    "two schedulers": (TwoSchedulers, {}),
    "lbfgs": (Lbfgs, {}),
    "own step": (OwnStep, {}),
    "manual": (Manual, {}),
    "hooks": (Hooks, {}),
    "skips": (Skips, {}),
    "ends epoch": (EndsEpoch, {}),
    "frozen": (Frozen, {}),
    "eval": (Eval, {}),
    "batch norm": (BatchNorm, {}),
    "several loaders": (Several, {}),
    "stops": (Stops, {}),
    "accumulation": (Logs, {"accumulate_grad_batches": 4}),
    "clip norm": (Common, {"gradient_clip_val": 0.05}),
    "clip value": (Common, {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"}),
    "max steps": (Logs, {"max_epochs": -1, "max_steps": 19}),
    "limits": (Logs, {"limit_train_batches": 0.5, "limit_val_batches": 2}),
    "every second epoch": (Hooks, {"check_val_every_n_epoch": 2}),
    "inside the epoch": (Hooks, {"val_check_interval": 0.5}),
    "sanity": (Logs, {"num_sanity_val_steps": 2}),
    "double": (Common, {"precision": "64-true"}),
    "bfloat": (Logs, {"precision": "bf16-mixed"}),
    "dev run": (Logs, {"fast_dev_run": 3}),
}


def train(body, base, trainer_class, options, callbacks=()):
    torch.manual_seed(5)
    data = TensorDataset(torch.randn(83, 4), torch.randint(0, 3, (83,)))
    module = type(body.__name__, (body, base), {})()
    loaders = DataLoader(data, 8, shuffle=True), DataLoader(data, 10)
    if body is Several:
        loaders = loaders[0], [loaders[1], DataLoader(data, 50)]
    settings = {"max_epochs": 3, "num_sanity_val_steps": 0, "accelerator": "cpu", "devices": 1, **QUIET, **options}
    trainer = trainer_class(callbacks=list(callbacks), **settings)
    torch.manual_seed(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, *loaders)
    return module, trainer


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


@pytest.mark.parametrize("case", CASES)
def test_same(case):
    body, options = CASES[case]
    theirs, their_trainer = train(
        body, lightning.LightningModule, lightning.Trainer, {**options, "enable_model_summary": False}
    )
    ours, our_trainer = train(body, Module, Trainer, options)
    assert ours.losses == theirs.losses
    assert ours.calls == theirs.calls
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    assert our_trainer.global_step == their_trainer.global_step
    assert our_trainer.current_epoch == their_trainer.current_epoch
    theirs_logged = {k: float(v) for k, v in their_trainer.callback_metrics.items()}
    ours_logged = {k: float(v) for k, v in our_trainer.callback_metrics.items()}
    assert ours_logged == pytest.approx(theirs_logged, rel=1e-5)


def test_early_stopping():
    options = {"max_epochs": 30, "enable_model_summary": False}
    from lightning.pytorch.callbacks import EarlyStopping as Theirs

    _, theirs = train(
        Logs, lightning.LightningModule, lightning.Trainer, options, [Theirs("val", patience=2, min_delta=0.01)]
    )
    _, ours = train(Logs, Module, Trainer, {"max_epochs": 30}, [EarlyStopping("val", patience=2, min_delta=0.01)])
    assert ours.current_epoch == theirs.current_epoch
    assert ours.early_stopping_callback.stopped_epoch == theirs.early_stopping_callback.stopped_epoch
