"""Checkpoints of the best and the last, at epochs, at steps or after validation."""

from __future__ import annotations

import os
import re
from typing import Any

from .base import Callback
from .monitor import BETTER, WORST, checked_mode, current


class ModelCheckpoint(Callback):
    """Arguments as Lightning's. A file is whole or absent; one that is replaced goes only when its successor is
    there.
    """

    FILE_EXTENSION = ".ckpt"
    CHECKPOINT_NAME_LAST = "last"

    def __init__(
        self,
        dirpath: Any = None,
        filename: str | None = None,
        monitor: str | None = None,
        verbose: bool = False,
        save_last: bool | None = None,
        save_top_k: int = 1,
        save_weights_only: bool = False,
        mode: str = "min",
        auto_insert_metric_name: bool = True,
        every_n_train_steps: int | None = None,
        train_time_interval: Any = None,
        every_n_epochs: int | None = None,
        save_on_train_epoch_end: bool | None = None,
        enable_version_counter: bool = True,
    ):
        self.dirpath = os.fspath(dirpath) if dirpath is not None else None
        self.filename, self.monitor, self.verbose, self.save_last = filename, monitor, verbose, save_last
        self.save_top_k, self.save_weights_only, self.mode = save_top_k, save_weights_only, checked_mode(mode)
        self.auto_insert_metric_name = auto_insert_metric_name
        self.every_n_train_steps = every_n_train_steps or 0
        self.every_n_epochs = every_n_epochs if every_n_epochs is not None else 0 if every_n_train_steps else 1
        self.save_on_train_epoch_end = save_on_train_epoch_end
        self.best_k_models: dict[str, float] = {}
        self.best_model_path = ""
        self.best_model_score: float | None = None
        self.last_model_path = ""
        self._due = False

    @property
    def state_key(self) -> str:
        return f"ModelCheckpoint[{self.monitor},{self.mode},{self.every_n_train_steps},{self.every_n_epochs}]"

    def state_dict(self) -> dict[str, Any]:
        names = ("best_k_models", "best_model_path", "best_model_score", "last_model_path")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, value in state_dict.items():
            setattr(self, name, value)

    # -- when -----------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if self.dirpath is None:
            folder = getattr(trainer.logger, "log_dir", None) or trainer.default_root_dir
            self.dirpath = os.path.join(folder, "checkpoints")

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        every = self.every_n_train_steps
        if every and trainer.global_step % every == 0:
            self.save(trainer)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """In the middle of an epoch now; at its end when the epoch is complete, so that a resume begins with the
        next.
        """
        if trainer.state != "fit" or trainer.sanity_checking or not self.every_n_epochs:
            return
        if self.monitor is not None and not self.save_on_train_epoch_end and not trainer.fit_loop.at_epoch_end:
            self.save(trainer)

    def on_epoch_complete(self, trainer: Any, module: Any) -> None:
        if self.every_n_epochs and (trainer.current_epoch + 1) % self.every_n_epochs == 0:
            self.save(trainer)

    def last_there(self) -> str | None:
        """last.ckpt in the folder, by this process or an earlier one."""
        path = os.path.join(str(self.dirpath), self.CHECKPOINT_NAME_LAST + self.FILE_EXTENSION)
        return path if os.path.isfile(path) else None

    # -- what -----------------------------------------------------------------------------------------------------

    def save(self, trainer: Any) -> None:
        if trainer.fast_dev_run or (self.save_top_k == 0 and not self.save_last):
            return
        score = current(trainer, self.monitor) if self.monitor is not None else None
        if score is not None:
            score = trainer.runtime.broadcast(score)
        if self.save_top_k != 0:
            self._save_best(trainer, score)
        if self.save_last:
            self.last_model_path = os.path.join(str(self.dirpath), self.CHECKPOINT_NAME_LAST + self.FILE_EXTENSION)
            trainer.save_checkpoint(self.last_model_path, self.save_weights_only)

    def _save_best(self, trainer: Any, score: float | None) -> None:
        """Keep the k best (of the last values without a monitor), then remove what fell out."""
        rank = float(trainer.global_step) if score is None else score
        better = BETTER["max" if score is None else self.mode]
        full = 0 < self.save_top_k <= len(self.best_k_models)
        worst = self._worst(better) if full else None
        if worst is not None and not better(rank, self.best_k_models[worst]):
            return
        path = self.path_for(trainer)
        if worst is not None:
            del self.best_k_models[worst]
        self.best_k_models[path] = rank
        self.best_model_path = self._best(better)
        self.best_model_score = self.best_k_models[self.best_model_path] if score is not None else None
        trainer.save_checkpoint(path, self.save_weights_only)
        if worst is not None and worst != path and trainer.is_global_zero and os.path.exists(worst):
            os.unlink(worst)

    def _worst(self, better: Any) -> str:
        paths = list(self.best_k_models)
        worst = paths[0]
        for path in paths[1:]:
            if better(self.best_k_models[worst], self.best_k_models[path]):
                worst = path
        return worst

    def _best(self, better: Any) -> str:
        best, value = "", WORST["min" if better is BETTER["min"] else "max"]
        for path, score in self.best_k_models.items():
            if not best or better(score, value):
                best, value = path, score
        return best

    def path_for(self, trainer: Any) -> str:
        """The file for now; `-v1`, `-v2` where another of ours has the name."""
        values = {**trainer.callback_metrics, "epoch": trainer.current_epoch, "step": trainer.global_step}
        stem = self.format_name(self.filename or "{epoch}-{step}", values)
        path, version = os.path.join(str(self.dirpath), stem + self.FILE_EXTENSION), 0
        taken = trainer.runtime.broadcast(self._there())
        while path in taken:
            version += 1
            path = os.path.join(str(self.dirpath), f"{stem}-v{version}{self.FILE_EXTENSION}")
        return path

    def _there(self) -> list[str]:
        folder = str(self.dirpath)
        return [os.path.join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []

    def format_name(self, pattern: str, values: dict[str, Any]) -> str:
        """`{epoch}-{val_loss:.2f}` as `epoch=3-val_loss=0.12`; a metric that was not logged is 0."""

        def fill(match: re.Match) -> str:
            name, spec = match[1], match[2] or ""
            value = values.get(name, 0)
            number = float(value) if hasattr(value, "item") else value
            text = format(number, spec[1:])
            return f"{name}={text}" if self.auto_insert_metric_name else text

        return re.sub(r"{([^:{}]+)(:[^{}]*)?}", fill, pattern)
