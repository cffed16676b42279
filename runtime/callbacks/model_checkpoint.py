"""Checkpoints of the best and the last: at the ends of epochs, after validation, every so many steps or minutes."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import torch

from ..arguments import checked_time
from ..errors import ConfigurationError, unknown_name
from .base import Callback
from .best import Best
from .monitor import checked_mode
from .names import free_path, stem


class ModelCheckpoint(Callback):
    """Arguments as Lightning's. A file is whole or absent; one that is replaced goes only when its successor is
    there.
    """

    watches_metrics = True
    FILE_EXTENSION = ".ckpt"
    CHECKPOINT_NAME_LAST = "last"

    def __init__(
        self,
        dirpath: Any = None,
        filename: str | None = None,
        monitor: str | None = None,
        verbose: bool = False,
        save_last: bool | str | None = None,
        save_top_k: int = 1,
        save_weights_only: bool = False,
        mode: str = "min",
        auto_insert_metric_name: bool = True,
        every_n_train_steps: int | None = None,
        train_time_interval: Any = None,
        every_n_epochs: int | None = None,
        save_on_train_epoch_end: bool | None = None,
        enable_version_counter: bool = True,
        save_on_exception: bool = False,
    ):
        if save_top_k < -1:
            raise ConfigurationError(f"save_top_k={save_top_k}: -1 (all), 0 (none) or a number of files is needed")
        if monitor is None and save_top_k > 1:
            raise ConfigurationError(f"save_top_k={save_top_k} needs a monitor; without one, -1, 0 or 1")
        for name, every in (("every_n_train_steps", every_n_train_steps), ("every_n_epochs", every_n_epochs)):
            if every is not None and every < 0:
                raise ConfigurationError(f"{name}={every}: a number from 0 (never) up is needed")
        if every_n_train_steps and (every_n_epochs or train_time_interval):
            raise ConfigurationError("every_n_train_steps, every_n_epochs and train_time_interval: give one of them")
        self.dirpath = os.path.abspath(os.fspath(dirpath)) if dirpath is not None else None
        self.filename, self.monitor, self.verbose, self.save_last = filename, monitor, verbose, save_last
        self.save_top_k, self.save_weights_only, self.mode = save_top_k, save_weights_only, checked_mode(mode)
        self.auto_insert_metric_name, self.enable_version_counter = auto_insert_metric_name, enable_version_counter
        self.every_n_train_steps = every_n_train_steps or 0
        self.train_time_interval = checked_time(train_time_interval, "train_time_interval")
        others = every_n_train_steps is not None or train_time_interval is not None
        self.every_n_epochs = every_n_epochs if every_n_epochs is not None else 0 if others else 1
        self.save_on_train_epoch_end, self.save_on_exception = save_on_train_epoch_end, save_on_exception
        self.best = Best(save_top_k, mode)
        self.best_model_path = self.last_model_path = ""
        self.current_score: torch.Tensor | None = None  # of the last checkpoint
        self._saved_at = 0  # the global step of the last checkpoint
        self._saved = ""
        self._waiting = False  # for a metric that validation brings
        self._due = False  # when the epoch is complete
        self._clock = 0.0

    # -- Lightning's names ----------------------------------------------------------------------------------------

    @property
    def state_key(self) -> str:
        return f"ModelCheckpoint[{self.monitor},{self.mode},{self.every_n_train_steps},{self.every_n_epochs}]"

    @property
    def best_k_models(self) -> dict[str, torch.Tensor]:
        return {path: torch.tensor(score) for path, score in self.best.scores.items()}

    @property
    def best_model_score(self) -> torch.Tensor | None:
        return torch.tensor(self.best.scores[self.best_model_path]) if self.best.scores else None

    @property
    def kth_best_model_path(self) -> str:
        return self.best.worst() if self.best.full or (self.best.scores and self.save_top_k == -1) else ""

    def state_dict(self) -> dict[str, Any]:
        names = ("best_model_path", "last_model_path", "dirpath")
        return {**{name: getattr(self, name) for name in names}, "best_k_models": dict(self.best.scores)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What another folder holds is not this run's to remove."""
        self.best_model_path = state_dict["best_model_path"]
        if state_dict.get("dirpath", self.dirpath) == self.dirpath:
            self.last_model_path = state_dict["last_model_path"]
            self.best.scores = dict(state_dict["best_k_models"])

    # -- when -----------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if self.dirpath is None:
            folder = folder_of(trainer.logger, trainer.default_root_dir)
            self.dirpath = os.path.join(trainer.runtime.broadcast(os.path.abspath(folder)), "checkpoints")

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._clock = time.monotonic()

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        every, seconds = self.every_n_train_steps, self.train_time_interval
        if not (every and trainer.global_step % every == 0):
            if seconds is None or not trainer.runtime.broadcast(time.monotonic() - self._clock >= seconds):
                return
            self._clock = time.monotonic()
        if self.monitor is not None and (self.monitor not in trainer.callback_metrics or self._comes_anew(trainer)):
            self._waiting = True
        else:
            self.save(trainer, last=True)

    def _comes_anew(self, trainer: Any) -> bool:
        """Does a validation follow this batch, whose value is the one to wait for?"""
        validates = trainer.enable_validation and trainer.fit_loop.pace.this_epoch()
        return validates and not self._after_training(trainer) and trainer.is_last_batch

    @property
    def asks_for_last(self) -> bool:
        """Must be known whether a batch is the last one, also of a loader without a length?"""
        return self.monitor is not None and bool(self.every_n_train_steps or self.train_time_interval is not None)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """In the middle of an epoch now; at its end when the epoch is complete, so that a resume begins with the
        next.
        """
        if trainer.state != "fit" or trainer.sanity_checking:
            return
        if self._waiting or (not self._after_training(trainer) and self._epoch_counts(trainer)):
            if trainer.fit_loop.at_epoch_end:
                self._due = True
            else:
                self.save(trainer, last=self._waiting)
                self._waiting = False

    def on_epoch_complete(self, trainer: Any, module: Any) -> None:
        if self._due or (self._after_training(trainer) and self._epoch_counts(trainer)):
            self.save(trainer, last=self._waiting)
            self._due = self._waiting = False

    def on_train_end(self, trainer: Any, module: Any) -> None:
        if self.save_last and not self._saved_at and not trainer.fast_dev_run:
            self._save_last(trainer, self._values(trainer))

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """One process alone writes what it has; several cannot count on each other any more."""
        alone = trainer.world_size == 1 and trainer.state == "fit" and not trainer.sanity_checking
        if self.save_on_exception and alone and self._saved_at != trainer.global_step:
            self._write(trainer, free_path(self, trainer, self._values(trainer), None))

    def last_there(self) -> str | None:
        """last.ckpt in the folder, by this process or an earlier one."""
        path = os.path.join(str(self.dirpath), self.CHECKPOINT_NAME_LAST + self.FILE_EXTENSION)
        return path if os.path.isfile(path) else None

    def _epoch_counts(self, trainer: Any) -> bool:
        return bool(self.every_n_epochs) and (trainer.current_epoch + 1) % self.every_n_epochs == 0

    def _after_training(self, trainer: Any) -> bool:
        """At the end of the epoch, and not after each validation?"""
        if self.save_on_train_epoch_end is not None:
            return self.save_on_train_epoch_end
        if trainer.val_check_seconds is not None or trainer.check_val_every_n_epoch != 1:
            return False
        return not trainer.enable_validation or trainer.val_check_interval == 1.0

    # -- what -----------------------------------------------------------------------------------------------------

    def save(self, trainer: Any, last: bool = False) -> None:
        """`last`: the last one is written also where it is none of the best, as at every so many steps."""
        if trainer.fast_dev_run or self._saved_at == trainer.global_step:
            return
        values = self._values(trainer)
        if self.save_top_k != 0:
            self._save_best(trainer, values)
        if self.save_last and (last or self._saved_at == trainer.global_step):
            self._save_last(trainer, values)

    def _values(self, trainer: Any) -> dict[str, Any]:
        """What was logged, and where the run stands, unless the module logs an epoch or a step of its own."""
        logged, stands = trainer.callback_metrics, {"epoch": trainer.current_epoch, "step": trainer.global_step}
        return {**logged, **{name: int(logged.get(name, number)) for name, number in stands.items()}}

    def _save_best(self, trainer: Any, values: dict[str, Any]) -> None:
        """Keep the k best, or the last without a monitor; then remove what fell out."""
        if self.monitor is None:
            replaced = self.best_model_path
            self.best_model_path = free_path(self, trainer, values, replaced)
            self._write(trainer, self.best_model_path)
            if self.save_top_k == 1:
                self._remove(trainer, replaced, self.best_model_path)
            return
        if self.monitor not in values:
            self._not_there(trainer)
            return
        score = trainer.runtime.broadcast(float(values[self.monitor]))
        if not self.best.wants(score):
            return
        self.current_score = torch.tensor(score)
        fell_out = self.best.make_room()
        path = free_path(self, trainer, values, fell_out)
        self.best.add(path, score)
        self.best_model_path = self.best.first()
        if self.verbose:
            trainer.print(f"{self.monitor}={score:.5f}: saving {path}")
        self._write(trainer, path)
        self._remove(trainer, fell_out, path)

    def _not_there(self, trainer: Any) -> None:
        """The monitored value was not logged: a warning while a validation may still bring it."""
        error = unknown_name("metric to monitor", str(self.monitor), trainer.callback_metrics)
        if trainer.fit_loop.validation.has_run:
            raise error
        until = " until the first validation" if trainer.enable_validation else ""
        warnings.warn(f"ModelCheckpoint writes nothing{until}: {error}", stacklevel=2)

    def _save_last(self, trainer: Any, values: dict[str, Any]) -> None:
        before = self.last_model_path
        self.last_model_path = free_path(self, trainer, values, before, self.CHECKPOINT_NAME_LAST)
        if self.save_last == "link" and self._saved:
            link(trainer, self._saved, self.last_model_path)
        else:
            trainer.save_checkpoint(self.last_model_path, self.save_weights_only)
            self._saved_at = trainer.global_step
            self._tell_loggers(trainer)
        self._remove(trainer, before, self.last_model_path)

    def _write(self, trainer: Any, path: str) -> None:
        trainer.save_checkpoint(path, self.save_weights_only)
        self._saved_at, self._saved = trainer.global_step, path
        self._tell_loggers(trainer)

    def _tell_loggers(self, trainer: Any) -> None:
        for logger in trainer.loggers if trainer.is_global_zero else ():
            if hasattr(logger, "after_save_checkpoint"):
                logger.after_save_checkpoint(self)

    def _remove(self, trainer: Any, path: str | None, successor: str) -> None:
        """Only what lies in our folder, and is not what the fit was resumed from."""
        if not path or path == successor or not trainer.is_global_zero:
            return
        resumed = trainer.ckpt_path
        ours = os.path.commonpath([os.path.abspath(path), str(self.dirpath)]) == str(self.dirpath)
        if ours and not (resumed and os.path.abspath(resumed) == os.path.abspath(path)) and os.path.lexists(path):
            os.unlink(path)

    def format_checkpoint_name(self, metrics: dict[str, Any], filename: str | None = None, ver: Any = None) -> str:
        """The path of a checkpoint with these values, whether there is one or not."""
        name = stem(filename or self.filename, metrics, self.auto_insert_metric_name)
        version = "" if ver is None else f"-v{ver}"
        return os.path.join(str(self.dirpath or ""), f"{name}{version}{self.FILE_EXTENSION}")


def folder_of(logger: Any, root: str) -> str:
    """Where a logger writes, or would by its name and version; `root` where there is none."""
    if logger is None or getattr(logger, "log_dir", None):
        return root if logger is None else logger.log_dir
    name, version = getattr(logger, "name", None), getattr(logger, "version", None)
    if name is None or version is None:
        return root
    version = version if isinstance(version, str) else f"version_{version}"
    return os.path.join(getattr(logger, "save_dir", None) or root, str(name), version)


def link(trainer: Any, target: str, path: str) -> None:
    """`path` as a symbolic link to `target`, put in place in one move."""
    if trainer.is_global_zero and os.path.abspath(target) != os.path.abspath(path):
        beside = f"{path}.{os.getpid()}.link"
        os.symlink(os.path.relpath(target, os.path.dirname(path)), beside)
        os.replace(beside, path)
    trainer.runtime.barrier()
