"""One case, two sides: the same class bodies with Lightning's classes and with ours, and what differs afterwards.

A case is a function of a side that returns plain values; `check` runs it with both and compares. Values agree to 1e-4:
Lightning adds up epoch means in float32, this package in float64.
"""

from __future__ import annotations

import logging
import warnings
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from ptmigrate import runtime
from ptmigrate.runtime import callbacks as our_callbacks
from ptmigrate.runtime import loggers as our_loggers
from ptmigrate.runtime.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning.pytorch")
import lightning.pytorch.callbacks as their_callbacks  # noqa: E402
import lightning.pytorch.loggers as their_loggers  # noqa: E402
from lightning.pytorch.utilities.combined_loader import CombinedLoader  # noqa: E402

OURS = SimpleNamespace(
    Module=runtime.Module,
    Trainer=runtime.Trainer,
    DataModule=runtime.DataModule,
    Callback=runtime.Callback,
    EarlyStopping=runtime.EarlyStopping,
    ModelCheckpoint=runtime.ModelCheckpoint,
    LearningRateMonitor=runtime.LearningRateMonitor,
    CombinedLoader=runtime.CombinedLoader,
    CSVLogger=CSVLogger,
    callbacks=our_callbacks,
    loggers=our_loggers,
)
THEIRS = SimpleNamespace(
    Module=lightning.LightningModule,
    Trainer=lightning.Trainer,
    DataModule=lightning.LightningDataModule,
    Callback=lightning.Callback,
    EarlyStopping=their_callbacks.EarlyStopping,
    ModelCheckpoint=their_callbacks.ModelCheckpoint,
    LearningRateMonitor=their_callbacks.LearningRateMonitor,
    CombinedLoader=CombinedLoader,
    CSVLogger=their_loggers.CSVLogger,
    callbacks=their_callbacks,
    loggers=their_loggers,
)
QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "accelerator": "cpu",
    "devices": 1,
    "num_sanity_val_steps": 0,
    "enable_model_summary": False,
    "max_epochs": 3,
}


class Cases(dict):
    """The cases of a file, by name; as a decorator it adds one."""

    def __call__(self, function):
        self[function.__name__] = function
        return function


def data(n=83, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(n, 4, generator=generator), torch.randint(0, 3, (n,), generator=generator))


def common(side):
    """A small classifier with dropout that notes its losses."""

    class Common(side.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.net = torch.nn.Sequential(
                torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(8, 3)
            )
            self.calls = []

        def forward(self, x):
            return self.net(x)

        def loss(self, batch):
            loss = F.cross_entropy(self(batch[0]), batch[1])
            self.calls.append(round(loss.item(), 6))
            return loss

        def training_step(self, batch, batch_idx):
            return self.loss(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

        def note(self, *values):
            self.calls.append([plain(value) for value in values])

    return Common


def rate(module):
    return module.optimizers().param_groups[0]["lr"]


def plain(value):
    """Tensors as their rounded means, containers as lists and dicts, other objects as the names of their types."""
    if isinstance(value, torch.Tensor):
        return round(value.float().mean().item(), 5)
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (int, str, bool, type(None))) else type(value).__name__


def fit(side, cls, options=None, loaders=None):
    module = cls()
    trainer = side.Trainer(**{**QUIET, **(options or {})})
    torch.manual_seed(6)
    trainer.fit(module, *(loaders or (DataLoader(data(), 8, shuffle=True), DataLoader(data(41, 9), 10))))
    return module, trainer


def outcome(module, trainer, **more):
    """What is compared after a fit."""
    return plain(
        {
            "calls": module.calls,
            "weights": dict(module.state_dict()),
            "callback_metrics": dict(trainer.callback_metrics),
            "logged_metrics": dict(trainer.logged_metrics),
            "progress_bar_metrics": dict(trainer.progress_bar_metrics),
            "global_step": trainer.global_step,
            "current_epoch": trainer.current_epoch,
            **more,
        }
    )


def differences(ours, theirs, path=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if key not in ours or key not in theirs:
                yield f"{path}.{key}: only {'ours' if key in ours else 'theirs'}: {ours.get(key, theirs.get(key))}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, theirs {len(theirs)}"
        for index, pair in enumerate(zip(ours, theirs)):  # noqa: B905  unequal lengths are told above
            yield from differences(*pair, f"{path}[{index}]")
    elif not same(ours, theirs):
        yield f"{path}: ours {ours}, theirs {theirs}"


def same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, (float, int)):
        return ours == pytest.approx(theirs, rel=1e-4, abs=1e-4, nan_ok=True)
    return ours == theirs


def run(case, side, folder, monkeypatch):
    folder.mkdir()
    monkeypatch.chdir(folder)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case(side)


def check(case, tmp_path, monkeypatch):
    """Both sides do the same; where Lightning refuses, so does this."""
    try:
        theirs = run(case, THEIRS, tmp_path / "theirs", monkeypatch)
    except Exception:
        with pytest.raises((ValueError, RuntimeError)):
            run(case, OURS, tmp_path / "ours", monkeypatch)
        return
    ours = run(case, OURS, tmp_path / "ours", monkeypatch)
    assert list(differences(ours, theirs))[:8] == []
