"""What DeepSpeed cannot do, said before training starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from ..errors import ConfigurationError
from ..hooks import WITH_GRADIENTS, Hooks, overridden
from ..stopping import speaks_of

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer
    from .deepspeed import DeepSpeedStrategy

CLIPPING = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")  # torch's


def check_features(strategy: DeepSpeedStrategy, features: Mapping[str, bool]) -> None:
    config = strategy.config
    half = features.get("16") or config.get("fp16", {}).get("enabled") is True
    if half and features.get("cpu"):
        raise ConfigurationError(
            "strategy 'deepspeed' cannot do precision 16 on the CPU: DeepSpeed's CPU accelerator has no fp16; "
            "use precision='bf16' or 32"
        )
    if features.get("64") and strategy.stage == 3:
        raise ConfigurationError("strategy 'deepspeed' cannot do precision 64 in stage 3; use stage 2")
    if features.get("manual"):
        _check_manual()
    name = config.get("optimizer", {}).get("type")
    if name is not None:
        _check_optimizer(name, strategy.runtime.on_cpu)


def _check_manual() -> None:
    from ..engines import deepspeed

    if not deepspeed.steps_when_told():
        raise ConfigurationError(
            f"strategy 'deepspeed' cannot do manual optimization: DeepSpeed {deepspeed.version()} steps by itself "
            "after a fixed number of backward passes; install deepspeed>=0.19, or use 'ddp_sharded'"
        )


def _check_optimizer(name: str, on_cpu: bool) -> None:
    """Optimizers come and go with DeepSpeed's versions."""
    from ..engines import deepspeed

    there = deepspeed.optimizer_names(on_cpu)
    if name.lower() not in there and not hasattr(torch.optim, name):
        raise ConfigurationError(
            f"optimizer {name!r} is not in DeepSpeed {deepspeed.version()}, the one that is installed; it has "
            f"{', '.join(there)} and those of torch.optim"
        )


def check_fit(stage: int, trainer: Trainer, module: Module) -> None:
    """`stage`: ZeRO's."""
    if module.automatic_optimization:
        _check_accumulation(stage, trainer, module)
    else:
        _check_hands(module)
    number = next((name for name, p in module.named_parameters() if p.ndim == 0), None)
    if stage == 3 and number is not None:
        raise ConfigurationError(
            f"strategy 'deepspeed' cannot divide {number!r} in stage 3, a parameter of shape (): give it shape "
            "(1,), or use stage 2"
        )


def _check_hands(module: Module) -> None:
    """Manual optimization has no gradients before the step."""
    hook = next((name for name in WITH_GRADIENTS if overridden(module, name, Hooks)), None)
    if hook is not None:
        raise ConfigurationError(
            f"strategy 'deepspeed' cannot call {hook} under manual optimization: its gradients come about in the "
            "step; use 'fsdp' or 'ddp_sharded'"
        )
    if speaks_of(CLIPPING, module):
        raise ConfigurationError(
            "strategy 'deepspeed' cannot do torch's clip_grad_norm_ and clip_grad_value_ under manual "
            "optimization, since gradients come about in the step: call self.clip_gradients(optimizer, ...)"
        )


def _check_accumulation(stage: int, trainer: Trainer, module: Module) -> None:
    """Of gradients that are accumulated, stages 1 and 2 hand out those of the last batch alone."""
    if stage not in (1, 2) or set(trainer.accumulation_table.values()) == {1}:
        return
    from ..module import Module as Base

    owners = [(module, Hooks), *((callback, Hooks) for callback in trainer.callbacks)]
    names = [name for owner, base in owners for name in WITH_GRADIENTS if overridden(owner, name, base)]
    names += ["configure_gradient_clipping"] * overridden(module, "configure_gradient_clipping", Base)
    if names:
        raise ConfigurationError(
            f"strategy 'deepspeed' cannot call {names[0]} in stage {stage} where gradients are accumulated: "
            "it would see those of the last batch alone; use 'deepspeed_stage_3', 'fsdp' or 'ddp_sharded'"
        )
