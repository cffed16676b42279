"""The k best of what was scored, by path."""

from __future__ import annotations

import math

from .monitor import BETTER, WORST


class Best:
    """`k` -1: all. A score that is not a number counts as the worst there is."""

    def __init__(self, k: int, mode: str):
        self.k, self.mode = k, mode
        self.scores: dict[str, float] = {}

    @property
    def full(self) -> bool:
        return 0 < self.k <= len(self.scores)

    def wants(self, score: float) -> bool:
        return not self.full or BETTER[self.mode](self._known(score), self.scores[self.worst()])

    def make_room(self) -> str | None:
        """The path that has to go for another, taken out; None while there is room."""
        if not self.full:
            return None
        worst = self.worst()
        del self.scores[worst]
        return worst

    def add(self, path: str, score: float) -> None:
        self.scores[path] = self._known(score)

    def _known(self, score: float) -> float:
        return WORST[self.mode] if math.isnan(score) else score

    def first(self) -> str:
        return (min if self.mode == "min" else max)(self.scores, key=self.scores.__getitem__)

    def worst(self) -> str:
        return (max if self.mode == "min" else min)(self.scores, key=self.scores.__getitem__)
