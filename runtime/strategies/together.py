"""Engines whose ranks hold parts of every layer, and send them to one another when all are about to use it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist


class Together:
    """Tells ranks that ask for other layers than the others, or in another order: where the layers are of one size, a
    rank would compute with parts of several, and where they are not it would wait or be ended.
    """

    def __init__(self, name: str, group: dist.ProcessGroup, meet: Callable[[], None] | None = None):
        """`name`: of the engine; `meet`: what to call before each message, where ranks may be elsewhere altogether."""
        self.name, self.group, self.meet = name, group, meet
        self.asked = 0
        self.at_once = dist.get_backend() == "gloo"  # elsewhere a message to the host would hold the device up

    def ask(self, *layer: int) -> None:
        """This rank is about to use a layer, of this number."""
        self.asked = hash((self.asked, *layer))
        if self.at_once:
            self.check()

    def check(self) -> None:
        """All ranks call this. RuntimeError on all where they differ."""
        if self.meet is not None:
            self.meet()
        marks = torch.tensor([self.asked, ~self.asked])
        dist.all_reduce(marks, dist.ReduceOp.MAX, group=self.group)
        if marks[0] != ~marks[1]:
            raise RuntimeError(
                f"training_step uses other layers on one rank than on another: under {self.name} each sends the others "
                "its parts of a layer when all ask for it; use the same layers in the same order on all ranks, or 'ddp'"
            )
