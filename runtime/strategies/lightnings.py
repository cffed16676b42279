"""What scripts ask `trainer.strategy` for, under Lightning's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..collectives import broadcast_object
from ..ranks import Ranks

if TYPE_CHECKING:
    from ..trainer import Trainer


class AsLightning(Ranks):
    """Messages among all ranks, which all of them call; in one process the very same object comes back."""

    trainer: Trainer | None

    @property
    def lightning_module(self) -> Any:
        return self.trainer.module if self.trainer is not None else None

    model = lightning_module

    def barrier(self, name: str | None = None) -> None:
        self.runtime.barrier()

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        """Rank `src`'s object, on every rank."""
        runtime = self.runtime
        return obj if runtime.world_size == 1 else broadcast_object(obj, runtime.group, runtime.rank, src)

    def reduce(self, tensor: Any, group: Any = None, reduce_op: str | None = "mean") -> Any:
        """Sum or mean over ranks."""
        return self.runtime.all_reduce(tensor, reduce_op or "sum")

    def all_gather(self, tensor: Any, group: Any = None, sync_grads: bool = False) -> Any:
        """Of shape (world, ...)."""
        return self.runtime.all_gather(tensor, sync_grads)
