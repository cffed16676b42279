"""What loggers are told, and the files that are there when users' callbacks look, as in Lightning."""

import os

import pytest
import torch
from sides import Cases, check, common, data, fit, outcome, plain
from torch.utils.data import DataLoader

LOADERS = (DataLoader(data(20), 8), DataLoader(data(10, 9), 10))

case = Cases()


@case
def a_logger_of_ones_own(side):
    """It keeps its values when it is told to save, and has a name and a version, but no folder."""
    from lightning.pytorch.loggers import Logger

    class Keeps(Logger):
        name, version = "mine", 7

        def __init__(self):
            super().__init__()
            self.rows, self.saved, self.checkpoints = [], [], 0

        def log_metrics(self, metrics, step=None):
            self.rows.append([step, plain(metrics)])

        def log_hyperparams(self, params, *args, **kwargs):
            self.rows.append(dict(params))

        def save(self):
            self.saved.append(len(self.rows))

        def after_save_checkpoint(self, checkpoint_callback):
            self.checkpoints += 1

    class M(common(side)):
        def __init__(self, width=1):
            super().__init__()
            self.save_hyperparameters()

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("loss", loss, on_epoch=True)
            return loss

        def validation_step(self, b, i):
            self.log("val", self.loss(b))

    logger = Keeps()
    options = {"logger": logger, "enable_checkpointing": True, "max_epochs": 2, "log_every_n_steps": 1}
    options["callbacks"] = [side.ModelCheckpoint(monitor="val", save_top_k=-1, save_last=True)]
    module, trainer = fit(side, M, options, LOADERS)
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names)
    return outcome(module, trainer, rows=logger.rows, saved=logger.saved, told=logger.checkpoints, files=files)


@case
def a_folder_that_nothing_was_logged_to(side):
    class Writes(side.Callback):
        def on_train_start(self, trainer, module):
            with open(os.path.join(trainer.log_dir, "notes.txt"), "w") as file:
                file.write("begun")

    options = {"logger": side.CSVLogger("logs"), "callbacks": [Writes()], "max_epochs": 1}
    fit(side, common(side), options, LOADERS)
    return os.path.isfile("logs/lightning_logs/version_0/notes.txt")


@case
def tensorboards_graph_and_hyperparameters(side):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class M(common(side)):
        def __init__(self, width=8, name="a", sizes=(1, 2)):
            super().__init__()
            self.save_hyperparameters()
            self.example_input_array = torch.zeros(2, 4)

        def forward(self, x):
            return self.net(x.to(self.device))

    logger = side.loggers.TensorBoardLogger("logs", log_graph=True)
    module, trainer = fit(side, M, {"logger": logger, "max_epochs": 1}, LOADERS)
    trainer.logger.log_hyperparams({"width": 9}, {"score": 0.5})
    logger.finalize("success")
    events = EventAccumulator(trainer.log_dir).Reload()
    scalars = {name: [value.value for value in events.Scalars(name)] for name in ("hp_metric", "score")}
    return outcome(
        module, trainer, graph=events.Tags()["graph"], scalars=scalars, kinds=sorted(events.summary_metadata)
    )


@pytest.mark.parametrize("name", case)
def test_like_lightning(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
