"""What stands around a training: hyper-parameters and how a module is made again, what a trainer says of its loaders,
data modules, loaders together, errors in hooks, runs without anything, refusals. As Lightning has it.
"""

import argparse
import csv
import glob

import pytest
import torch
import torch.nn.functional as F
from sides import QUIET, Cases, check, common, data, fit, outcome, plain
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader

case = Cases()


def answer(run):
    try:
        return run()
    except Exception:  # either side's own kinds
        return "refused"


def watched(side):
    class Watched(common(side)):
        def training_step(self, batch, batch_idx):
            self.log("tl", loss := self.loss(batch), on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, batch_idx):
            self.log("vl", F.cross_entropy(self(batch[0]), batch[1]))

    return Watched


# -- hyper-parameters and checkpoints ---------------------------------------------------------------------------------


@case
def hyperparameters_in_all_forms(side):
    class Whole(side.Module):
        def __init__(self, conf, width=2):
            super().__init__()
            self.save_hyperparameters(conf)

    class Named(side.Module):
        def __init__(self, lr=0.1, *, layers=2, act="relu", **more):
            super().__init__()
            self.save_hyperparameters("lr", "layers")

    class Changed(side.Module):
        def __init__(self, net=None, lr=0.1):
            super().__init__()
            self.save_hyperparameters(ignore="net")
            self.hparams.lr = 7
            self.hparams["new"] = 3

    class Base(side.Module):
        def __init__(self, a, b=2):
            super().__init__()
            self.save_hyperparameters()

    class Child(Base):
        def __init__(self, c, *args, d=4, **kwargs):
            super().__init__(*args, **kwargs)
            self.save_hyperparameters(ignore=["a"])

    made = [Whole(argparse.Namespace(a=1, b="x")), Whole({"a": 3}), Named(0.3, act="no", extra=1), Changed(3)]
    made += [Child(9, 1, b=5), Whole(argparse.Namespace(q=1), width=5)]
    return plain([[dict(each.hparams), dict(each.hparams_initial)] for each in made])


@case
def made_again_from_the_one_argument_that_was_kept(side):
    class Made(watched(side)):
        def __init__(self, conf, width=2):
            super().__init__()
            self.save_hyperparameters(conf)
            self.conf, self.width = conf, width

        def configure_model(self):
            self.note("model")

        def on_load_checkpoint(self, checkpoint):
            self.note("loads", sorted(checkpoint["hyper_parameters"]))

    _, trainer = fit(side, lambda: Made(argparse.Namespace(a=1, b="x"), 4), {"max_epochs": 1})
    trainer.save_checkpoint("x.ckpt")
    kept = torch.load("x.ckpt", weights_only=False)
    again = Made.load_from_checkpoint("x.ckpt", width=3, weights_only=False, unknown=3)
    return plain([kept["hparams_name"], dict(again.hparams), dict(again.conf), again.width, again.calls])


@case
def hyperparameters_from_the_file_of_a_logger(side):
    class Kept(watched(side)):
        def __init__(self, lr=0.1, act=None, name="a: b", on=True):
            super().__init__()
            self.save_hyperparameters()

    side_loggers = [side.CSVLogger("."), side.loggers.TensorBoardLogger("t")]
    module = Kept(0.3)
    trainer = side.Trainer(**{**QUIET, "logger": side_loggers, "max_epochs": 1})
    trainer.fit(module, DataLoader(data(9), 4))
    trainer.save_checkpoint("kept.ckpt")
    with open("table.csv", "w") as table:
        table.write("key,value\nlr,0.7\nname,free\non,False\n")
    written = glob.glob("**/hparams.yaml", recursive=True)
    files = [*sorted(written), "table.csv"]
    made = [Kept.load_from_checkpoint("kept.ckpt", hparams_file=path, act=3) for path in files]
    there = sorted(path for path in glob.glob("**/*", recursive=True) if "events" not in path)
    return plain([there, *(dict(each.hparams) for each in made)])


@case
def hyperparameters_for_loggers(side):
    logged = []

    class Notes(side.CSVLogger):
        def log_hyperparams(self, params=None, *args, **more):
            logged.append(dict(params))

    def module(logs, **given):
        class Made(watched(side)):
            def __init__(self, a=1, b=2):
                super().__init__()
                self.save_hyperparameters(logger=logs)
                self.hparams.a = 99

        return Made(**given)

    class Loaders(side.DataModule):
        def __init__(self, a=1, c=3):
            super().__init__()
            self.save_hyperparameters()

        def train_dataloader(self):
            return DataLoader(data(20), batch_size=8)

    def run(module, loaders):
        side.Trainer(**{**QUIET, "logger": Notes("l", name="n"), "max_epochs": 1}).fit(module, datamodule=loaders)

    refused = []
    for made, loaders in ((module(False), Loaders()), (module(True, b=5), Loaders()), (module(True, a=2), Loaders())):
        refused.append(answer(lambda made=made, loaders=loaders: run(made, loaders)))
    return [plain(logged), refused]


