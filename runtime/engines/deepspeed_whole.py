"""What DeepSpeed has divided, whole for the user's code, and what that does to it. Imports deepspeed.

DeepSpeed makes its steps on float32 copies of parameters, so that what is done to the parameters themselves would be
gone with the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.runtime.zero.parameter_offload import FWD_MODULE_STACK
from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus, register_external_parameter
from deepspeed.utils import safe_get_full_grad, safe_get_local_grad, safe_set_full_grad, safe_set_local_grad

AVAILABLE = ZeroParamStatus.AVAILABLE


@contextmanager
def whole(engine: Any, changes: bool = False) -> Iterator[None]:
    """Stage 3: all parameters on every rank, and no messages from within the forward passes. `changes`: what rank 0
    does to them stays.
    """
    offload = engine.optimizer.parameter_offload
    parameters = list(engine.module.parameters())
    for parameter in parameters:  # a backward that has not come to a layer's inputs has left its mark
        parameter.ds_active_sub_modules.clear()
    with deepspeed.zero.GatheredParameters(parameters, modifier_rank=0 if changes else None):
        offload._remove_module_hooks()
        try:
            yield
        finally:
            offload.setup_zero_stage3_hooks()


def is_part(parameter: Any) -> bool:
    """Stage 3: has this rank only its part of a parameter just now?"""
    return getattr(parameter, "ds_numel", parameter.numel()) != parameter.numel()


def undivide(engine: Any, module: torch.nn.Module) -> None:
    """Stage 3: plain parameters again."""
    offload = engine.optimizer.parameter_offload
    offload._remove_module_hooks()
    for parameter in module.parameters():
        with deepspeed.zero.GatheredParameters([parameter]):
            value = parameter.detach().clone()
        parameter.data = value


def padded_part(value: torch.Tensor, size: int) -> torch.Tensor:
    """Stage 3: this rank's part of `value`; parts have one size, so the last one may be padded."""
    padded = torch.nn.functional.pad(value.reshape(-1), (0, size * dist.get_world_size() - value.numel()))
    return padded[dist.get_rank() * size :][:size]


class HandedOut:
    """Stage 3: a training_step that goes through `parameters()` of a module gets them whole, as one that asks for a
    layer's by name does; they are parts again after the next pass through their layers.
    """

    def __init__(self, module: torch.nn.Module, together: Any):
        self.module, self.together = module, together
        self._number = {part: number for number, part in enumerate(module.modules())}
        self._inside = False

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self._inside:
                return step(*args)
            self._inside = True
            for part in self._number:
                part.__dict__["named_parameters"] = partial(self._named, part)
            try:
                return step(*args)
            finally:
                self._inside = False
                for part in self._number:
                    del part.__dict__["named_parameters"]

        return call

    def _named(self, part: torch.nn.Module, prefix: str = "", recurse: bool = True, *more: Any, **options: Any) -> Any:
        found: list[Any] = list(type(part).named_parameters(part, prefix, recurse, *more, **options))
        absent = [p for _, p in found if p.ds_status is not AVAILABLE] if recurse and self._inside else []
        if absent:
            self._inside = False  # DeepSpeed asks for parameters, too
            if self.together is not None:
                self.together.ask(self._number[part], 2)
            for parameter in absent:
                if FWD_MODULE_STACK:
                    register_external_parameter(FWD_MODULE_STACK[-1], parameter)
            absent[0].all_gather(param_list=absent)
            self._inside = True
        return iter(found)


@contextmanager
def in_step(engine: Any) -> Iterator[None]:
    """Stage 3, around a step that is not the engine's forward: what a layer takes of another's parameters, and what the
    step itself takes, is gathered as it is there.
    """
    FWD_MODULE_STACK.append(engine.module)
    mark_forward(engine, True)
    try:
        yield
    finally:
        mark_forward(engine, False)
        FWD_MODULE_STACK.pop()


def mark_forward(engine: Any, inside: bool) -> None:
    for part in engine.module.modules():
        part._parameters._in_forward = inside


@contextmanager
def backward_of_parts() -> Iterator[None]:
    """Around stage 3's backward: an error in it names what parts are too little for."""
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError(
            f"{error} (in stage 3; if the loss holds gradients, of torch.autograd.grad with create_graph=True, theirs "
            "need parameters that are parts again by then: use 'deepspeed_stage_2', 'fsdp' or 'ddp')"
        ) from error


