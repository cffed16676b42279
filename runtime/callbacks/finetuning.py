"""Layers that are frozen at first and join the training later."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import ConfigurationError
from .base import Callback

STATE = "finetuning"


class BaseFinetuning(Callback):
    """Fill in `freeze_before_training` and `finetune_function`; configure_optimizers takes what requires gradients.

    A run that goes on from a checkpoint has the groups that had joined, and trains them.
    """

    def freeze_before_training(self, pl_module: Any) -> None:
        """Before configure_optimizers: `self.freeze(pl_module.features)`."""
        raise NotImplementedError(f"{type(self).__name__} has no freeze_before_training")

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        """At the start of every epoch, for each optimizer: `self.unfreeze_and_add_param_group(...)` when it is time."""
        raise NotImplementedError(f"{type(self).__name__} has no finetune_function")

    # -- what they are made of ------------------------------------------------------------------------------------

    @staticmethod
    def flatten_modules(modules: Any) -> list[torch.nn.Module]:
        """The parts of a module, or of nested iterables of them, that hold parameters themselves or have no parts."""
        if isinstance(modules, torch.nn.ModuleDict):
            modules = modules.values()
        if isinstance(modules, Iterable):  # a Sequential and a ModuleList, too
            return [part for module in modules for part in BaseFinetuning.flatten_modules(module)]
        return [part for part in modules.modules() if part._parameters or not list(part.children())]

    @staticmethod
    def filter_params(modules: Any, train_bn: bool = True, requires_grad: bool = True) -> Iterator[torch.nn.Parameter]:
        """The parameters that do (or do not) require gradients; without batch norm's where `train_bn` is False."""
        for part in BaseFinetuning.flatten_modules(modules):
            if train_bn or not isinstance(part, _BatchNorm):
                yield from (p for p in part.parameters(recurse=False) if p.requires_grad == requires_grad)

    @staticmethod
    def make_trainable(modules: Any) -> None:
        for part in BaseFinetuning.flatten_modules(modules):
            _set(part, True)

    @staticmethod
    def freeze_module(module: torch.nn.Module) -> None:
        """This one module's own parameters, without those of its parts."""
        _set(module, False)

    @staticmethod
    def freeze(modules: Any, train_bn: bool = True) -> None:
        """`train_bn`: batch norm goes on training."""
        for part in BaseFinetuning.flatten_modules(modules):
            _set(part, train_bn and isinstance(part, _BatchNorm))

    @staticmethod
    def filter_on_optimizer(optimizer: Any, params: Iterable[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
        """Those that the optimizer does not have yet; a warning tells of the others."""
        params, held = list(params), {id(p) for group in optimizer.param_groups for p in group["params"]}
        new = [p for p in params if id(p) not in held]
        if len(new) < len(params):
            warnings.warn(
                f"{len(params) - len(new)} parameters are in the optimizer already and stay as they are there: give it "
                "filter(lambda p: p.requires_grad, self.parameters()) in configure_optimizers",
                stacklevel=2,
            )
        return new

    @staticmethod
    def unfreeze_and_add_param_group(
        modules: Any, optimizer: Any, lr: float | None = None, initial_denom_lr: float = 10.0, train_bn: bool = True
    ) -> None:
        """They require gradients from now on, in a group of their own with `lr`, or the first group's divided by
        `initial_denom_lr`.
        """
        BaseFinetuning.make_trainable(modules)
        params = BaseFinetuning.filter_on_optimizer(optimizer, BaseFinetuning.filter_params(modules, train_bn))
        if params:
            rate = optimizer.param_groups[0]["lr"] / initial_denom_lr if lr is None else float(lr)
            optimizer.add_param_group({"params": params, "lr": rate})

    # -- hooks ----------------------------------------------------------------------------------------------------

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit" and trainer.strategy.name == "deepspeed":
            raise ConfigurationError("strategy 'deepspeed' takes no parameters that join later: finetune without it")
        self.freeze_before_training(module)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        for optimizer in trainer.optimizers:
            self.finetune_function(module, trainer.current_epoch, optimizer)

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        names = {p: name for name, p in module.named_parameters()}
        checkpoint[STATE] = [
            [[names[p] for p in group["params"]] for group in optimizer.param_groups]
            for optimizer in trainer.optimizers
        ]

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """The groups as they were, before the optimizers get their states."""
        parameters = dict(module.named_parameters())
        for optimizer, groups in zip(trainer.optimizers, checkpoint.get(STATE, ())):  # noqa: B905  told on loading
            for names in groups[len(optimizer.param_groups) :]:
                joined = [parameters[name] for name in names]
                optimizer.add_param_group({"params": joined})
                ids = set(map(id, joined))
                self.make_trainable([m for m in module.modules() if any(id(p) in ids for p in m._parameters.values())])


class BackboneFinetuning(BaseFinetuning):
    """`module.backbone` joins at an epoch; its learning rate, at first `backbone_initial_lr` or the first group's times
    `backbone_initial_ratio_lr`, is multiplied by `lambda_func(epoch + 1)` at each epoch after, up to the first
    group's where `should_align`.
    """

    def __init__(
        self,
        unfreeze_backbone_at_epoch: int = 10,
        lambda_func: Callable[[int], float] = lambda epoch: 2.0,
        backbone_initial_ratio_lr: float = 0.1,
        backbone_initial_lr: float | None = None,
        should_align: bool = True,
        initial_denom_lr: float = 10.0,
        train_bn: bool = True,
        verbose: bool = False,
        rounding: int = 12,
    ):
        self.unfreeze_backbone_at_epoch, self.lambda_func = unfreeze_backbone_at_epoch, lambda_func
        self.backbone_initial_ratio_lr, self.backbone_initial_lr = backbone_initial_ratio_lr, backbone_initial_lr
        self.should_align, self.initial_denom_lr, self.train_bn = should_align, initial_denom_lr, train_bn
        self.verbose, self.rounding = verbose, rounding
        self.previous_backbone_lr: float | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"previous_backbone_lr": self.previous_backbone_lr}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.previous_backbone_lr = state_dict["previous_backbone_lr"]

    def freeze_before_training(self, pl_module: Any) -> None:
        if not isinstance(getattr(pl_module, "backbone", None), torch.nn.Module):
            raise ConfigurationError(f"BackboneFinetuning: {type(pl_module).__name__}.backbone is no module")
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        if epoch < self.unfreeze_backbone_at_epoch:
            return
        others = optimizer.param_groups[0]["lr"]
        if epoch == self.unfreeze_backbone_at_epoch:
            given = self.backbone_initial_lr
            rate = others * self.backbone_initial_ratio_lr if given is None else given
            self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, rate, train_bn=self.train_bn)
        else:
            rate = self.lambda_func(epoch + 1) * self.previous_backbone_lr  # type: ignore[operator]
            rate = min(rate, others) if self.should_align else rate
            optimizer.param_groups[-1]["lr"] = rate
        self.previous_backbone_lr = rate
        if self.verbose:
            pl_module.print(f"lr {round(others, self.rounding)}, of the backbone {round(rate, self.rounding)}")


def _set(module: torch.nn.Module, trains: bool) -> None:
    if isinstance(module, _BatchNorm):
        module.track_running_stats = trains
    for parameter in module.parameters(recurse=False):
        parameter.requires_grad = trains
