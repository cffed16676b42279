"""What `predict` gave, to files of the user's: while it runs, or at its end."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from .base import Callback

INTERVALS = ("batch", "epoch", "batch_and_epoch")


class BasePredictionWriter(Callback):
    """Fill `write_on_batch_end`, `write_on_epoch_end` or both, as `write_interval` says. Each rank writes what it has
    computed; `batch_indices` are the numbers of the samples in the data set, None where the loader has no numbers.
    """

    def __init__(self, write_interval: str = "batch"):
        if write_interval not in INTERVALS:
            raise ConfigurationError(f"write_interval={write_interval!r}: {', '.join(INTERVALS)}")
        self.interval = write_interval
        self._indices: list[list[Any]] = []
        self._predictions: list[list[Any]] = []

    def write_on_batch_end(
        self,
        trainer: Any,
        module: Any,
        prediction: Any,
        batch_indices: list[int] | None,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int,
    ) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no write_on_batch_end")

    def write_on_epoch_end(self, trainer: Any, module: Any, predictions: Any, batch_indices: list[Any]) -> None:
        """`predictions`: a list, or a list a loader if several; `batch_indices`: always a list a loader."""
        raise NotImplementedError(f"{type(self).__name__} has no write_on_epoch_end")

    def on_predict_start(self, trainer: Any, module: Any) -> None:
        self._indices, self._predictions = [], []

    def on_predict_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        indices = trainer.batch_indices
        if self.interval != "epoch":
            self.write_on_batch_end(trainer, module, outputs, indices, batch, batch_idx, dataloader_idx)
        if self.interval != "batch":
            while len(self._indices) <= dataloader_idx:
                self._indices.append([])
                self._predictions.append([])
            self._indices[dataloader_idx].append(indices)
            self._predictions[dataloader_idx].append(outputs)

    def on_predict_epoch_end(self, trainer: Any, module: Any) -> None:
        if self.interval != "batch":
            several = len(self._predictions) != 1
            predictions = self._predictions if several else self._predictions[0]
            self.write_on_epoch_end(trainer, module, predictions, self._indices)
        self._indices, self._predictions = [], []