@case
def what_a_checkpoint_holds_and_who_is_asked(side):
    class Asked(watched(side)):
        def __init__(self, a=1):
            super().__init__()
            self.save_hyperparameters()

        def on_save_checkpoint(self, checkpoint):
            checkpoint["mine"] = {"epoch": self.current_epoch}
            self.note("save", "optimizer_states" in checkpoint)

        def on_load_checkpoint(self, checkpoint):
            self.note("load", checkpoint["mine"])

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), 1e-2)
            return [optimizer], [lr_scheduler.StepLR(optimizer, 1), lr_scheduler.ExponentialLR(optimizer, 0.9)]

    class Counts(side.Callback):
        number = 0

        def on_train_batch_end(self, *args):
            self.number += 1

        def state_dict(self):
            return {"number": self.number}

        def load_state_dict(self, state_dict):
            self.number = state_dict["number"]

        def on_save_checkpoint(self, trainer, module, checkpoint):
            checkpoint["called"] = 5

        def on_load_checkpoint(self, trainer, module, checkpoint):
            module.note("called", checkpoint["called"], self.number)

    module, trainer = fit(side, Asked, {"callbacks": [Counts()], "max_epochs": 2})
    trainer.save_checkpoint("whole.ckpt")
    trainer.save_checkpoint("weights.ckpt", weights_only=True)
    ours = {"progress", "ptmigrate_format", "loops", "pytorch-lightning_version"}
    held = [sorted(set(torch.load(f"{name}.ckpt", weights_only=False)) - ours) for name in ("whole", "weights")]
    results = []
    for name, epochs in (("whole", 4), ("whole", 2), ("whole", 1), ("weights", 4)):
        module, counts = Asked(), Counts()
        trainer = side.Trainer(**{**QUIET, "callbacks": [counts], "max_epochs": epochs})
        loaders = (DataLoader(data(), 8), DataLoader(data(41, 9), 10))
        refused = answer(lambda: trainer.fit(module, *loaders, ckpt_path=f"{name}.ckpt"))  # noqa: B023
        notes = [each for each in module.calls if isinstance(each, list)]
        results.append([refused, notes if refused is None else [], counts.number if refused is None else 0])
    return [held, results]


@case
def torchscript(side):
    class Shaped(watched(side)):
        def __init__(self):
            super().__init__()
            self.example_input_array = torch.ones(2, 4)

    module, _ = fit(side, Shaped, {"max_epochs": 1})
    made = [module.to_torchscript(method="trace"), module.to_torchscript("s.pt"), torch.jit.load("s.pt")]
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    return plain([*(each(x) for each in made), module.training, answer(lambda: module.to_torchscript(method="no"))])


# -- loaders ----------------------------------------------------------------------------------------------------------


@case
def numbers_of_batches(side):
    class Stages(watched(side)):
        def on_train_start(self):
            t = self.trainer
            self.note(t.num_training_batches, t.num_val_batches, t.num_sanity_val_batches, t.enable_validation)

        def test_step(self, batch, batch_idx, dataloader_idx=0): ...
        def on_test_start(self):
            self.note(self.trainer.num_test_batches)

        def on_predict_start(self):
            self.note(self.trainer.num_predict_batches)

        def predict_step(self, batch, batch_idx):
            return batch[1]

    limits = {"limit_val_batches": 3, "limit_train_batches": 0.5, "limit_test_batches": 0.5, "limit_predict_batches": 2}
    module, trainer = fit(side, Stages, {**limits, "num_sanity_val_steps": -1, "max_epochs": 1})
    trainer.test(module, [DataLoader(data(40), 10), DataLoader(data(), 5)], verbose=False)
    trainer.predict(module, DataLoader(data(40), 10))
    nothing = side.Trainer(**{**QUIET, "limit_predict_batches": 0}).predict(module, DataLoader(data(40), 10))
    return [module.calls, nothing]


@case
def a_loader_to_validate_with_and_no_step(side):
    class Trains(common(side)):
        def on_train_start(self):
            self.note(self.trainer.enable_validation)

    return outcome(*fit(side, Trains, {"max_epochs": 1}))


