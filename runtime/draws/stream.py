"""Within a training step every rank draws from rank 0's stream of random numbers, which is the one process's.

Rank 0's state goes to the others when an epoch begins and after a validation; from there on all ranks draw as much, so
that it stays the same. Between the steps each rank has a stream of its own: a data set's items are not the others'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..checkpoint.randomness import KINDS, State, capture, differs, kind_differs
from ..collectives import broadcast_object
from ..data.divide import bounds
from .arrays import WholeArrays
from .rows import Rows
from .tensors import WholeDraws

if TYPE_CHECKING:
    from ..module import Module
    from ..strategies.base import Strategy
    from ..trainer import Trainer

TENSORS = ("torch", "cuda")  # cheap to exchange at every step; the others are when a step has drawn from them
LEARNED = (*TENSORS, "random")  # in a fit's first epoch; NumPy's draws are seen when they happen


class OneStream:
    """Of one trainer. Where batches are not cut it does nothing, and each rank draws what its own stream gives."""

    def __init__(self, trainer: Trainer):
        self.trainer, self.runtime, self.rank = trainer, trainer.runtime, trainer.runtime.rank
        self.used = False  # by the current fit
        self.shared: State | None = None  # the stream as the last step left it; None before the first one
        self.stale = True  # rank 0 may have drawn since then, and has to be asked
        self.left: State | None = None  # rank 0's generators after the last step, where it is asked before each
        self.often = False  # is it? A loader is that draws between the steps
        self.own: State = {}  # this rank's, while a step runs
        self.drawn: set[str] = set()  # the kinds that a step has drawn from
        self.running = False
        self.learns = False  # a fit's first epoch, where a step may draw that has not drawn before
        self.rows = Rows()
        self.arrays = WholeArrays(self.rows, self.enter_arrays)

    def open(self, module: Module) -> None:
        """A fit begins."""
        self.rank = self.runtime.rank
        self.used = self.trainer.cuts_batches and _suits(self.runtime.strategy) and not _compiled(module)
        self.shared, self.drawn, self.learns = None, set(), True
        self.stale, self.often, self.left = True, False, None
        self.runtime.stream = self if self.used else None
        if self.used:
            self.mode = WholeDraws(self.rows, self.rank, {parameter.shape for parameter in module.parameters()})
            self.arrays.open()

    def close(self) -> None:
        self.used, self.runtime.stream = False, None
        self.arrays.close()

    def forget(self, often: bool = False) -> None:
        """Rank 0 may have drawn since the last step. All ranks say so at the same places; `often`: at every step."""
        self.stale, self.often = True, self.often or often

    def state(self) -> dict[str, Any] | None:
        """For a checkpoint: the stream, where it is known."""
        if self.shared is None or self.stale:
            return None
        return {"shared": dict(self.shared), "drawn": sorted(self.drawn)}

    def load(self, state: dict[str, Any] | None) -> None:
        self.shared, drawn = (state["shared"], state["drawn"]) if state else (None, ())
        self.stale = state is None
        self.drawn.update(drawn)

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, a training step."""
        if not self.used:
            return run

        def run_alike(batch: Any, batch_idx: int) -> Any:
            new = self.begin()
            try:
                if not (new or self.learns) and self.drawn.isdisjoint(TENSORS):
                    return run(batch, batch_idx)
                with self.mode:
                    return run(batch, batch_idx)
            finally:
                self.end()

        return run_alike

    def begin(self, whole: bool = False) -> bool:
        """From here to `end` this rank draws from the shared stream; `whole`: for all samples one by one. True where it
        is another than the last step left, or the first: nobody knows yet from what will be drawn.
        """
        self.running = True
        if self.runtime.part is None or whole:
            self.rows.set(0, 1, 1)
        else:
            total = self.runtime.part[1]
            self.rows.set(*bounds(total, *self.runtime.strategy.data_place()), total)
        new = self.stale and self.ask()
        for kind in KINDS if new else (*(LEARNED if self.learns else TENSORS), *self.drawn):
            self.enter(kind)
        return new

    def ask(self) -> bool:
        """Rank 0's stream, on every rank; was it another?"""
        self.arrays.open()  # where NumPy has only now been imported
        state = None
        if self.rank == 0:
            state = capture()
            if self.left is not None and not differs(state, self.left):
                state = None
        state = broadcast_object(state, self.runtime.group, self.rank)
        self.stale, self.left = False, None
        self.shared = self.shared if state is None else state
        return state is not None

    def enter(self, kind: str) -> None:
        """From here on the step draws from the shared stream of this kind. Rank 0's own is that one."""
        assert self.shared is not None
        if kind in self.own or kind not in self.shared or (self.rank == 0 and kind not in TENSORS):
            return
        read, write = KINDS[kind]
        own = read()
        if own is not None:
            self.own[kind] = own
            if self.rank:
                write(self.shared[kind])

    def enter_arrays(self) -> bool:
        if self.running:
            self.enter("numpy")
        return self.running

    def end(self) -> None:
        assert self.shared is not None
        self.running = False
        for kind, own in self.own.items():
            read, write = KINDS[kind]
            now = read()
            if kind not in self.drawn and kind_differs(now, self.shared[kind] if self.rank else own):
                self.drawn.add(kind)
            if self.rank:
                self.shared[kind] = now
                write(own)
        self.own = {}
        if self.rank == 0 and self.often:
            self.left = capture()


def _suits(strategy: Strategy) -> bool:
    """Has every process its own part of a batch, on a CPU or a GPU?"""
    part = strategy.data_place()[1] == strategy.runtime.world_size
    return part and not strategy.one_process_a_node and strategy.runtime.device.type in ("cpu", "cuda")


def _compiled(module: Module) -> bool:
    """Compiled code draws where no one sees it."""
    return any(
        isinstance(part, torch.jit.ScriptModule)
        or type(part).__name__ == "OptimizedModule"
        or getattr(part, "_compiled_call_impl", None) is not None
        for part in module.modules()
    )