# -- what is done to parameters -----------------------------------------------------------------------------------


class Adopted:
    """Changes of parameters, brought to what the next step is made on."""

    def __init__(self, engine: Any):
        """`engine`: just made, its parameters where it has put them."""
        self.zero, self.stage = engine.optimizer, engine.zero_optimization_stage()
        self._places = [] if self.stage == 3 else [(p, p.data) for p in engine.module.parameters() if p.requires_grad]
        self._divided = list(engine.module.parameters()) if self.stage == 3 else []
        for parameter in self._divided:
            parameter.partition = self._keeping(parameter, parameter.partition)

    def adopt(self) -> None:
        """Before a step. What nobody has changed keeps its float32 value, which half precision would round."""
        with torch.no_grad():
            for parameter, place in self._places:
                if parameter.data_ptr() != place.data_ptr():  # the user has put another tensor there
                    place.copy_(parameter.data)
                    parameter.data = place
            for parameter in self._divided:
                keep_part(parameter)
            for used, master in self._masters():
                used = used.to(master.device)
                master.data.copy_(torch.where(used == master.to(used.dtype), master.data, used.to(master.dtype)))

    def _masters(self) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        """This rank's (part of a group as forward uses it, its float32 copy)."""
        if self.stage == 3:
            pairs = zip(self.zero.fp16_partitioned_groups_flat, self.zero.fp32_partitioned_groups_flat, strict=True)
            return [pair for pair in pairs if pair[0] is not None]
        if self.stage == 0:
            return []
        rank = dist.get_rank()
        parts = [parts[rank] for parts in self.zero.parallel_partitioned_bit16_groups]
        return zip(parts, self.zero.single_partition_of_fp32_groups, strict=True)

    @staticmethod
    def _keeping(parameter: Any, partition: Callable[..., Any]) -> Callable[..., Any]:
        """Stage 3 frees a parameter after its layer's forward, where a step may have changed it."""

        def call(param_list: Any = None, *args: Any, **kwargs: Any) -> Any:
            for each in [parameter] if param_list is None else param_list:
                keep_part(each)
            return partition(param_list, *args, **kwargs)

        return call


@torch.no_grad()
def keep_part(parameter: Any) -> None:
    """Stage 3: this rank's part of a parameter is what the whole one is, where that is here."""
    part = parameter.ds_tensor
    if parameter.ds_status is AVAILABLE and part is not None and parameter.numel() == parameter.ds_numel:
        part.copy_(padded_part(parameter.data, part.ds_numel))


# -- gradients ----------------------------------------------------------------------------------------------------


@contextmanager
def gradients(engine: Any, optimizer: Any) -> Iterator[None]:
    """Gradients are reduced, and each rank has its part: inside, all have them whole, and the optimizer's groups have
    the module's parameters; what is done to gradients stays. A gradient that is taken away is zero.
    """
    stage, zero = engine.zero_optimization_stage(), engine.optimizer
    trained = [p for p in engine.module.parameters() if p.requires_grad]
    scale = getattr(zero, "loss_scale", 1.0)
    with ExitStack() as stack:
        if stage == 3:
            stack.enter_context(whole(engine, True))
        for parameter in trained:
            found = safe_get_full_grad(parameter)
            if found is not None:
                parameter.grad = found.to(parameter.dtype).div_(scale).view_as(parameter)
        stack.enter_context(optimizer.with_parameters())
        yield
        for parameter in trained:
            found = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            parameter.grad = None
            if stage < 3:
                safe_set_full_grad(parameter, found * scale)
            else:
                size = safe_get_local_grad(parameter).numel()
                safe_set_local_grad(parameter, padded_part(found * scale, size))


def forget_gradients(engine: Any) -> None:
    """What backward passes have left, which the next one would be added to; stage 3 also keeps what a parameter that a
    step does not use had in the one before.
    """
    zero, stage = engine.optimizer, engine.zero_optimization_stage()
    if stage == 0:
        engine.zero_grad()
    elif stage == 3:
        for gradient in zero._DeepSpeedZeroOptimizer_Stage3__param_id_to_grad_partition.values():
            gradient.zero_()
    else:
        zero.zero_grad(set_to_none=True)
        zero.micro_step_id = -1
        for kept in (zero.averaged_gradients, zero.all_grad_tensors):
            kept.update(dict.fromkeys(kept))
