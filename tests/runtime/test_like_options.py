"""The options of ModelCheckpoint, EarlyStopping, `self.log` and Trainer, one by one and in pairs, as Lightning's.

Where a row's answer is "refused" on both sides, both raise.
"""

import os

import pytest
import torch
import torch.nn.functional as F
from sides import check, common, data, fit, outcome, plain
from torch.utils.data import DataLoader

LOADERS = (DataLoader(data(50), 8), DataLoader(data(21, 9), 10))
HOW_OFTEN = {
    "each epoch": {},
    "twice an epoch": {"val_check_interval": 0.5},
    "every other epoch": {"check_val_every_n_epoch": 2},
}


def watched(side):
    """Logs a loss in training, and a loss and a rate in validation."""

    class Watched(common(side)):
        def training_step(self, batch, batch_idx):
            loss = self.loss(batch)
            self.log("tl", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, batch_idx):
            out = self(batch[0])
            self.log("vl", F.cross_entropy(out, batch[1]))
            self.log("acc", (out.argmax(-1) == batch[1]).float().mean(), prog_bar=True)

    return Watched


def answer(run, *args):
    try:
        return plain(run(*args))
    except Exception:  # either side's own kinds
        return "refused"


CHECKPOINTS = {
    "steps": {"every_n_train_steps": 4},
    "steps, all": {"every_n_train_steps": 4, "save_top_k": -1},
    "steps, best": {
        "every_n_train_steps": 3,
        "save_top_k": 2,
        "monitor": "tl_step",
        "filename": "{step}-{tl_step:.2f}",
    },
    "steps, last": {"every_n_train_steps": 4, "save_last": True},
    "steps, link": {"every_n_train_steps": 4, "save_last": "link", "save_top_k": -1},
    "steps, of validation": {"every_n_train_steps": 5, "monitor": "vl", "save_top_k": 2},
    "steps, train end": {"every_n_train_steps": 7, "save_on_train_epoch_end": True, "save_top_k": -1},
    "never by steps": {"every_n_train_steps": 0},
    "never by epochs": {"every_n_epochs": 0},
    "all, link": {"save_top_k": -1, "save_last": "link"},
    "other epochs": {"every_n_epochs": 2, "save_top_k": -1},
    "other epochs, best": {"every_n_epochs": 2, "save_top_k": 1, "monitor": "vl"},
    "train end": {"save_on_train_epoch_end": True, "save_top_k": -1, "monitor": "vl", "filename": "{epoch}-{vl:.1f}"},
    "val end": {
        "save_on_train_epoch_end": False,
        "save_top_k": -1,
        "monitor": "acc",
        "mode": "max",
        "filename": "a_{acc:.2f}_{epoch:03d}",
    },
    "no versions": {"enable_version_counter": False, "filename": "same", "save_top_k": 1},
    "no versions, best": {"enable_version_counter": False, "filename": "same", "save_top_k": 3, "monitor": "vl"},
    "one name": {"filename": "same", "save_top_k": 3, "monitor": "vl"},
    "none": {"save_top_k": 0},
    "none but the last": {"save_top_k": 0, "save_last": True},
    "weights": {"save_weights_only": True, "monitor": "vl", "save_top_k": 2},
    "folder in the name": {"filename": "x/{vl:.1f}", "save_top_k": -1, "monitor": "vl"},
    "names left out": {
        "filename": "{epoch}_{vl:.2f}",
        "auto_insert_metric_name": False,
        "save_top_k": -1,
        "monitor": "vl",
    },
    "two moments": {"every_n_train_steps": 2, "every_n_epochs": 1},
    "negative steps": {"every_n_train_steps": -1},
    "negative epochs": {"every_n_epochs": -1},
    "negative top": {"save_top_k": -2, "monitor": "vl"},
    "three of nothing": {"save_top_k": 3},
    "no such mode": {"monitor": "vl", "mode": "avg"},
    "no such metric": {"monitor": "nope"},
}


