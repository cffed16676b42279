"""Steps that an engine runs more than once for a batch must not change parameters: it would be done as often."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..module import Module


class Unchanged:
    """`why`: what the engine does with the step `name` of `module`, for the error."""

    def __init__(self, module: Module, name: str, why: str):
        self.module, self.name, self.why = module, name, why
        self._number = 0  # of the batches so far

    @contextmanager
    def checked(self, several: bool = True) -> Iterator[None]:
        """Around a batch's step. ConfigurationError where a parameter is another one after it. What is done to `.data`
        itself, which leaves no trace, is found in the batches 1, 2, 4, 8, and so on.
        """
        self._number += several
        looks = several and self._number & (self._number - 1) == 0
        before = [(name, p, p._version, p.data_ptr()) for name, p in self.module.named_parameters()] if several else []
        values = [p.detach().clone() for _, p, _, _ in before] if looks else []
        yield
        changed = [name for name, p, version, place in before if (p._version, p.data_ptr()) != (version, place)]
        if values and not changed:
            pairs = zip(before, values, strict=True)
            changed = [name for (name, p, _, _), value in pairs if not _is_same(p.detach(), value)]
        if changed:
            strategy = self.module.trainer.strategy.name
            raise ConfigurationError(
                f"{self.name} changes the parameter {changed[0]!r}: under strategy {strategy!r} it {self.why}; change "
                "it in on_train_batch_end, or use 'ddp'"
            )


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """What is no number is no change: a training that has diverged goes on, as it does on one device."""
    return one.equal(other) or bool(torch.isclose(one, other, rtol=0.0, atol=0.0, equal_nan=True).all())
