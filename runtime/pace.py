"""When validation runs: after so many batches, so much time, or at the end of epochs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from .errors import ConfigurationError

if TYPE_CHECKING:
    from .fit import FitLoop


class Pace:
    """Decided once a fit, and again when the number of batches changes."""

    def __init__(self, loop: FitLoop, validates: bool):
        self.loop, self.trainer, self.validates = loop, loop.trainer, validates
        self.last = time.monotonic()
        self.plan(loop.batches)

    def plan(self, batches: int | None) -> None:
        """`every`: batches between two validations; None: not by counting. Raises ConfigurationError for an interval
        that the loader cannot have.
        """
        trainer, interval = self.trainer, self.trainer.val_check_interval
        self.seconds = trainer.val_check_seconds
        self.across_epochs = trainer.check_val_every_n_epoch is None
        self.every: int | None = None
        if not self.validates or self.seconds is not None:
            return
        if isinstance(interval, int):
            if batches is not None and interval > batches and not self.across_epochs:
                raise ConfigurationError(
                    f"val_check_interval={interval}: an epoch has {batches} batches; set check_val_every_n_epoch=None "
                    "to count over epochs, or limit_val_batches=0 to leave validation out"
                )
            self.every = interval
        elif batches is not None:
            self.every = max(1, int(batches * interval))
        elif interval != 1.0:
            raise ConfigurationError(f"val_check_interval={interval}: a fraction needs a loader with a length")

    @property
    def between(self) -> float | None:
        """Batches between two validations, whether there are any or not; None where the clock decides."""
        interval, batches = self.trainer.val_check_interval, self.loop.length
        if self.seconds is not None:
            return None
        if isinstance(interval, int):
            return interval
        return math.inf if batches is None else max(1, int(batches * interval))

    def due(self, batch_idx: int, last: bool, stop: bool) -> bool:
        """Is it time, after this batch (the `last` one, as far as is known; or the fit stops here)?"""
        if not self.validates or not self.this_epoch():
            return False
        if stop:
            return True
        if self.seconds is not None:
            return self.trainer.runtime.broadcast(time.monotonic() - self.last >= self.seconds)
        if self.every is None:
            return last
        count = (self.loop.total_batch_idx if self.across_epochs else batch_idx) + 1
        return count % self.every == 0

    def due_at_end(self) -> bool:
        """Is it time at the end of an epoch whose length nobody knew, or that was ended early?"""
        return self.validates and self.this_epoch() and self.seconds is None and self.trainer.val_check_interval == 1.0

    def this_epoch(self) -> bool:
        every = self.trainer.check_val_every_n_epoch
        return every is None or (self.loop.epoch + 1) % every == 0
