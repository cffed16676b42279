"""Averages of the weights over the steps of a fit, which are validated, saved, and what the module has in the end.

Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, UAI 2018.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel

from ..errors import ConfigurationError
from .base import Callback

PREFIX = "module."  # of AveragedModel's


class WeightAveraging(Callback):
    """`kwargs` (avg_fn, multi_avg_fn) are AveragedModel's; by default all steps count alike. `use_buffers`: averaged,
    too, and not copied. `device`: where the average is kept.
    """

    def __init__(self, device: Any = None, use_buffers: bool = True, **kwargs: Any):
        self.device = torch.device(device) if isinstance(device, str) else device
        self.use_buffers, self.options = use_buffers, kwargs
        self.average: AveragedModel | None = None
        self.latest_update_step, self.latest_update_epoch = 0, -1

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Asked with the number of each optimizer step, and with that of each epoch at its end, both from 0."""
        return step_idx is not None

    # -- hooks ----------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage != "fit":
            return
        module.configure_model()
        module.trainer = None  # the copy has none
        try:
            self.average = AveragedModel(module, self.device, use_buffers=self.use_buffers, **self.options)
        finally:
            module.trainer = trainer
        self.average.to(self.device or trainer.strategy.root_device)

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        check_whole(self, self.pairs(module), trainer)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        steps = trainer.global_step
        if steps > self.latest_update_step and self.should_update(step_idx=steps - 1):
            self.average.update_parameters(module)  # type: ignore[union-attr]
            self.latest_update_step = steps

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        epoch = trainer.current_epoch
        if epoch > self.latest_update_epoch and self.should_update(epoch_idx=epoch):
            self.average.update_parameters(module)  # type: ignore[union-attr]
            self.latest_update_epoch = epoch

    def on_train_end(self, trainer: Any, module: Any) -> None:
        for mine, current in self.pairs(module):
            current.data.copy_(mine.data)

    def on_validation_epoch_start(self, trainer: Any, module: Any) -> None:
        self.swap(module)

    def on_validation_epoch_end(self, trainer: Any, module: Any) -> None:
        self.swap(module)

    def swap(self, module: Any) -> None:
        for mine, current in self.pairs(module):
            kept = current.data.clone()
            current.data.copy_(mine.data)
            mine.data.copy_(kept)

    def pairs(self, module: Any) -> Any:
        """(of the average, of the module): parameters and buffers; none outside of a fit."""
        if self.average is None:
            return ()
        mine = self.average.module
        return zip(chain(mine.parameters(), mine.buffers()), chain(module.parameters(), module.buffers()), strict=True)

    # -- checkpoints: the average is the state_dict, and what goes on training stands beside it ---------------------

    def state_dict(self) -> dict[str, Any]:
        return {"latest_update_step": self.latest_update_step, "latest_update_epoch": self.latest_update_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.latest_update_step = state_dict["latest_update_step"]
        self.latest_update_epoch = state_dict.get("latest_update_epoch", -1)

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        if self.average is not None:
            state = self.average.state_dict()
            checkpoint["current_model_state"] = checkpoint["state_dict"]
            checkpoint["state_dict"] = {k.removeprefix(PREFIX): v for k, v in state.items() if k.startswith(PREFIX)}
            checkpoint["averaging_state"] = {k: v for k, v in state.items() if not k.startswith(PREFIX)}

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        if self.average is not None:
            state = {PREFIX + name: value for name, value in checkpoint["state_dict"].items()}
            counted = checkpoint.get("averaging_state", {"n_averaged": self.average.n_averaged})
            self.average.load_state_dict(state | counted)
            module.load_state_dict(checkpoint.get("current_model_state", checkpoint["state_dict"]))


class EMAWeightAveraging(WeightAveraging):
    """The exponential moving average: `decay` times what it was, and the rest of what the weights are, every
    `update_every_n_steps` from a step on, or at the end of every epoch from one on.
    """

    def __init__(
        self,
        device: Any = None,
        use_buffers: bool = True,
        decay: float = 0.999,
        update_every_n_steps: int = 1,
        update_starting_at_step: int | None = None,
        update_starting_at_epoch: int | None = None,
        **kwargs: Any,
    ):
        if not 0 <= decay <= 1:
            raise ConfigurationError(f"decay={decay}: a share from 0 to 1 is needed")
        super().__init__(device, use_buffers, avg_fn=partial(moving_average, decay=decay), **kwargs)
        self.update_every_n_steps, self.update_starting_at_step = update_every_n_steps, update_starting_at_step
        self.update_starting_at_epoch = update_starting_at_epoch

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        if step_idx is not None:
            every, first = self.update_every_n_steps, self.update_starting_at_step or 0
            return every > 0 and step_idx >= first and step_idx % every == 0
        return self.update_starting_at_epoch is not None and epoch_idx >= self.update_starting_at_epoch  # type: ignore


def moving_average(average: torch.Tensor, current: torch.Tensor, averaged: Any, decay: float) -> torch.Tensor:
    return decay * average + (1 - decay) * current


def check_whole(callback: Any, pairs: Iterable[tuple[Any, Any]], trainer: Any) -> None:
    """Raise ConfigurationError where one of `pairs`, of a copy's parameters and the module's, is an engine's part."""
    if any(type(mine) is not type(current) or mine.shape != current.shape for mine, current in pairs):
        raise ConfigurationError(
            f"{type(callback).__name__} needs whole parameters, and strategy {trainer.strategy.name!r} divides them"
        )
