"""DDP in processes that start with `fit` and end with it: for notebooks (fork), and for scripts that cannot be started
again.

The module and everything else are sent to the processes (spawn) or found there (fork), and the trained weights, the
metrics and the state of callbacks come back, so that the script goes on as after a fit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from .. import environment
from ..errors import ConfigurationError
from .base import Strategy
from .ddp import DDPStrategy
from .registry import register

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..trainer import Trainer


class InOwnProcesses(Strategy):
    """To be put before another strategy's class: that strategy, in processes that start with `fit`.

    A launcher (ptrun, torchrun) that has started processes wins: then these are used, and nothing is sent.
    """

    start_method: ClassVar[str] = "spawn"
    last_checkpoint: dict[str, Any] | None = None  # of the last fit, for save_checkpoint after it

    def attach(self, runtime: Runtime) -> None:
        """The calling process is no rank of the run: on its own it has nobody to talk to."""
        super().attach(runtime)
        if not environment.launched():
            runtime.world_size = 1

    def check(self, features: Mapping[str, bool]) -> None:
        super().check(features)
        if features.get("kept") and not environment.launched():
            raise ConfigurationError(
                f"strategy {self.name!r} starts its processes with Trainer.fit, and this is a loop of your own: use "
                "strategy 'ddp', or ptrun"
            )

    def launch(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if environment.launched():
            return run(*args, **kwargs)
        from ..launch import spawn

        if self.start_method == "fork" and torch.cuda.is_initialized():
            raise ConfigurationError(
                f"strategy {self.name!r} cannot fork a process that has used a GPU: touch none before fit, or use "
                "strategy 'ddp_spawn'"
            )
        return spawn.call(run, args, kwargs, self.start_method)

    def checkpoint(self, trainer: Trainer, weights_only: bool) -> dict[str, Any]:
        if environment.launched() or self.last_checkpoint is None:
            return super().checkpoint(trainer, weights_only)
        assert trainer.module is not None
        return {**self.last_checkpoint, "state_dict": trainer.module.state_dict()}


@register("ddp_spawn")
class DDPSpawnStrategy(InOwnProcesses, DDPStrategy):
    """Everything has to pickle; what does not is named with its path before a process starts."""


@register("ddp_fork")
class DDPForkStrategy(InOwnProcesses, DDPStrategy):
    """Nothing has to pickle, and notebooks work; not after a GPU has been used."""

    start_method = "fork"
