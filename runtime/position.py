"""Where in its epoch a fit stands, and how it goes on there: the same batches, the same random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .checkpoint import randomness
from .data.advance import Resume
from .data.loaders import parts_of
from .data.skip import skipping
from .loop_names import Phase

if TYPE_CHECKING:
    from .fit import FitLoop


class Position:
    """The generators as the epoch began, and what a checkpoint says about going on."""

    def __init__(self, loop: FitLoop):
        self.loop, self.trainer = loop, loop.trainer
        self.at_epoch_start: dict[str, Any] | None = None
        self.resumed: dict[str, Any] | None = None  # until the first epoch after a resume has begun
        self.continued = False
        self.own: list[torch.Generator] = []  # of this rank's own loaders

    # -- for checkpoints ------------------------------------------------------------------------------------------

    def state(self, now: list[Any], starts: list[Any]) -> dict[str, Any]:
        """`now`: the generators of all ranks; `starts`: those when the epoch began."""
        loop, complete = self.loop, self.loop.phase == Phase.COMPLETE
        begun = loop.batch_idx + 1 if loop.phase in (Phase.STARTED, Phase.PROCESSED) else 0
        return {
            "epoch": loop.epoch + complete,
            "batches": begun * self.whole_batches_a_step(),
            "logged_steps": loop.logged_steps,
            "ahead": loop.ahead.drawn_from if begun and loop.ahead is not None else None,
            "before_epoch": loop.total_batch_idx + 1 - begun,
            "world_size": self.trainer.world_size,
            "at_epoch_start": None if complete else self.at_epoch_start,
            "starts": None if complete else starts,
            "now": now,
            "loader": randomness.capture_loader(self.trainer.train_dataloader),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.loop.epoch = state["epoch"]
        self.resumed, self.continued = state, True

    @property
    def in_the_middle(self) -> bool:
        """Does the epoch that is about to begin go on where a checkpoint stands?"""
        return self.resumed is not None and bool(self.resumed["batches"])

    def whole_batches_a_step(self) -> int:
        """How many of the script's batches form one step."""
        runtime = self.trainer.runtime
        return 1 if runtime.global_batch or self.trainer.whole else runtime.strategy.data_place()[1]

    # -- for the loop ---------------------------------------------------------------------------------------------

    def batches(self, source: Any) -> Iterable[tuple[int, Any]]:
        """(number, batch) of the epoch; after a resume in its middle, without those that are behind."""
        resumed, self.resumed = self.resumed, None
        limit = self.loop.limit
        self.own = [part.own_generator for part in parts_of(source) if part.own_generator is not None]
        if resumed is None or not resumed["batches"]:
            if resumed is not None and resumed.get("now"):
                randomness.restore_loader(self.trainer.train_dataloader, resumed["loader"])
                self.restore_now(resumed)
            self.at_epoch_start = self.capture()
            if self.continued and self.persistent:
                source = skipping(source, Resume(0, self.redraw(self.at_epoch_start), lambda: None))
            return enumerate(itertools.islice(source, limit))
        start = self.at_epoch_start = self.own_start(resumed)
        self.restore(start)
        first = resumed["batches"] // self.whole_batches_a_step()
        self.loop.batch_idx = first - 1
        ahead = resumed.get("ahead")
        early = partial(randomness.restore, ahead) if ahead is not None else None
        resume = Resume(resumed["batches"], self.redraw(start), lambda: self.restore_now(resumed), early)
        rest = skipping(source, resume)
        return enumerate(itertools.islice(rest, None if limit is None else max(0, limit - first)), start=first)

    @property
    def persistent(self) -> bool:
        return bool(getattr(self.trainer.train_dataloader, "persistent_workers", False))

    def redraw(self, start: dict[str, Any]) -> Callable[[], None]:
        """What to do before batches are drawn: persistent workers draw their seed in the first epoch only."""
        return (lambda: self.restore(start)) if self.loop.epoch and self.persistent else (lambda: None)

    def capture(self) -> dict[str, Any]:
        return {"all": self.now(), "loader": randomness.capture_loader(self.trainer.train_dataloader)}

    def now(self) -> randomness.State:
        """This rank's generators, those of its own loaders with them."""
        own = {"own": [generator.get_state() for generator in self.own]} if self.own else {}
        draws = self.loop.draws
        return {**randomness.capture(), **draws.aside(), **own, "steps": draws.state()}

    def restore_rank(self, state: randomness.State) -> None:
        randomness.restore(state)
        for generator, own in zip(self.own, state.get("own", ())):  # noqa: B905  other loaders may have been given
            generator.set_state(own)
        self.loop.draws.load(state.get("steps"))

    def own_start(self, resumed: dict[str, Any]) -> dict[str, Any]:
        """The generators as this rank's epoch began. Rank 0 draws the batches; the others' count for their workers,
        and are their own where the world has changed.
        """
        trainer, start = self.trainer, resumed["at_epoch_start"]
        if resumed.get("starts") and resumed["world_size"] == trainer.world_size:
            own = resumed["starts"][trainer.global_rank]
        else:
            own = start["all"] if trainer.is_global_zero or trainer.whole else self.now()
        return {"all": own, "loader": start["loader"]}

    def restore(self, start: dict[str, Any]) -> None:
        randomness.restore_loader(self.trainer.train_dataloader, start["loader"])
        self.restore_rank(start["all"])

    def restore_now(self, resumed: dict[str, Any]) -> None:
        """Generators as when the checkpoint was written: this rank's, or rank 0's where the world has changed."""
        if resumed["world_size"] == self.trainer.world_size:
            self.restore_rank(resumed["now"][self.trainer.global_rank])
        elif self.trainer.is_global_zero:
            randomness.restore(resumed["now"][0])
