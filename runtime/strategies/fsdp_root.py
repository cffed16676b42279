"""What fully_shard divides: a module around the user's, whose forward is whichever of its steps is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .averaging import zero_of
from .together import Together

if TYPE_CHECKING:
    from ..module import Module


class Root(torch.nn.Module):
    """What is sharded: the user's module, with whichever of its steps is called as the forward.

    `used`: the names of the parameters that a backward has reached. One that no rank uses keeps no gradient, as in one
    process, where weight decay and momentum pass it by.
    """

    def __init__(self, module: Module, blocks: list[torch.nn.Module], together: Together):
        super().__init__()
        self.module = module
        self.used: set[str] = set()
        self._watched: set[str] = set()
        self._blocks, self._called, self._idle = tuple(blocks), False, False
        self.together = together
        self._steps = False  # inside of a step that trains
        self._handles: list[Any] = []

    def forward(self, step: Callable[..., Any], *args: Any) -> Any:
        if not torch.is_grad_enabled():
            return step(*args)
        self._watch()
        self._called, self._steps = False, True
        try:
            outputs = step(*args)
            self._idle = outputs is None
            self.keep_step()
            outputs = self._nothing() if self._idle else outputs
        finally:
            self._steps = False
        if self._blocks:
            self.together.ask(len(self._blocks))  # no other one
        return outputs

    def leave_states_alone(self) -> None:
        """Whole parameters stay so where their state is taken, or another one loaded: fully_shard would free them."""
        for group in self._groups():
            group._register_state_dict_hooks = lambda: None
            for each in group.fsdp_params:
                each._post_load_hook_handle.remove()

    def keep_changes(self, optimizers: Iterable[Any]) -> None:
        """What the user's code has done to whole parameters is done to this rank's parts; what it has given to the
        optimizers there are parts, too.
        """
        parts: dict[Any, Any] = {}
        for group in self._groups():
            for each in group.fsdp_params:
                whole, part = each.unsharded_param, each.sharded_param
                parts[whole] = part
                part.to_local().copy_(divided_as(part, whole.detach()).to_local())
                self._put_back(each)
                part.requires_grad_(whole.requires_grad)
        for optimizer in optimizers:
            for params in optimizer.param_groups:
                params["params"] = [parts.get(p, p) for p in params["params"]]

    @torch.no_grad()
    def keep_step(self) -> None:
        """What a step has done to parameters (a teacher that moves, weights that are normed) is done to this rank's
        parts, before they are gathered again.
        """
        for group in self._groups():
            for each in group.fsdp_params if group.is_unsharded else ():
                each.sharded_param.to_local().copy_(local_rows(each, each.unsharded_param.detach()))
                self._put_back(each)

    @staticmethod
    def _put_back(each: Any) -> None:
        """The user's code may have given a parameter another tensor: fully_shard gathers into its own."""
        whole, gathered = each.unsharded_param, each.all_gather_outputs
        if len(gathered) == 1 and whole.untyped_storage().data_ptr() != gathered[0].untyped_storage().data_ptr():
            whole.data = torch.as_strided(gathered[0], whole.size(), whole.stride()).copy_(whole.data)

    def hang_hooks(self, own: dict[str, torch.nn.Parameter]) -> None:
        """Parameters, whole just now, call the hooks of the user's own, by their names."""
        for name, parameter in self.module.named_parameters() if own else ():
            for hook in (getattr(own.get(name), "_backward_hooks", None) or {}).values():
                parameter.register_hook(hook)
            for hook in (getattr(own.get(name), "_post_accumulate_grad_hooks", None) or {}).values():
                parameter.register_post_accumulate_grad_hook(hook)

    def take_gradients(self) -> None:
        """Parameters are whole: so are gradients."""
        for group in self._groups():
            for each in group.fsdp_params:
                part = each.sharded_param
                each.unsharded_param.grad = None if part.grad is None else part.grad.full_tensor()

    def give_gradients(self) -> None:
        """What the user's code has done to whole gradients is done to this rank's parts."""
        for group in self._groups():
            for each in group.fsdp_params:
                part, whole = each.sharded_param, each.unsharded_param
                part.grad = None if whole.grad is None else divided_as(part, whole.grad)
                whole.grad = None

    def forget_gradients(self, optimizer: Any) -> None:
        """What backward passes have left on this rank of the parameters that `optimizer` steps."""
        mine = {p for group in optimizer.param_groups for p in group["params"]}
        for each in (each for group in self._groups() for each in group.fsdp_params if each.sharded_param in mine):
            each.unsharded_accumulated_grad = None
            if hasattr(each, "_unsharded_param"):  # made by the first forward
                each.unsharded_param.grad = None

    def exchange(self, optimizers: Iterable[Any]) -> None:
        """Whole parameters in the optimizers' groups, where parts are; `keep_changes` puts parts back."""
        pairs = [(each.sharded_param, each.unsharded_param) for group in self._groups() for each in group.fsdp_params]
        wholes = dict(pairs)
        for optimizer in optimizers:
            for params in optimizer.param_groups:
                params["params"] = [wholes.get(p, p) for p in params["params"]]

    def make_freeable(self) -> None:
        """fully_shard frees parameters by giving their memory the size 0: what NumPy has seen does not take that."""
        for group in self._groups():
            for each in group.fsdp_params:
                whole, gathered = each.unsharded_param, each.all_gather_outputs
                if len(gathered) == 1 and not whole.untyped_storage().resizable():
                    gathered[0] = gathered[0].clone()
                    whole.data = torch.as_strided(gathered[0], whole.size(), whole.stride())

    def _groups(self) -> list[Any]:
        states = [part._get_fsdp_state() for part in (self, *self._blocks)]  # type: ignore[operator]
        return [group for state in states for group in _groups_of(state)]

    def note_calls(self) -> None:
        """Once blocks are divided: before a call gathers their parameters."""
        for number, block in enumerate(self._blocks):
            note = partial(self._note_call, number)
            self._handles.append(block.register_forward_pre_hook(note, prepend=True))

    def _note_call(self, number: int, *_: Any) -> None:
        self._called = True
        if self._steps:
            self.together.ask(number)

    def _nothing(self) -> torch.Tensor:
        """What stands for a loss where the step gave none: another rank may have one, and waits for this one's parts in
        forward and in backward. Raises RuntimeError where it is too late for that.
        """
        if self._called:
            raise RuntimeError(
                "training_step gave None after it had called the model: under strategy 'fsdp' the other processes wait "
                "for a backward through it; give None before that, or use 'ddp'"
            )
        nothing = torch.zeros((), device=self.module.device).requires_grad_()
        loop = self.module.trainer.fit_loop
        loop.absent, nothing = True, nothing + loop.norms.absent()
        for block in self._blocks:
            block.forward = lambda x, block=block: x + zero_of(block.parameters())
            try:
                nothing = block(nothing)
            finally:
                del block.forward
        return nothing + zero_of(p for p in self.module.parameters() if not is_divided(p))

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _watch(self) -> None:
        """Parameters are whole while a step runs; these objects stay the same from step to step."""
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad and name not in self._watched and not is_divided(parameter):
                self._watched.add(name)
                parameter.register_post_accumulate_grad_hook(lambda p, name=name: self._note_use(name, p))

    def _note_use(self, name: str, parameter: torch.Tensor) -> None:
        if parameter.grad is not None and not self._idle:  # torch also tells of a backward that brings none
            self.used.add(name)


def local_rows(each: Any, whole: torch.Tensor) -> torch.Tensor:
    """This rank's rows of a whole parameter of fully_shard's, as it divides them."""
    part = each.sharded_param
    rows = -(-whole.size(0) // part.device_mesh.size())
    first = min(part.device_mesh.get_local_rank() * rows, whole.size(0))
    return whole[first : first + rows]


def divided_as(part: Any, value: torch.Tensor) -> Any:
    """This rank's part of `value`, which every rank has whole."""
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(part.device), part.device_mesh, part.placements, src_data_rank=None)


def is_divided(value: Any) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(value, DTensor)


def _groups_of(state: Any) -> list[Any]:
    """Torch before 2.12 has one group a module, or none."""
    several = getattr(state, "_fsdp_param_groups", None)
    return [g for g in (state._fsdp_param_group,) if g is not None] if several is None else several