@case
def a_data_module_of_data_sets(side):
    class Tests(watched(side)):
        def test_step(self, batch, batch_idx, dataloader_idx):
            self.log("t", self.loss(batch))

    class Sized(side.DataModule):
        def __init__(self, batch_size, more=1):
            super().__init__()
            self.sizes = [batch_size, more]

    made = side.DataModule.from_datasets(data(30), data(20, 4), [data(11), data(12)], batch_size=7)
    sized = Sized.from_datasets({"a": data(9)}, batch_size=4, more=3)
    module, trainer = Tests(), side.Trainer(**QUIET)
    torch.manual_seed(2)
    trainer.fit(module, datamodule=made)
    tested = plain(trainer.test(module, datamodule=made, verbose=False))
    return [outcome(module, trainer), tested, sized.sizes, len(sized.train_dataloader()["a"])]


@case
def loaders_together_by_hand(side):
    every = {}
    for mode in ("min_size", "max_size", "max_size_cycle", "sequential"):
        parts = [DataLoader(torch.arange(7), 2), {"k": DataLoader(torch.arange(5), 3)}]
        combined = side.CombinedLoader(parts, mode)
        every[mode] = [plain(each) for each in combined]
    return every


@case
def one_name_for_two_loaders(side):
    class Mixes(common(side)):
        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            self.log("v", self.loss(batch), add_dataloader_idx=False)

    two = [DataLoader(data(20), 8), DataLoader(data(30), 8)]
    return answer(lambda: outcome(*fit(side, Mixes, loaders=(DataLoader(data(), 8), two))))


# -- logs, callbacks, errors ------------------------------------------------------------------------------------------


@case
def the_logger_s_steps_where_validation_meets_accumulation(side):
    often = {"log_every_n_steps": 3, "max_epochs": 2, "val_check_interval": 0.5, "accumulate_grad_batches": 2}
    fit(side, watched(side), {"logger": side.CSVLogger("l", name="n", version="v"), **often})
    with open("l/n/v/metrics.csv") as file:
        return [[row["step"], row["epoch"], bool(row["vl"])] for row in csv.DictReader(file)]


@case
def a_timer_s_times(side):
    timer = side.callbacks.Timer(duration="00:01:00:00", interval="epoch")
    fit(side, watched(side), {"callbacks": [timer], "max_epochs": 1})
    began, ended = timer.start_time(), timer.end_time()
    return [ended > began, timer.time_remaining() < 3600, timer.time_elapsed("validate") > 0, timer.end_time("test")]


HOOKS = [f"on_train_{where}" for where in ("start", "epoch_start", "batch_start", "batch_end", "epoch_end", "end")]
HOOKS += [f"on_validation_{where}" for where in ("start", "epoch_start", "batch_end", "epoch_end", "end")]
HOOKS += ["on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step"]
HOOKS += ["setup", "on_fit_start", "on_fit_end", "training_step", "validation_step", "configure_optimizers"]


@case
def an_error_in_every_hook(side):
    told = {}
    for hook in HOOKS:

        class Notes(side.Callback):
            def on_exception(self, trainer, module, exception):
                told[hook] = [type(exception).__name__, str(exception)]  # noqa: B023

        def fails(self, *args, hook=hook, **more):
            raise KeyError(hook)

        failing = type("Failing", (watched(side),), {hook: fails})
        with pytest.raises(KeyError):
            fit(side, failing, {"callbacks": [Notes()], "max_epochs": 1, "limit_train_batches": 2})
    return told


@case
def bare_bones(side):
    bare = {name: QUIET[name] for name in ("accelerator", "devices")}
    module, trainer = watched(side)(), side.Trainer(**bare, barebones=True, max_epochs=2)
    torch.manual_seed(2)
    trainer.fit(module, DataLoader(data(), 8), DataLoader(data(20), 8))
    slow = ("logger", "enable_checkpointing", "fast_dev_run", "enable_progress_bar", "enable_model_summary")
    given = [*({name: True} for name in slow), {"profiler": "simple"}, {"num_sanity_val_steps": 2}]
    given += [{"log_every_n_steps": 5}, {"detect_anomaly": True}]
    made = [answer(lambda more=more: type(side.Trainer(**bare, barebones=True, **more)).__name__) for more in given]
    return [outcome(module, trainer), made, sorted(glob.glob("*"))]


@case
def arguments_that_are_refused(side):
    given = [{"check_val_every_n_epoch": None, "val_check_interval": 0.5}, {"check_val_every_n_epoch": None}]
    given += [{"reload_dataloaders_every_n_epochs": -1}, {"callbacks": "x"}, {"check_val_every_n_epoch": 2}]
    return [answer(lambda more=more: type(side.Trainer(**{**QUIET, **more})).__name__) for more in given]


@pytest.mark.parametrize("name", case)
def test_like_lightning(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
