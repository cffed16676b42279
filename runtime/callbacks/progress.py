"""Progress: a bar on a terminal, plain lines elsewhere. The loop asks `every` and calls `update` that seldom."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .small import ProgressBar

LINES_AN_EPOCH = 4  # where no terminal reads


def choose_progress(asked: int | bool | None, callbacks: Sequence[Any] = ()) -> Progress | None:
    """For `Trainer(enable_progress_bar=...)`; a number says after how many batches it moves. A ProgressBar among the
    callbacks asks for one too.
    """
    rates = [callback.refresh_rate for callback in callbacks if isinstance(callback, ProgressBar)]
    if rates and asked in (None, True):
        asked = rates[-1]
    if not asked:
        return None
    return Progress() if asked is True else Progress(int(asked))


class Progress:
    """One bar for the training epochs, on rank 0. Values logged with `prog_bar=True` stand beside it."""

    def __init__(self, refresh_rate: int = 20):
        self.refresh_rate = refresh_rate
        self.bar: Any = None
        self.task: Any = None
        self.terminal = sys.stderr.isatty()

    def every(self, batches: int | None) -> int:
        """Batches between two updates."""
        if self.terminal or not batches:
            return self.refresh_rate if self.terminal else 1000
        return max(1, batches // LINES_AN_EPOCH)

    def start(self, trainer: Any) -> None:
        """An epoch begins."""
        if not self.terminal:
            return
        if self.bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(
                *columns, TextColumn("{task.fields[values]}"), console=Console(stderr=True), auto_refresh=False
            )
            self.bar.start()
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(f"epoch {trainer.current_epoch}", total=trainer.fit_loop.batches, values="")

    def update(self, trainer: Any, done: int) -> None:
        values = "  ".join(f"{name}={float(value):.4g}" for name, value in trainer.logs.step_values(True).items())
        if self.bar is not None:
            self.bar.update(self.task, completed=done, values=values, refresh=True)
        else:
            total = trainer.fit_loop.batches
            of = f"/{total}" if total else ""
            print(f"epoch {trainer.current_epoch}: batch {done}{of}  {values}".rstrip(), file=sys.stderr)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = self.task = None
