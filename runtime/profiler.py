"""`trainer.profiler`: what code written for Lightning's profilers finds here."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class Unmeasured:
    """Nothing is measured; use torch.profiler around `trainer.fit`."""

    def profile(self, action_name: str) -> AbstractContextManager:
        return nullcontext()

    def start(self, action_name: str) -> None: ...
    def stop(self, action_name: str) -> None: ...
