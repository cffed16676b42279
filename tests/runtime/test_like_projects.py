"""Whole modules as Lightning users write them, trained by both packages: losses, metrics, hooks and weights agree."""

import os

import pytest
import torch
import torch.nn.functional as F
from sides import QUIET, Cases, check, common, data, fit, outcome, plain, rate
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset, random_split

OUR_HOOKS = ("on_epoch_complete", "on_train_batches_end")

case = Cases()


@case
def autoencoder_with_data(side):
    """Modules within modules, a data module, best and last checkpoints, and what is made of them again."""

    class Encoder(side.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))

        def forward(self, x):
            return self.layers(x)

    class Autoencoder(side.Module):
        def __init__(self, width=7, lr=1e-2, *, betas=(0.9, 0.99), **more):
            super().__init__()
            self.save_hyperparameters()
            torch.manual_seed(2)
            self.encoder, self.decoder = Encoder(width), nn.Linear(3, 6)
            self.calls = []

        def forward(self, x):
            return self.encoder(x)

        def shared(self, batch, stage):
            z = self.encoder(batch[0])
            loss = F.mse_loss(self.decoder(z), batch[0])
            self.log(f"{stage}/loss", loss, prog_bar=True)
            self.log_dict({f"{stage}/mean": z.mean(), f"{stage}/std": z.std()}, on_step=False, on_epoch=True)
            return loss

        def training_step(self, batch, batch_idx):
            return self.shared(batch, "train")

        def validation_step(self, batch, batch_idx):
            return self.shared(batch, "val")

        def test_step(self, batch, batch_idx):
            return self.shared(batch, "test")

        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            return self(batch[0])

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, betas=self.hparams["betas"])
            scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.3)
            watching = {"scheduler": scheduler, "monitor": "val/loss", "interval": "epoch", "frequency": 2}
            return {"optimizer": optimizer, "lr_scheduler": watching}

    class Data(side.DataModule):
        def __init__(self, size=12, seed=3):
            super().__init__()
            self.save_hyperparameters(ignore=["seed"])
            self.seed, self.seen = seed, []

        def prepare_data(self):
            self.seen.append("prepare")

        def setup(self, stage=None):
            self.seen.append(getattr(stage, "value", stage))
            generator = torch.Generator().manual_seed(self.seed)
            full = TensorDataset(torch.randn(90, 6, generator=generator))
            self.parts = random_split(full, [60, 20, 10], generator=generator)

        def train_dataloader(self):
            return DataLoader(self.parts[0], batch_size=self.hparams.size, shuffle=True, drop_last=True)

        def val_dataloader(self):
            return DataLoader(self.parts[1], batch_size=self.hparams.size)

        def test_dataloader(self):
            return DataLoader(self.parts[2], batch_size=4)

        def predict_dataloader(self):
            return [DataLoader(self.parts[2], batch_size=4), DataLoader(self.parts[1], batch_size=6)]

        def teardown(self, stage):
            self.seen.append("down " + getattr(stage, "value", stage))

    name = "{epoch:02d}-{val/loss:.3f}"
    best = side.ModelCheckpoint("kept", name, "val/loss", auto_insert_metric_name=False, save_top_k=2, save_last=True)
    stop = side.EarlyStopping("val/loss", patience=2, min_delta=1e-3)
    more = {"enable_checkpointing": True, "max_epochs": 6, "callbacks": [best, stop], "log_every_n_steps": 2}
    trainer, module, loaders = side.Trainer(**{**QUIET, **more}), Autoencoder(extra=5), Data()
    torch.manual_seed(0)
    trainer.fit(module, datamodule=loaders)
    result = outcome(module, trainer, hparams=dict(module.hparams), data=dict(loaders.hparams))
    result["paths"] = [os.path.basename(p) for p in (best.best_model_path, best.last_model_path)]
    result["validated"] = plain(trainer.validate(module, datamodule=loaders, ckpt_path="best", verbose=False))
    result["tested"] = plain(trainer.test(datamodule=loaders, ckpt_path="last", verbose=False))
    result["predicted"] = plain(trainer.predict(module, datamodule=loaders, ckpt_path=best.best_model_path))
    again = Autoencoder.load_from_checkpoint(best.best_model_path, lr=0.5)
    result["again"] = plain([dict(again.hparams), dict(again.state_dict())])
    result["loaders again"] = plain(dict(Data.load_from_checkpoint(best.best_model_path).hparams))
    return {**result, "seen": loaders.seen}


