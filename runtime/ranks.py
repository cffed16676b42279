"""Which of the processes this one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .handle import Runtime


class Ranks:
    """As the Trainer and its strategy both tell, under Lightning's names."""

    runtime: Runtime

    @property
    def is_global_zero(self) -> bool:
        return self.runtime.is_global_zero

    @property
    def global_rank(self) -> int:
        return self.runtime.rank

    @property
    def local_rank(self) -> int:
        return self.runtime.place.local_rank

    @property
    def world_size(self) -> int:
        return self.runtime.settings.world_size
