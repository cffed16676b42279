"""Manual optimization under fully_shard: parameters are whole while a step of the user's runs, and divided otherwise.

The user's code may use parameters and gradients in any way and order there, so these are whole on every rank, as under
ddp. Optimizers keep the state of parts: for the time of their step they get the parts in the places of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from .averaging import GradientAverager
from .fsdp_root import divided_as

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module


class WholeSteps:
    """`root`: what fully_shard has divided, whose forward is never called."""

    def __init__(self, root: Any, module: Module, runtime: Runtime, optimizers: list[Any]):
        self.root, self.optimizers = root, optimizers
        self._inside = 0
        parts = dict(module.named_parameters())
        root.unshard()
        self.pairs = [(whole, parts[name]) for name, whole in module.named_parameters()]
        root.reshard()
        self.part_of = {whole: part for whole, part in self.pairs if whole is not part}
        self.whole_of = {part: whole for whole, part in self.part_of.items()}
        self.averager = GradientAverager(runtime.world_size, runtime.group)
        self.averager.watch([whole for whole, _ in self.pairs])
        self.averager.expects = False
        self._handles: list[Any] = []
        self.number = {id(optimizer): number for number, optimizer in enumerate(optimizers)}
        for optimizer in optimizers:
            self._exchange(optimizer, self.whole_of)
            self._handles.append(optimizer.register_step_pre_hook(self._before_step))
            self._handles.append(optimizer.register_step_post_hook(self._after_step))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Inside, the module has its parameters whole."""
        self._inside += 1
        self._gather()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                for whole, part in self.pairs:
                    part.requires_grad_(whole.requires_grad)
                self.root.keep_step()
                self.root.make_freeable()
                self.root.reshard()

    def _gather(self) -> None:
        for whole, part in self.pairs if self._inside == 1 else ():
            whole.requires_grad_(part.requires_grad)  # frozen or not since the last step
        self.root.unshard()

    def no_sync(self) -> AbstractContextManager:
        return self.averager.paused()

    # -- the optimizers' steps --------------------------------------------------------------------------------------

    def _before_step(self, optimizer: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A closure is called here, where it finds the parameters."""
        closure = (*args[1:2], kwargs.get("closure"))[0]  # args[0] is the optimizer
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            args, kwargs = (args[0], lambda: loss), {}
        self.averager.meet(self.number[id(optimizer)])
        self.root.keep_step()
        self._exchange(optimizer, self.part_of)
        for part in (p for group in optimizer.param_groups for p in group["params"] if p in self.whole_of):
            gradient = self.whole_of[part].grad
            part.grad = None if gradient is None else divided_as(part, gradient)
        return args, kwargs

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._exchange(optimizer, self.whole_of)
        for part in self.whole_of:
            part.grad = None
        if self._inside:  # the new weights
            self.root.reshard()
            self.root.unshard()

    def _exchange(self, optimizer: Any, other: dict[Any, Any]) -> None:
        """Put `other[p]` in the place of each parameter p that is there."""
        for group in optimizer.param_groups:
            group["params"] = [other.get(p, p) for p in group["params"]]

    @contextmanager
    def parts_in(self, optimizer: Any) -> Iterator[None]:
        """Inside, the optimizer has the parts, which its state belongs to."""
        self._exchange(optimizer, self.part_of)
        try:
            yield
        finally:
            self._exchange(optimizer, self.whole_of)

    def release(self) -> None:
        self.averager.release()
        for handle in self._handles:
            handle.remove()