@case
def warm_up_clipping_and_gradient_norms(side):
    class Warm(common(side)):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            if self.trainer.global_step < 6:
                for group in optimizer.param_groups:
                    group["lr"] = min(1.0, (self.trainer.global_step + 1) / 6) * 0.1
            super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)

        def on_before_optimizer_step(self, optimizer):
            self.log_dict({f"norm/{name}": p.grad.norm() for name, p in self.named_parameters()})
            self.note(rate(self))

        def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
            self.note("clip", gradient_clip_val, gradient_clip_algorithm)
            if self.current_epoch > 0:
                self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

        def training_step(self, batch, batch_idx):
            loss = self.loss(batch)
            if batch_idx == 3:
                return None
            self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True, logger=True)
            return {"loss": loss, "out": self(batch[0]).detach()}

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.note(outputs)

    clips = {"gradient_clip_val": 0.05, "accumulate_grad_batches": 3}
    return [outcome(*fit(side, Warm, {**clips, "gradient_clip_algorithm": how})) for how in ("value", None)]


@case
def two_players(side):
    """A GAN by hand: toggled optimizers, a critic every other batch, schedulers at the last batch."""

    class Players(side.Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            torch.manual_seed(0)
            self.maker = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.BatchNorm1d(8), nn.Linear(8, 4))
            self.critic, self.calls = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), []

        def judged(self, x, real):
            return F.binary_cross_entropy_with_logits(self.critic(x), torch.full((len(x), 1), real).type_as(x))

        def training_step(self, batch, batch_idx):
            makes, judges = self.optimizers()
            z = torch.randn(len(batch[0]), 3)
            self.toggle_optimizer(makes)
            loss = self.judged(self.maker(z), 1.0)
            self.log("made", loss, prog_bar=True)
            self.manual_backward(loss)
            self.clip_gradients(makes, 0.5, "norm")
            makes.step()
            makes.zero_grad()
            self.untoggle_optimizer(makes)
            if batch_idx % 2 == 0:
                self.toggle_optimizer(judges)
                loss = (self.judged(batch[0], 1.0) + self.judged(self.maker(z).detach(), 0.0)) / 2
                self.log("judged", loss, on_epoch=True)
                self.manual_backward(loss)
                judges.step()
                judges.zero_grad()
                self.untoggle_optimizer(judges)
            if self.trainer.is_last_batch:
                for scheduler in self.lr_schedulers():
                    scheduler.step()
            self.calls.append([makes.param_groups[0]["lr"], self.trainer.global_step, self.global_step])

        def configure_optimizers(self):
            pair = [torch.optim.Adam(part.parameters(), 1e-2) for part in (self.maker, self.critic)]
            return pair, [lr_scheduler.StepLR(each, 1, 0.5) for each in pair]

    return outcome(*fit(side, Players, loaders=(DataLoader(data(40), 8, shuffle=True),)))


@case
def where_a_callback_stands(side):
    """What the trainer says of itself in every hook of a callback."""
    notes = []
    names = [name for name in dir(side.Callback) if name.startswith("on_") and name not in OUR_HOOKS]

    def hook(name):
        def note(self, trainer, module, *args):
            stages = [trainer.training, trainer.validating, trainer.testing, trainer.predicting, trainer.evaluating]
            notes.append(
                [name, trainer.global_step, trainer.current_epoch, trainer.sanity_checking, *stages, len(args)]
            )

        return note

    class Steps(common(side)):
        def training_step(self, batch, batch_idx):
            self.log("loss", loss := self.loss(batch))
            return loss

        def validation_step(self, batch, batch_idx, dataloader_idx):
            self.log("value", self.loss(batch))
            return {"kept": 3}

        def test_step(self, batch, batch_idx):
            self.log("tested", self.loss(batch))

        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            return self(batch[0])

    kind = type("Notes", (side.Callback,), {name: hook(name) for name in names})
    often = {"num_sanity_val_steps": 2, "val_check_interval": 0.5, "max_epochs": 2, "accumulate_grad_batches": 2}
    trainer, module = side.Trainer(**{**QUIET, "callbacks": [kind()], **often}), Steps()
    torch.manual_seed(4)
    few = [DataLoader(data(21, 9), 10), DataLoader(data(11, 8), 5)]
    trainer.fit(module, DataLoader(data(40), 8, shuffle=True), few)
    trainer.test(module, few[0], verbose=False)
    trainer.predict(module, few)
    return outcome(module, trainer, notes=notes, ended=trainer.state.finished)


@case
def several_loaders_in_every_stage(side):
    class Stages(common(side)):
        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]))

        def test_step(self, batch, batch_idx, dataloader_idx=0):
            self.log("t", F.cross_entropy(self(batch[0]), batch[1]))
            self.note(dataloader_idx, batch_idx, len(batch[0]))

        def on_test_epoch_end(self):
            self.log("end", 3.0)
            self.log("bar", 2.0, prog_bar=True)

        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            return {"best": self(batch[0]).argmax(-1), "number": batch_idx, "loader": dataloader_idx}

        def on_predict_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0):
            self.note(outputs, batch_idx, dataloader_idx)

    module, trainer = Stages(), side.Trainer(**{**QUIET, "limit_test_batches": 3, "limit_predict_batches": 2})
    many, more = DataLoader(data(21), 5), DataLoader(data(31), 5)
    results = [trainer.validate(module, many, verbose=False), trainer.test(module, [many, more], verbose=False)]
    results += [trainer.predict(module, [many, more]), trainer.predict(module, many, return_predictions=False)]
    return plain([results, module.calls, dict(trainer.callback_metrics), dict(trainer.logged_metrics)])


