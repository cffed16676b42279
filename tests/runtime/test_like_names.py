"""What scripts ask Lightning's loops, in every hook: `trainer.fit_loop.epoch_loop.batch_idx` and its like."""

import importlib

import pytest
import torch
from ptmigrate import runtime
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.hooks import Hooks
from sides import OURS, THEIRS, check, common, data, fit, plain
from torch.utils.data import DataLoader, IterableDataset

OURS_ALONE = ("on_train_batches_end", "on_epoch_complete")
AT = [name for name in dir(Hooks) if name.startswith("on_") and name.split("_")[-1] not in ("checkpoint", "exception")]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(list(data(31)))


def told(trainer):
    loop = trainer.fit_loop
    epochs, batches = loop.epoch_progress, loop.epoch_loop.batch_progress
    points = ("ready", "started", "processed", "completed")
    return [
        *(loop.batch_idx, loop.total_batch_idx, loop.max_epochs, loop.min_epochs, loop.max_steps, loop.min_steps),
        *(loop.epoch_loop.batch_idx, loop.epoch_loop.total_batch_idx, loop.epoch_loop.global_step),
        *(loop.epoch_loop.max_steps, loop.epoch_loop.min_steps, batches.current.ready, batches.total.ready),
        *(batches.is_last_batch, trainer.is_last_batch),
        *([getattr(counts, point) for point in points] for counts in (epochs.current, epochs.total)),
        # known here before the training loader is asked for there
        *((loop.max_batches, trainer.val_check_batch) if loop.epoch_progress.current.ready else ()),
    ]


def everywhere(side, loader, **options):
    notes = []

    def hook(name):
        def note(self, trainer, module, *args):
            notes.append([name, *told(trainer)])

        return note

    class Steps(common(side)):
        def training_step(self, batch, batch_idx):
            notes.append(["training_step", *told(self.trainer)])
            return self.loss(batch)

        def validation_step(self, batch, batch_idx):
            notes.append(["validation_step", *told(self.trainer)])

        def on_train_batch_start(self, batch, batch_idx):
            return -1 if (self.current_epoch, batch_idx) == (1, 3) else None

    tells = type("Tells", (side.Callback,), {name: hook(name) for name in AT if name not in OURS_ALONE})
    loaders = [loader(), DataLoader(data(11), 5)]
    module, trainer = fit(side, Steps, {"callbacks": [tells()], "num_sanity_val_steps": 1, **options}, loaders)
    trainer.fit_loop.max_epochs = 4
    trainer.fit_loop.epoch_loop.max_steps = -1
    trainer.fit(module, *loaders)
    return plain([*notes, told(trainer)])


LOADERS = {
    "of known length": lambda: DataLoader(data(33), 8, shuffle=True),
    "a stream": lambda: DataLoader(Stream(), 8),
}
OPTIONS = {
    "plain": {},
    "twice an epoch": {"val_check_interval": 0.5},
    "over epochs": {"val_check_interval": 3, "check_val_every_n_epoch": None},
    "accumulated": {"accumulate_grad_batches": 2, "max_steps": 9},
}
ROWS = [
    (loader, options)
    for loader in LOADERS
    for options in OPTIONS
    if (loader, options) != ("a stream", "twice an epoch")
]


@pytest.mark.parametrize(("loader", "options"), ROWS)
def test_in_every_hook(loader, options, tmp_path, monkeypatch):
    check(lambda side: everywhere(side, LOADERS[loader], **OPTIONS[options]), tmp_path, monkeypatch)


def evaluated(side):
    notes = []

    class Steps(common(side)):
        def note_of(self, loop):
            notes.append([loop.max_batches, loop.num_dataloaders])

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            self.note_of(
                self.trainer.fit_loop.epoch_loop.val_loop
                if self.trainer.state.fn == "fit"
                else self.trainer.validate_loop
            )

        def test_step(self, batch, batch_idx, dataloader_idx=0):
            self.note_of(self.trainer.test_loop)

        def predict_step(self, batch, batch_idx, dataloader_idx=0):
            notes.append([*self.trainer.predict_loop.max_batches, self.trainer.predict_loop.current_batch_indices])

    several = [DataLoader(data(11), 5), DataLoader(data(9), 5), DataLoader(Stream(), 4)]
    loaders = [DataLoader(data(33), 8), several]
    module, trainer = fit(side, Steps, {"max_epochs": 1, "num_sanity_val_steps": 1, "limit_val_batches": 2}, loaders)
    trainer.validate(module, several, verbose=False)
    trainer.test(module, several[0], verbose=False)
    trainer.predict(module, several[1])
    return plain(notes)