def files(folder):
    paths = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(os.path.relpath(path, folder) for path in paths)


def checkpoints(side, options, trainer_options):
    callback = side.ModelCheckpoint(dirpath="kept", **options)
    more = {"enable_checkpointing": True, "callbacks": [callback], "max_epochs": 4, **trainer_options}
    fit(side, watched(side), more, LOADERS)
    read = {name: torch.load(f"kept/{name}", weights_only=False) for name in files("kept")}
    return {
        "files": {name: [each["epoch"], each["global_step"]] for name, each in read.items()},
        "links": [name for name in read if os.path.islink(f"kept/{name}")],
        "best": os.path.basename(callback.best_model_path),
        "last": os.path.basename(callback.last_model_path),
        "worst": os.path.basename(callback.kth_best_model_path),
        "score": callback.best_model_score,
        "current": callback.current_score,
        "known": sorted(map(os.path.basename, callback.best_k_models)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("often", HOW_OFTEN)
@pytest.mark.parametrize("options", CHECKPOINTS)
def test_model_checkpoint(options, often, tmp_path, monkeypatch):
    check(lambda side: answer(checkpoints, side, CHECKPOINTS[options], HOW_OFTEN[often]), tmp_path, monkeypatch)


STOPS = {
    "patience 1": {"monitor": "vl", "patience": 1},
    "patience 0": {"monitor": "vl", "patience": 0},
    "max": {"monitor": "acc", "mode": "max", "patience": 2},
    "threshold": {"monitor": "vl", "stopping_threshold": 1.15},
    "divergence": {"monitor": "vl", "divergence_threshold": 1.0},
    "delta": {"monitor": "vl", "min_delta": 0.5, "patience": 2},
    "training": {"monitor": "tl", "patience": 1, "check_on_train_epoch_end": True},
    "training's epoch": {"monitor": "tl_epoch", "patience": 1},
    "after validation": {"monitor": "vl", "patience": 2, "check_on_train_epoch_end": False},
    "not strict": {"monitor": "zz", "strict": False},
    "strict": {"monitor": "zz"},
    "not finite": {"monitor": "nan", "patience": 3},
    "not finite, allowed": {"monitor": "nan", "patience": 2, "check_finite": False},
    "no such mode": {"monitor": "vl", "mode": "auto"},
}
AT_LEAST = {**HOW_OFTEN, "five epochs": {"min_epochs": 5}, "thirty steps": {"min_steps": 30}}


def stops(side, options, trainer_options):
    class Finite(watched(side)):
        def validation_step(self, batch, batch_idx):
            super().validation_step(batch, batch_idx)
            self.log("nan", float("nan") if self.current_epoch > 1 else 1.0)

    callback = side.EarlyStopping(**options)
    module, trainer = fit(side, Finite, {"callbacks": [callback], "max_epochs": 8, **trainer_options}, LOADERS)
    ended = [trainer.current_epoch, trainer.global_step, len(module.calls)]
    return [*ended, callback.stopped_epoch, callback.wait_count, callback.best_score]


@pytest.mark.slow
@pytest.mark.parametrize("least", AT_LEAST)
@pytest.mark.parametrize("options", STOPS)
def test_early_stopping(options, least, tmp_path, monkeypatch):
    check(lambda side: answer(stops, side, STOPS[options], AT_LEAST[least]), tmp_path, monkeypatch)


def log(**options):
    return lambda module, loss: module.log("x", 1.5, **options)


LOGS = {
    "mean": log(),
    "sum": log(reduce_fx="sum", on_epoch=True),
    "min": log(reduce_fx=min, on_epoch=True),
    "torch.max": log(reduce_fx=torch.max, on_epoch=True),
    "median": log(reduce_fx="median", on_epoch=True),
    "weight": log(batch_size=7, on_epoch=True),
    "sync": log(sync_dist=True, on_epoch=True),
    "rank zero": log(rank_zero_only=True),
    "graph": log(enable_graph=True),
    "bar only": log(logger=False, prog_bar=True, on_epoch=True),
    "epoch only": log(on_step=False, on_epoch=True),
    "nowhere": log(on_step=False, on_epoch=False),
    "int": lambda m, loss: m.log("x", 3),
    "bool": lambda m, loss: m.log("x", True),
    "tensor": lambda m, loss: m.log("x", torch.tensor([4])),
    "bfloat16": lambda m, loss: m.log("x", torch.tensor(1.5, dtype=torch.bfloat16)),
    "numpy": lambda m, loss: m.log("x", torch.ones(1).numpy()[0]),
    "nan": lambda m, loss: m.log("x", float("nan")),
    "two numbers": lambda m, loss: m.log("x", torch.ones(2)),
    "a text": lambda m, loss: m.log("x", "1"),
    "nothing": lambda m, loss: m.log("x", None),
    "a dict": lambda m, loss: m.log("x", {"a": loss}),
    "a dict of dicts": lambda m, loss: m.log_dict({"a": {"b": loss}}),
    "log_dict": lambda m, loss: m.log_dict({"a": loss, "b": 2 * loss}, prog_bar=True, on_epoch=True),
    "twice": lambda m, loss: [m.log("a", v, on_step=False, on_epoch=True) for v in (1.0, 3.0)],
    "twice, otherwise": lambda m, loss: [m.log("a", loss), m.log("a", loss, on_epoch=True)],
    "a number for a name": lambda m, loss: m.log(3, loss),
    "a loader in the name": lambda m, loss: m.log("a/dataloader_idx_0", loss),
    "step": lambda m, loss: m.log("step", 3.0),
    "epoch": lambda m, loss: m.log("epoch", 3.0),
}


def logged(side, body):
    class Logs(common(side)):
        def training_step(self, batch, batch_idx):
            loss = self.loss(batch)
            body(self, loss.detach())
            return loss

    options = {"max_epochs": 1, "log_every_n_steps": 1, "logger": side.CSVLogger(".", name="t")}
    return outcome(*fit(side, Logs, options, LOADERS[:1]))


@pytest.mark.parametrize("name", LOGS)
def test_log(name, tmp_path, monkeypatch):
    check(lambda side: answer(logged, side, LOGS[name]), tmp_path, monkeypatch)


TRAINERS = {
    "anomaly": {"detect_anomaly": True},
    "a dry run": {"fast_dev_run": 2},
    "overfit": {"overfit_batches": 1},
    "no time": {"max_time": "00:00:00:00"},
    "least epochs": {"min_epochs": 2, "max_epochs": 3},
    "steps": {"max_steps": 5},
    "no steps": {"max_steps": 0},
    "steps alone": {"max_epochs": -1, "max_steps": 7},
    "the whole check": {"num_sanity_val_steps": -1},
    "every batch": {"val_check_interval": 1},
    "never a batch": {"val_check_interval": 0},
    "beyond the epoch": {"val_check_interval": 1000},
    "over epochs": {"check_val_every_n_epoch": None, "val_check_interval": 5},
    "no epoch": {"check_val_every_n_epoch": 0},
    "negative epochs": {"max_epochs": -3},
    "negative steps": {"max_steps": -5},
    "negative clipping": {"gradient_clip_val": -1.0},
    "clipping in words": {"gradient_clip_val": "1"},
    "negative limit": {"limit_val_batches": -1},
    "bfloat16": {"precision": "bf16-mixed"},
    "double": {"precision": 64},
    "much overfitting": {"overfit_batches": 1.5},
    "text devices": {"devices": "1"},
    "auto devices": {"devices": "auto", "strategy": "auto"},
    "accumulating": {"accumulate_grad_batches": 3, "val_check_interval": 4, "limit_train_batches": 0.8},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_trainer(name, tmp_path, monkeypatch):
    def case(side):
        return answer(lambda: outcome(*fit(side, watched(side), {"max_epochs": 2, **TRAINERS[name]})))

    check(case, tmp_path, monkeypatch)
