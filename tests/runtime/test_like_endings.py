"""How fits and evaluations end and what is left of them, in the rarer cases, as Lightning has it."""

import csv
import os

import pytest
import torch
import torchmetrics
from sides import Cases, check, common, data, fit, outcome
from torch.utils.data import DataLoader

case = Cases()


def logged(side, **more):
    """A module that logs its loss in training and validation."""

    class Logs(common(side)):
        def training_step(self, batch, batch_idx):
            loss = self.loss(batch)
            self.log("train", loss)
            return loss

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            self.log("val", self.loss(batch))

        def test_step(self, batch, batch_idx):
            self.log("test", self.loss(batch))

    for name, value in more.items():
        setattr(Logs, name, value)
    return Logs


def rows(trainer):
    with open(os.path.join(trainer.logger.log_dir, "metrics.csv"), newline="") as table:
        found = [{k: round(float(v), 4) for k, v in row.items() if v} for row in csv.DictReader(table)]
    return sorted(found, key=lambda row: (row.get("step", 0), sorted(row)))


@case
def asked_before_an_epoch(side):
    """No batch of it runs."""

    def ask(self):
        self.note(self.trainer.global_step)
        self.trainer.should_stop = self.trainer.current_epoch == 1

    return outcome(*fit(side, logged(side, on_train_epoch_start=ask)))


@case
def asked_before_an_epoch_that_must_run(side):
    def ask(self):
        self.trainer.should_stop = self.trainer.current_epoch == 1

    return outcome(*fit(side, logged(side, on_train_epoch_start=ask), {"min_epochs": 2}))


@case
def the_last_step_is_logged(side):
    def stop(self, outputs, batch, batch_idx):
        self.trainer.should_stop = self.trainer.global_step == 4

    options = {"logger": side.CSVLogger("logs"), "log_every_n_steps": 3}
    module, trainer = fit(side, logged(side, on_train_batch_end=stop), options)
    return outcome(module, trainer, rows=rows(trainer))


@case
def overfitting_tests_everything(side):
    module, trainer = fit(side, logged(side), {"overfit_batches": 2})
    return outcome(module, trainer, results=trainer.test(module, DataLoader(data(41, 9), 10), verbose=False))


@case
def gradients_between_steps_by_hand(side):
    """A module that steps by hand and says what happens to its gradients at a validation is asked."""

    def cleared(self):
        self.note("cleared")
        self.zero_grad()

    def by_hand(self, batch, batch_idx):
        optimizer = self.optimizers()
        self.manual_backward(self.loss(batch))
        optimizer.step()
        optimizer.zero_grad()

    manual = {"automatic_optimization": False, "training_step": by_hand}
    return outcome(*fit(side, logged(side, on_validation_model_zero_grad=cleared, **manual)))


@case
def one_metric_for_two_loaders(side):
    """Each loader's value is the metric's when the loader was over."""

    class Metered(logged(side)):
        def __init__(self):
            super().__init__()
            self.seen = torchmetrics.MeanMetric()

        def validation_step(self, batch, batch_idx, dataloader_idx):
            self.seen.update(float(batch_idx + 10 * dataloader_idx))
            self.log("seen", self.seen)

    loaders = [DataLoader(data(41, 9), 10), DataLoader(data(20, 3), 10)]
    return outcome(*fit(side, Metered, {"max_epochs": 2}, (DataLoader(data(), 8), loaders)))


@case
def steps_of_two_loaders(side):
    """A row of the logger has the values of one loader's step."""

    def step(self, batch, batch_idx, dataloader_idx):
        self.log("val", self.loss(batch), on_step=True, on_epoch=True)

    loaders = [DataLoader(data(41, 9), 10), DataLoader(data(20, 3), 10)]
    options = {"logger": side.CSVLogger("logs"), "max_epochs": 2}
    module, trainer = fit(side, logged(side, validation_step=step), options, (DataLoader(data(), 8), loaders))
    return outcome(module, trainer, rows=rows(trainer))


@case
def callbacks_of_a_fast_run(side):
    """What watches a value that was not logged, or writes to a logger, says nothing in it."""
    options = {"fast_dev_run": True, "logger": True}
    watching = [side.EarlyStopping("absent"), side.LearningRateMonitor(), side.callbacks.DeviceStatsMonitor()]
    return outcome(*fit(side, logged(side), {**options, "callbacks": watching}))


def kept(side, notes, **methods):
    """A callback that notes what it is given of a checkpoint."""

    class Keeps(side.Callback):
        def load_state_dict(self, state):
            notes.append(["state", state])

        def on_load_checkpoint(self, trainer, module, checkpoint):
            notes.append("checkpoint")

    for name, value in methods.items():
        setattr(Keeps, name, value)
    return Keeps()


def evaluated_from(side, weights_only, **methods):
    notes = []
    keeper = side.ModelCheckpoint("kept", save_weights_only=weights_only)
    options = {"callbacks": [kept(side, notes, **methods), keeper], "enable_checkpointing": True, "max_epochs": 1}
    module, trainer = fit(side, logged(side), options)
    trainer.validate(module, DataLoader(data(41, 9), 10), ckpt_path=keeper.best_model_path, verbose=False)
    return outcome(module, trainer, notes=notes)


@case
def a_callback_that_kept_nothing(side):
    return evaluated_from(side, False)


@case
def a_callback_that_kept_something(side):
    return evaluated_from(side, False, state_dict=lambda self: {"n": 1})


@case
def weights_alone(side):
    return evaluated_from(side, True, state_dict=lambda self: {"n": 1})


def names_kept(side, trainer=(), **options):
    keeper = side.ModelCheckpoint("kept", **options)
    settings = {"callbacks": [keeper], "enable_checkpointing": True, "max_epochs": 2, **dict(trainer)}
    module, trainer = fit(side, logged(side), settings)
    names = sorted(os.listdir("kept")) if os.path.isdir("kept") else []
    steps = {name: torch.load(os.path.join("kept", name), weights_only=False)["global_step"] for name in names}
    return outcome(module, trainer, steps=steps, last=os.path.basename(trainer.checkpoint_callback.last_model_path))


@case
def the_last_of_every_few_steps(side):
    """It is written also where nothing else is."""
    return names_kept(side, {"limit_val_batches": 0}, save_top_k=0, save_last=True, every_n_train_steps=4)


@case
def the_last_where_it_is_none_of_the_best(side):
    best = {"monitor": "train", "mode": "max", "save_last": True, "every_n_train_steps": 4}
    return names_kept(side, {"limit_val_batches": 0}, **best)


@case
def the_last_batch_of_an_epoch_without_a_validation(side):
    """A value of training is not waited for."""
    options = {"check_val_every_n_epoch": 2, "max_epochs": 3}
    return names_kept(side, options, monitor="train", every_n_train_steps=11, save_top_k=-1)


@case
def a_step_of_its_own(side):
    """The name of a file says what was logged as the step."""

    def step(self, batch, batch_idx):
        self.log("step", batch_idx + 100.5)
        return self.loss(batch)

    settings = {"callbacks": [side.ModelCheckpoint("kept")], "enable_checkpointing": True, "max_epochs": 1}
    module, trainer = fit(side, logged(side, training_step=step), settings)
    return outcome(module, trainer, names=os.listdir("kept"))


@case
def a_value_that_never_comes(side):
    """Without a validation nobody can tell: a warning, and no file."""
    return names_kept(side, {"limit_val_batches": 0}, monitor="absent")


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
