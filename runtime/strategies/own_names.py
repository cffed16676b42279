"""Optimizers that the module holds by names of its own, where an engine has put others in their places, or has divided
their states: what the module calls there is what the trainer's optimizers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module

NOBODY = -1
CALLED = ("step", "zero_grad", "add_param_group")


class OwnNames:
    """`made`: by configure_optimizers; `used`: by the strategy, in the same order."""

    def __init__(self, runtime: Runtime, module: Module, made: Sequence[Any], used: Sequence[Any]):
        self.runtime, self.module = runtime, module
        self.pairs = list(zip(made, used))  # noqa: B905  an engine may bring the optimizer where the module has none
        self.put: list[tuple[Any, str, Any]] = []  # optimizer, name, what its own dictionary had there
        self._offered = False
        for number, (mine, theirs) in enumerate(self.pairs):
            for name in CALLED if runtime.strategy.replaces_optimizers and mine is not theirs else ():
                self._put(mine, name, _instead(getattr(mine, name), theirs, name))
            if self._divided:
                self._put(mine, "state_dict", partial(self._ask, number))

    @property
    def _divided(self) -> bool:
        return self.runtime.world_size > 1 and self.runtime.strategy.divides_states

    def _put(self, optimizer: Any, name: str, function: Callable[..., Any]) -> None:
        self.put.append((optimizer, name, vars(optimizer).get(name)))
        setattr(optimizer, name, function)

    def close(self) -> None:
        for optimizer, name, before in self.put:
            vars(optimizer).pop(name, None)
            if before is not None:
                setattr(optimizer, name, before)

    # -- states: rank 0 may ask alone --------------------------------------------------------------------------------

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """A hook that all ranks call: in it, `state_dict` gives whole states, also where rank 0 alone asks. The others
        do their part when their own hook is over.
        """
        if not self._divided:
            return hook

        def answering(*args: Any) -> Any:
            with self._offering():
                outcome = hook(*args)
                if self.runtime.rank == 0:
                    self._say(NOBODY)
                else:
                    while (number := self._say()) != NOBODY:
                        self._whole(number)
            return outcome

        return answering

    @contextmanager
    def _offering(self) -> Iterator[None]:
        self._offered = True
        try:
            yield
        finally:
            self._offered = False

    def _ask(self, number: int) -> Any:
        mine, used = self.pairs[number]
        if _is_called(used):
            return type(mine).state_dict(mine)
        if not self._offered:
            raise RuntimeError(
                f"{type(mine).__name__}.state_dict: under {self.runtime.strategy.name!r} each process "
                "has its part; take it in a hook between batches, as on_train_epoch_end, or call "
                "trainer.save_checkpoint"
            )
        if self._say(number) != number:
            raise RuntimeError(
                "state_dict: rank 0 asks for other optimizers' states, or for none; ask on all ranks alike"
            )
        return self._whole(number)

    def _say(self, number: int = NOBODY) -> int:
        """Rank 0's number, on every rank."""
        said = torch.tensor([number])
        dist.broadcast(said, 0, group=self.runtime.group)
        return int(said.item())

    def _whole(self, number: int) -> Any:
        found = self.runtime.strategy.optimizer_state(self.module, self.pairs[number][1])
        return found or {"state": {}, "param_groups": []}  # rank 0's answer is the one that counts


def _is_called(used: Any) -> bool:
    """Is it the engine that calls the module's optimizer, and means it?"""
    return getattr(used, "is_called", False)


def _instead(own: Callable[..., Any], theirs: Any, name: str) -> Callable[..., Any]:
    """`own` where the engine calls it, the engine's elsewhere."""

    @wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs) if _is_called(theirs) else getattr(theirs, name)(*args, **kwargs)

    return call
