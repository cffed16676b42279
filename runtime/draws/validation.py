"""A validation that draws random numbers is that of one process only where every process runs all of it.

Where its code may draw, the first one of a fit shows whether it does: all processes run all of it, as rank 0 draws.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..checkpoint.randomness import capture, differs
from ..data.combined import loaders_of
from ..data.loaders import already_divided, is_indexed
from .speaking import may_draw

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer

HOOKS = ("on_before_batch_transfer", "on_after_batch_transfer", "on_validation_batch_start", "on_validation_batch_end")
TOLD = (
    "random numbers are not those of one process: a validation has drawn some; validation_draws = True in the module, "
    "with strategy 'ddp', draws as one process does"
)


class ValidationDraws:
    """Of one trainer. `whole`: does every process run all of a validation?"""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.whole = self.watches = self.drew = self.told = False

    def open(self, module: Module) -> None:
        """A fit begins."""
        trainer, asked = self.trainer, module.validation_draws
        self.drew = self.told = False
        self.watches = asked is None and trainer.cuts_batches
        self.whole = bool(asked)
        if self.watches and trainer.enable_validation and trainer.runtime.strategy.draws_alike:
            loaders = list(loaders_of(trainer.val_dataloaders))
            ours = all(is_indexed(loader) and not already_divided(loader) for loader in loaders)
            self.whole = ours and may_draw(module, ("validation_step", "forward", *HOOKS))

    def watched(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a validation; what is drawn while the loop is at one of them is seen. Where it is not to be
        expected only the first is looked at.
        """
        for item in batches:
            if self.drew or not self.watches:
                yield item
                continue
            before = capture()
            yield item
            self.drew = differs(before, capture())
            if not self.whole:
                yield from batches

    def learned(self) -> None:
        """A validation is over, on all ranks."""
        if not self.watches:
            return
        if self.whole:
            self.whole = self.trainer.runtime.broadcast(self.drew)
            self.watches = not self.whole
        elif self.drew and not self.told:
            self.told = True
            self.trainer.runtime.print(TOLD, file=sys.stderr)
