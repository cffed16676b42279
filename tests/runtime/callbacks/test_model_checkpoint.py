"""The k best, the last, names, and where a run goes on."""

import os
from pathlib import Path

import pytest
import torch
from ptmigrate.runtime import EarlyStopping, ModelCheckpoint, Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset

SCORES = [5.0, 3.0, 4.0, 1.0, 2.0]


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("score", SCORES[self.current_epoch])


def fit(callback, **options):
    loader = DataLoader(TensorDataset(torch.ones(16, 2)), 4)
    trainer = Trainer(max_epochs=5, callbacks=[callback], **options)
    trainer.fit(Net(), loader, loader)
    return trainer


def test_top_k_and_last(tmp_path):
    keeper = ModelCheckpoint(tmp_path, "{epoch}-{score:.1f}", monitor="score", save_top_k=2, save_last=True)
    fit(keeper)
    assert sorted(os.listdir(tmp_path)) == ["epoch=3-score=1.0.ckpt", "epoch=4-score=2.0.ckpt", "last.ckpt"]
    assert keeper.best_model_path.endswith("epoch=3-score=1.0.ckpt") and keeper.best_model_score == 1.0


def test_every_epoch(tmp_path):
    fit(ModelCheckpoint(tmp_path, save_top_k=-1))
    assert len(os.listdir(tmp_path)) == 5 and "epoch=0-step=4.ckpt" in os.listdir(tmp_path)


def test_every_few_steps(tmp_path):
    fit(ModelCheckpoint(tmp_path, every_n_train_steps=8, save_top_k=-1))
    assert sorted(os.listdir(tmp_path)) == ["epoch=1-step=8.ckpt", "epoch=3-step=16.ckpt"]


def test_best_and_last_by_name(tmp_path):
    trainer = fit(ModelCheckpoint(tmp_path, monitor="score", save_last=True))
    assert trainer.checkpoint_path("best") == trainer.checkpoint_callback.best_model_path
    assert trainer.checkpoint_path("last").endswith("last.ckpt")
    with pytest.raises(ConfigurationError, match="no ModelCheckpoint has written"):
        Trainer().checkpoint_path("best")


def test_a_metric_that_is_not_logged_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="'scor'; did you mean 'score'"):
        fit(ModelCheckpoint(tmp_path, monitor="scor"))
    with pytest.raises(ConfigurationError, match="did you mean 'score'"):
        fit(EarlyStopping("scorr"))


def test_early_stopping_counts(tmp_path):
    trainer = fit(EarlyStopping("score", patience=1))
    assert trainer.current_epoch == 3 and trainer.should_stop


def test_nothing_is_written_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(EarlyStopping("score", patience=9))
    assert os.listdir(tmp_path) == []


def test_csv(tmp_path):
    trainer = fit(EarlyStopping("score", patience=9), logger=CSVLogger(tmp_path, "x"), log_every_n_steps=2)
    lines = Path(trainer.logger.path).read_text().splitlines()
    assert lines[0] == "epoch,loss_epoch,loss_step,score,step"
    assert sum(line.split(",")[2] != "" for line in lines[1:]) == 10
    assert [float(line.split(",")[3]) for line in lines[1:] if line.split(",")[3]] == SCORES


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer = fit(EarlyStopping("score", patience=9), logger=TensorBoardLogger(tmp_path))
    events = EventAccumulator(trainer.logger.log_dir)
    events.Reload()
    assert [event.value for event in events.Scalars("score")] == SCORES
