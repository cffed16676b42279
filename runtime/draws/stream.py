"""Within a training step every rank draws from rank 0's stream of random numbers, which is the one process's.

Rank 0's state goes to the others when an epoch begins and after a validation; from there on all ranks draw as much, so
that it stays the same. Between the steps each rank has a stream of its own: a data set's items are not the others'.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from zlib import crc32

import torch

from ..checkpoint.randomness import KINDS, State, capture, differs, kind_differs
from ..collectives import broadcast_object, gather_objects
from ..data.divide import bounds
from .arrays import WholeArrays
from .rows import Rows
from .telling import OwnGenerators, Telling
from .tensors import WholeDraws

if TYPE_CHECKING:
    from ..module import Module
    from ..strategies.base import Strategy
    from ..trainer import Trainer

TENSORS = ("torch", "cuda")  # cheap to exchange at every step; the others are when a step has drawn from them
LEARNED = (*TENSORS, "random")  # in a fit's first epoch; NumPy's draws are seen when they happen
WORDS = 624  # of a state of Python's generator, which the last one counts


class OneStream:
    """Of one trainer. Where batches are not cut it does nothing, and each rank draws what its own stream gives."""

    def __init__(self, trainer: Trainer):
        self.trainer, self.runtime, self.rank = trainer, trainer.runtime, trainer.runtime.rank
        self.used = False  # by the current fit
        self.watches = False  # a step that draws where no one sees it
        self.shared: State | None = None  # the stream as the last step left it; None before the first one
        self.after: State = {}  # what the steps since rank 0 was asked have drawn from, as they left it
        self.stale = True  # rank 0 may have drawn since then, and has to be asked
        self.compares = False  # are all ranks asked, then, whether they have drawn as much?
        self.left: State | None = None  # rank 0's generators after the last step, where it is asked before each
        self.often = False  # is it? A loader is that draws between the steps
        self.own: State = {}  # this rank's, while a step runs
        self.drawn: set[str] = set()  # the kinds that a step has drawn from
        self.running = False
        self.learns = False  # a fit's first epoch, where a step may draw that has not drawn before
        self.steps = 0
        self.rows = Rows()
        self.arrays = WholeArrays(self.rows, self.enter_arrays)

    def open(self, module: Module) -> None:
        """A fit begins."""
        self.rank = self.runtime.rank
        cuts, compiled = self.trainer.cuts_batches and _suits(self.runtime.strategy), _compiled(module)
        self.used, self.watches = cuts and not compiled, cuts and compiled
        self.shared, self.after, self.drawn, self.learns, self.steps = None, {}, set(), True, 0
        self.stale, self.compares, self.often, self.left = True, False, False, None
        self.runtime.stream = self if self.used else None
        self.telling = Telling(self.runtime)
        if self.used:
            parameters = list(module.parameters())
            self.rows = Rows(parameter.shape for parameter in parameters)
            self.mode = WholeDraws(self.rows, self.rank, parameters)
            self.arrays = WholeArrays(self.rows, self.enter_arrays)
            self.arrays.open()
            self.generators = OwnGenerators(module)

    def close(self) -> None:
        self.used = self.watches = False
        self.runtime.stream = None
        self.arrays.close()

    def forget(self, often: bool = False) -> None:
        """Rank 0 may have drawn since the last step. All ranks say so at the same places; `often`: at every step."""
        self.stale, self.often = True, self.often or often
        self.compares = self.compares or not often

    def state(self) -> dict[str, Any] | None:
        """For a checkpoint: the stream, where it is known."""
        if self.shared is None or self.stale:
            return None
        running = {kind: KINDS[kind][0]() for kind in self.own}  # a hook or a step that writes it
        return {"shared": {**self.shared, **running}, "drawn": sorted(self.drawn)}

    def aside(self) -> State:
        """This rank's own generators where the shared stream has taken their place just now."""
        return dict(self.own) if self.rank else {}

    def load(self, state: dict[str, Any] | None) -> None:
        self.shared, drawn = (state["shared"], state["drawn"]) if state else (None, ())
        self.stale = state is None
        self.drawn.update(drawn)

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, a training step."""
        if self.watches:
            return self.watched(run)
        if not self.used:
            return run

        def run_alike(batch: Any, batch_idx: int) -> Any:
            self.mode.batch = batch
            try:
                return self.run(run, batch, batch_idx)
            finally:
                self.mode.batch = None
                self.steps += 1
                if self.steps == 1:
                    self.forget()  # what the ranks have learned of shapes in it, each with its own number of samples
                    self.telling.of_generators(self.generators)

        return run_alike

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The user's own `hook` at the beginning or the end of a batch, which all ranks call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.used or self.running:
                return hook(*args, **kwargs)
            return self.run(hook, *args, **kwargs)

        return call

    def run(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        new = self.begin()
        try:
            if not (new or self.learns) and self.drawn.isdisjoint(TENSORS):
                return run(*args, **kwargs)
            with self.mode:
                return run(*args, **kwargs)
        finally:
            self.end()

    def watched(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, which is compiled: it is told, once, that it draws."""

        def call(*args: Any) -> Any:
            if not self.learns:
                return run(*args)
            before = capture()
            outputs = run(*args)
            if differs(before, capture()):
                self.telling.certain("compiled or scripted code of the module, which draws on each process for itself")
            return outputs

        return call

    def learned(self) -> None:
        """A fit's first epoch is over: all that a step draws has been met."""
        if self.used and self.learns:
            self.telling.doubts(self.rows.readings.mistaken())
        self.learns = False

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
        if self.compares:
            self.compare()
        state = None
        if self.rank == 0:
            state = capture()
            if self.left is not None and not differs(state, self.left):
                state = None
        state = broadcast_object(state, self.runtime.group, self.rank)
        self.stale, self.left = False, None
        self.shared = self.shared if state is None else state
        return state is not None

    def compare(self) -> None:
        """Have all ranks drawn as much since they were last asked? What shapes mean they learn together."""
        mine = {kind: crc32(pickle.dumps(_plain(state))) for kind, state in self.after.items()}
        here = (mine, self.rows.readings.counts)
        found = gather_objects(here, self.runtime.group, self.runtime.world_size, "what its steps have drawn")
        apart = {kind for other, _ in found for kind in mine.keys() & other.keys() if mine[kind] != other[kind]}
        if apart:
            self.telling.apart(apart)
        for _, counts in found:
            self.rows.readings.learn(counts)
        self.compares, self.left, self.after = False, None, {}

    def enter(self, kind: str) -> None:
        """From here on the step draws from the shared stream of this kind. Rank 0's own is that one."""
        assert self.shared is not None
        if kind in self.own or kind not in self.shared:
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
            before = self.shared[kind] if self.rank else own
            if self.learns or kind not in self.drawn:
                self.note(kind, before, now)
            self.after[kind] = now
            if self.rank:
                self.shared[kind] = now
                write(own)
        self.own = {}
        if self.rows.found:
            self.drawn.add("torch")
        readings = self.rows.readings
        if self.learns and self.rows.divided:
            for name, numbers in self.rows.singles.items():
                readings.looped(name, numbers, self.rows.count)
        for why in readings.reasons:
            self.telling.certain(why, readings.reasons[why])
        if self.rank == 0 and self.often:
            self.left = capture()

    def note(self, kind: str, before: Any, now: Any) -> None:
        if not kind_differs(now, before):
            return
        self.drawn.add(kind)
        if kind == "random" and self.rows.divided:
            words = (now[1][-1] - before[1][-1]) % WORDS
            self.rows.readings.looped("random", words, self.rows.count)


def _plain(state: Any) -> Any:
    return state.numpy().tobytes() if isinstance(state, torch.Tensor) else state


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
