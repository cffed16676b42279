"""The mean of the weights over the last epochs, which have a learning rate of their own; batch norm measures it last.

Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, UAI 2018.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import SWALR

from ..errors import ConfigurationError
from ..optimizers import SchedulerConfig
from .averaging import check_whole
from .base import Callback


def running_mean(average: torch.Tensor, current: torch.Tensor, averaged: torch.Tensor) -> torch.Tensor:
    return average + (current - average) / (averaged + 1)


class StochasticWeightAveraging(Callback):
    """Arguments as Lightning's: averaging begins with epoch `swa_epoch_start` (from 1, or as a share of max_epochs), at
    learning rates that move to `swa_lrs` over `annealing_epochs`. One epoch more, without steps, measures batch norm.
    """

    def __init__(
        self,
        swa_lrs: float | list[float],
        swa_epoch_start: float = 0.8,
        annealing_epochs: int = 10,
        annealing_strategy: str = "cos",
        avg_fn: Callable[..., torch.Tensor] | None = None,
        device: Any = "cpu",
    ):
        least, most = (0.0, 1.0) if isinstance(swa_epoch_start, float) else (1, float("inf"))
        if not least <= swa_epoch_start <= most:
            raise ConfigurationError(f"swa_epoch_start={swa_epoch_start}: an epoch from 1 up, or a share up to 1.0")
        rates = swa_lrs if isinstance(swa_lrs, list) else [swa_lrs]
        if not all(isinstance(rate, float) and rate > 0 for rate in rates):
            raise ConfigurationError(f"swa_lrs={swa_lrs!r}: a float above 0, or a list of them, is needed")
        self.rates, self.start, self.device = swa_lrs, swa_epoch_start, device
        self.annealing_epochs, self.annealing_strategy = annealing_epochs, annealing_strategy
        self.avg_fn = avg_fn or running_mean
        self.average: Any = None
        self.n_averaged: torch.Tensor | None = None
        self.latest_update_epoch = -1
        self.schedule: SWALR | None = None
        self.max_epochs = -1
        self.measured: dict[Any, float | None] = {}  # batch norms with their momentum, while they are measured anew
        self.accumulation: dict[int, int] | None = None

    @property
    def swa_start(self) -> int:
        return max(int(self.start) - 1, 0)

    # -- hooks ----------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            self.average = copy.deepcopy(module)

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        if len(trainer.optimizers) != 1 or len(trainer.lr_scheduler_configs) > 1:
            raise ConfigurationError("StochasticWeightAveraging needs one optimizer, and one scheduler at most")
        pairs = zip(self.average.parameters(), module.parameters(), strict=True)
        check_whole(self, pairs, trainer)
        self.max_epochs = trainer.max_epochs
        if isinstance(self.start, float):
            if self.max_epochs == -1:
                raise ConfigurationError(f"swa_epoch_start={self.start}: a share of max_epochs, which is not given")
            self.start = int(self.max_epochs * self.start)
        if self.max_epochs != -1 and self.swa_start >= self.max_epochs:
            raise ConfigurationError(f"swa_epoch_start={self.start} is beyond max_epochs={self.max_epochs}")
        if self.max_epochs != -1 and any(isinstance(part, _BatchNorm) for part in module.modules()):
            if trainer.fit_loop.length is None:
                raise ConfigurationError("StochasticWeightAveraging measures batch norm over a loader with a length")
            trainer.max_epochs += 1

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        epoch = trainer.current_epoch
        within = epoch >= self.swa_start and (self.max_epochs == -1 or epoch < self.max_epochs)
        if within and self.schedule is None:
            self.take_schedule(trainer)
        if within and epoch > self.latest_update_epoch:
            self.update(module)
            self.latest_update_epoch = epoch
        if epoch == self.max_epochs:
            self.transfer(module)
            self.measure(trainer, module)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        trainer.max_epochs = self.max_epochs
        if self.accumulation is not None:
            trainer.accumulation_table, self.accumulation = self.accumulation, None
            for norm, momentum in self.measured.items():
                norm.momentum = momentum
        elif self.max_epochs in (-1, trainer.current_epoch) and self.n_averaged is not None:
            self.transfer(module)

    # -- what they do ---------------------------------------------------------------------------------------------

    def take_schedule(self, trainer: Any) -> None:
        """The schedule of this callback in the place of the module's."""
        [optimizer] = trainer.optimizers
        rates = self.rates if isinstance(self.rates, list) else [self.rates] * len(optimizer.param_groups)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["initial_lr"] = rate
        last = trainer.max_epochs if self.annealing_strategy == "cos" else -1
        self.schedule = SWALR(optimizer, rates, self.annealing_epochs, self.annealing_strategy, last)  # type: ignore[arg-type]
        trainer.lr_scheduler_configs[:] = [SchedulerConfig(self.schedule)]

    def update(self, module: Any) -> None:
        if self.n_averaged is None:
            self.average.to(self.device or module.device)
            self.n_averaged = torch.tensor(0)
        for mine, current in zip(self.average.parameters(), module.parameters(), strict=True):
            there = current.detach().to(mine.device)
            mine.data.copy_(self.avg_fn(mine.detach(), there, self.n_averaged) if self.n_averaged else there)
        self.n_averaged += 1

    def transfer(self, module: Any) -> None:
        for mine, current in zip(self.average.parameters(), module.parameters(), strict=True):
            current.data.copy_(mine.data)

    def measure(self, trainer: Any, module: Any) -> None:
        """This epoch is no training: batch norm measures the averaged weights, and goes on with it after a resume."""
        for part in module.modules():
            if isinstance(part, _BatchNorm):
                if not trainer.fit_loop.position.in_the_middle:
                    part.reset_running_stats()
                self.measured[part], part.momentum = part.momentum, None
        module.zero_grad()  # the step that ends the epoch changes nothing
        trainer.fit_loop.runner.only_forward()
        self.accumulation = trainer.accumulation_table
        trainer.accumulation_table = {0: trainer.num_training_batches + 1}

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "n_averaged": None if self.n_averaged is None else int(self.n_averaged),
            "latest_update_epoch": self.latest_update_epoch,
            "average_model_state": None if self.n_averaged is None else self.average.state_dict(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.latest_update_epoch = state_dict["latest_update_epoch"]
        if state_dict["n_averaged"] is not None:
            self.n_averaged = torch.tensor(state_dict["n_averaged"])
            self.average.load_state_dict(state_dict["average_model_state"])

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """Where averaging had begun, the schedule in the checkpoint is this callback's."""
        own = checkpoint.get("callbacks", {}).get(self.state_key, {})
        if self.average is not None and own.get("n_averaged") is not None:
            self.take_schedule(trainer)
