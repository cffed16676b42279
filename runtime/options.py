"""What a Trainer was asked for, checked, under Lightning's names."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from . import arguments
from .errors import ConfigurationError


class Options:
    """Taken once, from the Trainer's arguments; those that choose devices are the runtime's."""

    max_epochs: int
    limits: dict[str, Any]

    def take_options(self, asked: SimpleNamespace) -> None:
        """`asked`: an attribute for each argument of Trainer, which short ways (fast_dev_run) change."""
        if asked.amp_backend not in (None, "native"):
            raise ConfigurationError(f"amp_backend={asked.amp_backend!r} is not in this version; use 'native'")
        self._take_short_ways(asked)
        self._take_length(asked)
        self._take_data(asked)
        self._take_step(asked)
        self._take_validation(asked)
        self.deterministic, self.benchmark, self.detect_anomaly = (
            asked.deterministic,
            asked.benchmark,
            asked.detect_anomaly,
        )
        self.back_on_cpu = asked.back_on_cpu  # when a run has ended, as Lightning's strategies leave their modules
        self.default_root_dir = os.getcwd() if asked.default_root_dir is None else os.fspath(asked.default_root_dir)
        self.resume_from_checkpoint = asked.resume_from_checkpoint
        self.enable_autolog_hparams = asked.enable_autolog_hparams
        self.summarizes = bool(asked.enable_model_summary)
        logs_every = arguments.checked_count("log_every_n_steps", asked.log_every_n_steps, 0)
        self.log_every_n_steps = 50 if logs_every is None else logs_every

    def _take_short_ways(self, asked: SimpleNamespace) -> None:
        """Arguments that stand for several others."""
        self.fast_dev_run, self.overfit_batches = asked.fast_dev_run, asked.overfit_batches
        self.barebones = asked.barebones
        if asked.barebones:
            arguments.check_barebones(asked)
        if asked.barebones or asked.fast_dev_run:
            asked.logger = asked.enable_checkpointing = False
        if asked.fast_dev_run:
            batches = int(asked.fast_dev_run)
            asked.max_epochs, asked.max_steps = 1, batches
            asked.limit_train_batches = asked.limit_val_batches = asked.limit_test_batches = batches
            asked.limit_predict_batches = batches
            asked.val_check_interval, asked.check_val_every_n_epoch, asked.num_sanity_val_steps = 1.0, 1, 0
        if asked.overfit_batches:
            asked.limit_train_batches = asked.limit_val_batches = asked.overfit_batches

    def _take_length(self, asked: SimpleNamespace) -> None:
        """Epochs, steps and time."""
        self.max_steps = -1 if asked.max_steps is None else asked.max_steps
        self.max_epochs = arguments.epochs(asked.max_epochs, self.max_steps, asked.max_time)
        self.min_steps = asked.min_steps
        self.min_epochs = arguments.first_epochs(asked.min_epochs, asked.min_steps)
        self.max_time = arguments.checked_time(asked.max_time)

    def _take_data(self, asked: SimpleNamespace) -> None:
        """Loaders: how much of them, and who divides them."""
        names = {"train": "train", "validate": "val", "test": "test", "predict": "predict"}
        limits = {stage: f"limit_{name}_batches" for stage, name in names.items()}
        self.limits = {stage: arguments.checked_limit(name, getattr(asked, name)) for stage, name in limits.items()}
        self.divides = asked.use_distributed_sampler and asked.replace_sampler_ddp
        self.whole = False  # in this fit every process computes every batch whole
        self.multiple_trainloader_mode = asked.multiple_trainloader_mode
        self.prepare_data_per_node = asked.prepare_data_per_node
        every = arguments.checked_count("reload_dataloaders_every_n_epochs", asked.reload_dataloaders_every_n_epochs, 0)
        self.reload_dataloaders_every_n_epochs = every or 0

    def _take_step(self, asked: SimpleNamespace) -> None:
        """Accumulation and clipping."""
        self.accumulation_table = arguments.checked_accumulation(asked.accumulate_grad_batches)
        self.gradient_clip_val = arguments.checked_clipping(asked.gradient_clip_val)
        algorithm = asked.gradient_clip_algorithm
        self.gradient_clip_algorithm = algorithm and arguments.checked_algorithm(algorithm)

    def _take_validation(self, asked: SimpleNamespace) -> None:
        self.val_check_interval, self.val_check_seconds = arguments.interval(asked.val_check_interval)
        every = asked.check_val_every_n_epoch
        self.check_val_every_n_epoch = arguments.checked_count("check_val_every_n_epoch", every, 1)
        if every is None and isinstance(asked.val_check_interval, float):
            raise ConfigurationError(
                "check_val_every_n_epoch=None counts batches over epochs: give val_check_interval as a number of them"
            )
        sanity = asked.num_sanity_val_steps
        self.num_sanity_val_steps = arguments.checked_count("num_sanity_val_steps", sanity, -1) or 0
        self.inference_mode = asked.inference_mode
