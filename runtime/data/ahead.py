"""Whether a batch is the last one, where the loader does not know: the next one is drawn when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..checkpoint import randomness
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..fit import FitLoop

_END = object()


class Ahead:
    """(number, batch) of an epoch. `every_rank_asks`: before each batch; `loop.batches` is set when the last is given.

    Else the loop asks `ends`, which one process can answer at any time: of several, all would have to ask.
    """

    def __init__(self, batches: Iterator[tuple[int, Any]], loop: FitLoop, every_rank_asks: bool):
        self.batches, self.loop, self.every_rank_asks = batches, loop, every_rank_asks
        self.runtime = loop.trainer.runtime
        self.generators: dict[str, Any] | None = None
        self.held: Any = None  # (what comes next, this rank's part of it)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        if self.held is None:
            item = next(self.batches)
        else:
            (item, self.runtime.part), self.held = self.held, None
            if item is _END:
                raise StopIteration
        if self.every_rank_asks and self.ends():
            self.loop.batches = item[0] + 1
        return item

    def ends(self) -> bool:
        """Is the current batch the last one?"""
        if self.held is None:
            if not self.every_rank_asks and self.runtime.world_size > 1:
                raise ConfigurationError(
                    "is_last_batch: the loader has no length, and the ranks look ahead together; read it in a method "
                    "of the module or of a callback's class"
                )
            part, self.generators = self.runtime.part, randomness.capture()
            self.held = next(self.batches, _END), self.runtime.part
            self.runtime.part = part  # the current batch's
        return self.held[0] is _END

    @property
    def drawn_from(self) -> dict[str, Any] | None:
        """The generators as they were before the batch was drawn that is not given yet; None where there is none."""
        return self.generators if self.held is not None and self.held[0] is not _END else None
