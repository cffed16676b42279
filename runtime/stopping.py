"""Ending a fit before its epochs are over: ranks agree, so that none waits for one that has left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fit import FitLoop


class Stopping:
    """`trainer.should_stop` and `max_time`, and min_epochs and min_steps, which hold them up.

    On several processes the ranks vote: after every batch where the module or a callback speaks of should_stop, else
    at the ends of epochs. What a callback of this package decides is the same on all ranks already.
    """

    def __init__(self, loop: FitLoop):
        self.loop, self.trainer = loop, loop.trainer
        self.started = time.monotonic()
        self.trainer.should_stop = False
        several = self.trainer.world_size > 1
        self.votes_at_batches = several and any(
            speaks_of(("should_stop",), owner) for owner in (self.trainer.module, *self.trainer.callbacks)
        )
        self.votes_at_epochs = several
        self.seconds = self.trainer.max_time
        votes = self.votes_at_batches or self.seconds is not None
        self.after_batch: Callable[[], bool] = self.vote_after_batch if votes else self.now

    def vote_after_batch(self) -> bool:
        """After a batch: the same answer on every rank."""
        trainer = self.trainer
        late = self.late()
        if trainer.world_size > 1:
            late, asked = trainer.runtime.reduce_alike([late, trainer.should_stop], "max")
            trainer.should_stop = asked
        if late:
            trainer.should_stop = True
        return trainer.should_stop and not self.early()

    def late(self) -> bool:
        return self.seconds is not None and time.monotonic() - self.started >= self.seconds

    def before_training(self) -> bool:
        """Is there no time at all?"""
        return self.seconds is not None and self.trainer.runtime.broadcast(self.late()) and not self.early()

    def now(self) -> bool:
        trainer = self.trainer
        if not trainer.should_stop:
            return False
        return (trainer.world_size == 1 or trainer.stop_agreed) and not self.early()

    def agree(self) -> None:
        """At the end of an epoch: who asked for a stop is heard by all."""
        if self.votes_at_epochs:
            asked = self.trainer.runtime.all_reduce(self.trainer.should_stop, "max")
            self.trainer.stop_agreed = asked
            if asked:
                self.trainer.should_stop = True

    def early(self) -> bool:
        """Are min_epochs or min_steps still ahead?"""
        trainer = self.trainer
        return self.loop.epoch < trainer.min_epochs or self.loop.global_step < (trainer.min_steps or 0)


def speaks_of(names: tuple[str, ...], owner: Any) -> bool:
    """Does the code of this object's classes, outside of this package, have one of these names?"""
    home = __name__.rpartition(".")[0]
    classes = [cls for cls in type(owner).__mro__ if not cls.__module__.startswith((home, "torch.nn.modules"))]
    functions = (getattr(member, "__code__", None) for cls in classes for member in vars(cls).values())
    codes = (code for function in functions if function for code in codes_of(function))
    return any(name in code.co_names for code in codes for name in names)


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)
