"""What a Trainer tells about where it is, under Lightning's names."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from .callbacks import EarlyStopping, ModelCheckpoint
from .data import length_of
from .evaluate import as_list, at_most, filled, number_of_batches
from .loop_names import EvaluationNames
from .ranks import Ranks

if TYPE_CHECKING:
    from .fit import FitLoop
    from .handle import Runtime
    from .metrics import Logs
    from .metrics.published import Published
    from .module import Module


class Whereabouts(Ranks):
    """Read-only; everything here follows from the runtime, the fit loop and the logs."""

    runtime: Runtime
    fit_loop: FitLoop
    logs: Logs
    module: Module | None
    loggers: list[Any]
    callbacks: list[Any]
    state: str
    metrics: Published
    limits: dict[str, Any]
    divides: bool
    whole: bool
    num_sanity_val_steps: int
    sanity_checking: bool
    progress: Any
    default_root_dir: str
    val_dataloaders: Any
    test_dataloaders: Any
    predict_dataloaders: Any

    # -- where am I -----------------------------------------------------------------------------------------------

    @property
    def node_rank(self) -> int:
        return self.runtime.place.node_rank

    @property
    def num_devices(self) -> int:
        return len(self.runtime.settings.numbers)

    @property
    def num_nodes(self) -> int:
        return self.runtime.settings.nodes

    @property
    def device_ids(self) -> list[int]:
        return list(self.runtime.settings.numbers)

    @property
    def strategy(self) -> Any:
        return self.runtime.strategy

    @property
    def precision(self) -> str:
        return self.runtime.precision.name

    @property
    def model(self) -> Module | None:
        return self.module

    lightning_module = model

    @property
    def current_epoch(self) -> int:
        return self.fit_loop.epoch

    @property
    def global_step(self) -> int:
        return self.fit_loop.global_step

    @property
    def num_training_batches(self) -> float:
        """Batches of an epoch on this rank; infinite while unknown."""
        return self.fit_loop.max_batches

    @property
    def estimated_stepping_batches(self) -> float:
        return self.fit_loop.estimated_steps()

    @property
    def num_val_batches(self) -> list[float]:
        """Of each loader, as far as its limit goes; infinite while unknown."""
        return self._evaluated("validate", self.val_dataloaders)

    @property
    def cuts_batches(self) -> bool:
        """Has each rank a part of every training batch?"""
        return self.runtime.global_batch and self.world_size > 1 and not self.whole

    @property
    def validates_whole(self) -> bool:
        """Does every rank validate with every batch, in a fit?"""
        if not self.divides or self.state != "fit" or self.module is None:
            return False
        return not self.module.divide_validation or (self.fit_loop.validation_draws.whole and self.cuts_batches)

    @property
    def val_check_batch(self) -> float | None:
        """Batches between two validations; infinite where an epoch's length is unknown, None before a fit."""
        pace = getattr(self.fit_loop, "pace", None)
        return pace.between if pace is not None else None

    @property
    def validate_loop(self) -> EvaluationNames:
        return EvaluationNames(self, "validate")  # type: ignore[arg-type]

    @property
    def test_loop(self) -> EvaluationNames:
        return EvaluationNames(self, "test")  # type: ignore[arg-type]

    @property
    def predict_loop(self) -> EvaluationNames:
        return EvaluationNames(self, "predict")  # type: ignore[arg-type]

    @property
    def callback_metrics(self) -> dict[str, Any]:
        """The last value of every name: of the step while an epoch runs, of the epoch when it has ended. Tensors."""
        self.metrics.take_step_values()
        return self.metrics.callback

    @property
    def logged_metrics(self) -> dict[str, Any]:
        """What the loggers get, as tensors."""
        self.metrics.take_step_values()
        return self.metrics.logged

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        """What was logged with `prog_bar=True`."""
        self.metrics.take_step_values()
        return self.metrics.bar

    @property
    def log_dir(self) -> str | None:
        """Where the first logger writes; without one, default_root_dir."""
        return getattr(self.logger, "log_dir", None) or self.default_root_dir

    @property
    def limit_train_batches(self) -> float:
        return _limit(self.limits["train"])

    @property
    def limit_val_batches(self) -> float:
        return _limit(self.limits["validate"])

    @property
    def limit_test_batches(self) -> float:
        return _limit(self.limits["test"])

    @property
    def limit_predict_batches(self) -> float:
        return _limit(self.limits["predict"])

    @property
    def num_sanity_val_batches(self) -> list[float]:
        steps = math.inf if self.num_sanity_val_steps == -1 else self.num_sanity_val_steps
        return [min(steps, batches) for batches in self.num_val_batches]

    @property
    def num_test_batches(self) -> list[float]:
        return self._evaluated("test", self.test_dataloaders)

    @property
    def num_predict_batches(self) -> list[float]:
        return self._evaluated("predict", self.predict_dataloaders)

    def _evaluated(self, stage: str, loaders: Any) -> list[float]:
        limit = self.limits[stage]
        return [at_most(number_of_batches(each, limit), length_of(each)) for each in as_list(loaders)]

    @property
    def enable_validation(self) -> bool:
        """Is there something to validate with, and a step for it?"""
        there = self.val_dataloaders is not None and self.limits["validate"] != 0
        return there and self.module is not None and filled(self.module, "validation_step")

    @property
    def evaluating(self) -> bool:
        return self.validating or self.testing or self.sanity_checking

    @property
    def scaler(self) -> Any:
        return self.runtime.precision.scaler

    @property
    def precision_plugin(self) -> Any:
        return self.runtime.precision

    @property
    def progress_bar_callback(self) -> Any:
        return self.progress

    @property
    def distributed_sampler_kwargs(self) -> dict[str, int]:
        """For a script that divides its data itself."""
        return {"num_replicas": self.world_size, "rank": self.global_rank}

    def init_module(self, empty_init: bool | None = None) -> AbstractContextManager:
        """Inside, modules are made on this process's device."""
        return torch.device(self.runtime.device)

    @property
    def accelerator(self) -> str:
        return self.runtime.settings.kind

    @property
    def checkpoint_callbacks(self) -> list[ModelCheckpoint]:
        return [callback for callback in self.callbacks if isinstance(callback, ModelCheckpoint)]

    @property
    def checkpoint_callback(self) -> ModelCheckpoint | None:
        return next(iter(self.checkpoint_callbacks), None)

    @property
    def early_stopping_callback(self) -> EarlyStopping | None:
        return next((callback for callback in self.callbacks if isinstance(callback, EarlyStopping)), None)

    @property
    def early_stopping_callbacks(self) -> list[EarlyStopping]:
        return [callback for callback in self.callbacks if isinstance(callback, EarlyStopping)]

    @property
    def training(self) -> bool:
        return self.state == "fit" and self.logs.training and not self.sanity_checking

    @property
    def validating(self) -> bool:
        within_fit = self.state == "fit" and not self.logs.training and not self.sanity_checking
        return self.state == "validate" or within_fit

    @property
    def testing(self) -> bool:
        return self.state == "test"

    @property
    def predicting(self) -> bool:
        return self.state == "predict"

    @property
    def logger(self) -> Any:
        return self.loggers[0] if self.loggers else None


def _limit(limit: float | None) -> float:
    return 1.0 if limit is None else limit