def test_in_evaluations(tmp_path, monkeypatch):
    check(evaluated, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fit_loop.epoch_loop.manual_optimization", "trainer.global_step"),
        ("fit_loop.epoch_loop.batch_progress.current.completed", "use ready"),
        ("validate_loop.batch_progress", "batch_idx"),
        ("predict_loop.predictions", "trainer.predict"),
    ],
)
def test_what_is_not_here_says_what_to_use(name, says):
    there = here = OURS.Trainer()
    theirs = THEIRS.Trainer(logger=False, enable_checkpointing=False, enable_progress_bar=False)
    *path, last = name.split(".")
    for part in path:
        there, here = getattr(there, part), getattr(here, part)
        theirs = getattr(theirs, part)
    assert hasattr(theirs, last)
    with pytest.raises(AttributeError, match=says):
        getattr(here, last)


def test_an_epoch_is_not_set_by_its_counter():
    with pytest.raises(ConfigurationError, match="ckpt_path"):
        OURS.Trainer().fit_loop.epoch_progress.current.completed = 3


class Noisy(Stream):
    def __iter__(self):
        return ((x + torch.randn(4), y) for x, y in super().__iter__())


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_stream_goes_on_where_a_batch_was_drawn_ahead(accumulate, tmp_path):
    class Stops(OURS.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            if trainer.fit_loop.total_batch_idx == 5 and not trainer.is_last_batch:
                trainer.save_checkpoint(tmp_path / "half.ckpt")

    def train(**given):
        module = common(OURS)()
        trainer = OURS.Trainer(max_epochs=3, accumulate_grad_batches=accumulate, callbacks=[Stops()])
        trainer.fit(module, DataLoader(Noisy(), 8), **given)
        return module.calls, [p.sum().item() for p in module.parameters()]

    torch.manual_seed(3)
    losses, weights = train()
    assert train(ckpt_path=tmp_path / "half.ckpt") == (losses[6:], weights)


def public(owner):
    return {name for name in dir(owner) if not name.startswith("_")}


ELSEWHERE = {  # what scripts do not write: Lightning's own keys, Fabric's, and what needs another package
    *("CHECKPOINT_HYPER_PARAMS_KEY", "CHECKPOINT_HYPER_PARAMS_NAME", "CHECKPOINT_HYPER_PARAMS_TYPE"),
    *("remove_ignored_hparams", "device_mesh", "fabric", "to_tensorrt"),
}


@pytest.mark.parametrize("kind", ["Trainer", "Module", "DataModule", "Callback"])
def test_every_public_name_is_here(kind):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    options = quiet if kind == "Trainer" else {}
    ours, theirs = (getattr(side, kind)(**options) for side in (OURS, THEIRS))
    assert public(theirs) - public(ours) <= ELSEWHERE


@pytest.mark.parametrize("part", ["callbacks", "loggers", "profilers", "tuner"])
def test_each_class_is_here_or_says_what_to_use(part):
    theirs = importlib.import_module(f"lightning.pytorch.{part}")
    ours = importlib.import_module(f"ptmigrate.runtime.{part}") if part != "tuner" else runtime
    for name in getattr(theirs, "__all__", ["Tuner"]):
        try:
            assert isinstance(getattr(ours, name), type)
        except ImportError as error:
            assert str(error).startswith(f"{name!r} is not here: "), name


def test_a_script_for_lightning_needs_another_import_and_no_other_name():
    assert runtime.LightningModule is runtime.Module
    assert runtime.LightningDataModule is runtime.DataModule


def test_a_module_of_lightning_is_told():
    with pytest.raises(ConfigurationError, match=r"needs a Module of ptmigrate\.runtime"):
        OURS.Trainer().fit(common(THEIRS)(), DataLoader(data(), 8))