@case
def goes_on_from_a_file(side):
    class Watched(common(side)):
        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]))

    def callbacks():
        return [side.ModelCheckpoint("c", save_last=True, monitor="v"), side.EarlyStopping("v", patience=9)]

    fit(side, Watched, {"enable_checkpointing": True, "callbacks": callbacks(), "max_epochs": 2})
    module, kept = Watched(), callbacks()
    trainer = side.Trainer(**{**QUIET, "enable_checkpointing": True, "callbacks": kept, "max_epochs": 4})
    trainer.fit(module, DataLoader(data(), 8), DataLoader(data(41, 9), 10), ckpt_path="c/last.ckpt")
    ended = [trainer.current_epoch, trainer.global_step, len(module.calls), kept[1].wait_count]
    return [*ended, sorted(os.listdir("c")), os.path.basename(kept[0].best_model_path)]


FORMS = {
    "an optimizer": lambda o, s: o,
    "a list": lambda o, s: [o],
    "a tuple": lambda o, s: (o,),
    "a dict": lambda o, s: {"optimizer": o},
    "two lists": lambda o, s: ([o], [s]),
    "steps": lambda o, s: ([o], [{"scheduler": s, "interval": "step", "frequency": 2}]),
    "a list of dicts": lambda o, s: [{"optimizer": o, "lr_scheduler": s}],
    "a tuple of dicts": lambda o, s: ({"optimizer": o, "lr_scheduler": {"scheduler": s, "interval": "step"}},),
    "one frequency": lambda o, s: [{"optimizer": o, "frequency": 1}],
    "two schedulers": lambda o, s: ([o], [s, {"scheduler": lr_scheduler.StepLR(o, 1, 0.9), "interval": "step"}]),
    "in a row": lambda o, s: ([o], [lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o), s], [2])]),
    "chained": lambda o, s: ([o], [lr_scheduler.ChainedScheduler([s, lr_scheduler.ConstantLR(o, 0.1, 2)])]),
    "an unknown key": lambda o, s: {"optimizer": o, "lr_scheduler": {"scheduler": s, "foo": 3}},
    "no such interval": lambda o, s: {"optimizer": o, "lr_scheduler": {"scheduler": s, "interval": "batch"}},
    "the scheduler as an optimizer": lambda o, s: (o, s),
    "no metric": lambda o, s: ([o], [lr_scheduler.ReduceLROnPlateau(o)]),
    "a set": lambda o, s: {o},
    "a text": lambda o, s: "adam",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_configure_optimizers(form, tmp_path, monkeypatch):
    def run(side):
        class Formed(common(side)):
            def configure_optimizers(self):
                optimizer = torch.optim.SGD(self.parameters(), 0.1)
                return FORMS[form](optimizer, lr_scheduler.ExponentialLR(optimizer, 0.5))

            def on_train_batch_start(self, batch, batch_idx):
                self.note(self.trainer.optimizers[0].param_groups[0]["lr"])

        return outcome(*fit(side, Formed, loaders=(DataLoader(data(20), 8), DataLoader(data(11), 8))))

    check(run, tmp_path, monkeypatch)


OPTIONS = ({}, {"on_step": True}, {"on_epoch": True}, {"on_step": False, "on_epoch": True, "reduce_fx": "max"})
HOOKS = [f"on_train_{where}" for where in ("start", "epoch_start", "batch_start", "batch_end", "epoch_end", "end")]
HOOKS += [f"on_validation_{where}" for where in ("start", "epoch_start", "batch_end", "epoch_end", "end")]
HOOKS += ["on_before_backward", "on_after_backward", "on_before_zero_grad", "on_before_optimizer_step", "on_fit_start"]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("name", HOOKS)
def test_log_in_every_hook(name, options, tmp_path, monkeypatch):
    def run(side):
        def log(self, *args, **more):
            self.number = getattr(self, "number", 0) + 1
            self.log("x", float(self.number), **options)

        body = {name: log, "validation_step": lambda self, batch, batch_idx: None}
        kind = type("Logs", (common(side),), body)
        return outcome(*fit(side, kind, {"max_epochs": 2}, (DataLoader(data(20), 8), DataLoader(data(11), 8))))

    check(run, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", case)
def test_projects(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
