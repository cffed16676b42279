"""The stages of a pipeline: which layers each process keeps, how micro-batches go through, what layers cost."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, chain
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

from ..checkpoint import randomness
from ..collectives import broadcast_object, map_leaves
from ..data.move import move_to, to_cpu
from ..errors import ConfigurationError
from .dp import own_buffers

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module

NAME = "sequential_module"


class Stages:
    """`balance` says how many layers each rank keeps; the others' parameters give their memory back."""

    def __init__(self, sequential: torch.nn.Sequential, balance: list[int], runtime: Runtime, recompute: bool):
        self.sequential, self.runtime = sequential, runtime
        self.owner = owners(balance)
        self.rank, self.count = runtime.rank, len(balance)
        self.first, self.last = self.rank == 0, self.rank == self.count - 1
        self.layers = [layer for number, layer in enumerate(sequential) if self.owner[number] == self.rank]
        self.stage = Stage(self.layers, recompute, self.first)
        self.parameters = list(self.stage.parameters())
        mine = set(self.parameters)
        self.emptied = [p for p in sequential.parameters() if p not in mine]
        for parameter in self.emptied:
            parameter.data, parameter.grad = parameter.data.new_empty(0), None
        self._schedules: dict[Any, Any] = {}

    def keeps(self, name: str) -> bool:
        """Is this name of the module's state on this rank? What is outside the sequential module is on all."""
        parts = name.split(".")
        if parts[0] != NAME:
            return True
        numbers = {layer: number for number, layer in enumerate(self.sequential._modules)}
        return self.owner[numbers[parts[1]]] == self.rank

    def schedule(self, kind: str, pieces: int, rows: int, loss_of: Callable[..., torch.Tensor]) -> Any:
        """torch's schedule for micro-batches of so many rows; its buffers have their shapes, so it is kept for them."""
        from torch.distributed import pipelining

        key = (kind, pieces, rows, torch.is_autocast_enabled("cpu"))
        if key not in self._schedules:
            stage = pipelining.PipelineStage(self.stage, self.rank, self.count, self.runtime.device)
            answer = Answer()
            self.stage.tracing = True
            self._schedules[key] = answer, getattr(pipelining, kind)(stage, pieces, answer, scale_grads=False)
        answer, schedule = self._schedules[key]
        answer.loss_of = loss_of
        return schedule

    @contextmanager
    def giving(self, out: torch.Tensor) -> Iterator[None]:
        """Inside, calling the sequential module gives `out`, once."""
        calls: list[None] = []

        def give(_: torch.Tensor) -> torch.Tensor:
            calls.append(None)
            if len(calls) > 1:
                raise ConfigurationError(f"training_step calls self.{NAME} twice, and a pipeline runs it once a batch")
            return out

        with self.answering(give):
            yield

    @contextmanager
    def answering(self, answer: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
        """Inside, calling the sequential module gives `answer` of its input."""
        before = self.sequential.__dict__.get("forward")
        self.sequential.forward = answer  # type: ignore[method-assign]
        try:
            yield
        finally:
            if before is None:
                del self.sequential.__dict__["forward"]
            else:
                self.sequential.forward = before  # type: ignore[method-assign]

    def forward(self, taken: torch.Tensor) -> torch.Tensor:
        """Evaluation: `taken`, the same on all ranks, through all stages; the output on all ranks."""
        value: list[Any] = [taken if self.first else None]
        if not self.first:
            dist.recv_object_list(value, self.rank - 1, group=self.runtime.group)
        out = self.stage(*_several(move_to(value[0], self.runtime.device)))
        if not self.last:
            dist.send_object_list([to_cpu(out)], self.rank + 1, group=self.runtime.group)
        return self.shared(out if self.last else None)

    def shared(self, out: torch.Tensor | None) -> torch.Tensor:
        """The last rank's tensor, on all."""
        value = broadcast_object(out.cpu() if out is not None else None, self.runtime.group, self.rank, self.count - 1)
        return value.to(self.runtime.device)

    def spread_buffers(self) -> None:
        """Running statistics live where their layer does."""
        for number, layer in enumerate(self.sequential):
            for buffer in layer.buffers():
                dist.broadcast(buffer, self.owner[number])

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Inside, every rank has all parameters, gradients and buffers, and calls the layers itself; what is done to
        those of its stage stays.
        """
        answer = self.sequential.__dict__.pop("forward", None)
        self.spread_buffers()
        emptied = set(self.emptied)
        for number, layer in enumerate(self.sequential):
            for parameter in layer.parameters():
                self._spread(parameter, self.owner[number], parameter in emptied)
        try:
            yield
        finally:
            for parameter in self.emptied:
                parameter.grad = None
                parameter.data = parameter.data.new_empty(0)
            if answer is not None:
                self.sequential.forward = answer  # type: ignore[method-assign]

    def _spread(self, parameter: torch.nn.Parameter, owner: int, is_empty: bool) -> None:
        mine = (tuple(parameter.shape), parameter.grad is not None)
        shape, has_gradient = broadcast_object(mine, self.runtime.group, self.rank, owner)
        if is_empty:
            parameter.data = parameter.data.new_empty(shape)
            parameter.grad = torch.empty_like(parameter) if has_gradient else None
        dist.broadcast(parameter.data, owner)
        if parameter.grad is not None:
            dist.broadcast(parameter.grad, owner)

    def fill(self, module: torch.nn.Module, state: dict[str, Any]) -> None:
        """All parameters on this rank again."""
        emptied = {id(p) for p in self.emptied}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            if id(parameter) in emptied:
                parameter.data = state[name].to(self.runtime.device)
        self.emptied = []
        module.load_state_dict(state, strict=False)

    def release(self) -> None:
        self._schedules.clear()


def owners(balance: list[int]) -> dict[int, int]:
    """{number of a layer: the stage that has it}"""
    stages = chain.from_iterable([rank] * size for rank, size in enumerate(balance))
    return dict(enumerate(stages))


class Stage(torch.nn.Module):
    """The layers of one rank, one after another; `recompute`: their activations are not kept for backward."""

    tracing = False  # the next call is torch's to learn shapes, in later stages with numbers that mean nothing

    def __init__(self, layers: list[torch.nn.Module], recompute: bool, first: bool):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.recompute, self.first = recompute, first
        self.copies = not first and starts_in_place(layers[0])  # what comes in is a leaf of this rank's graph

    def forward(self, *values: Any) -> Any:
        """A layer may give several tensors; torch hands them on one by one."""
        if self.tracing:
            self.tracing = False
            return self._traced(values)
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(self._through, *values, use_reentrant=False)
        return self._through(*values)

    def _traced(self, values: tuple[Any, ...]) -> Any:
        """Nothing is drawn, and no running statistics change."""
        if not self.first:
            with torch.no_grad():
                for value in values:
                    value.zero_()
        state = randomness.capture()
        with own_buffers(self):
            out = self._through(*values)
        randomness.restore(state)
        return out

    def _through(self, *values: Any) -> Any:
        if self.copies:
            values = tuple(value.clone() for value in values)
        value = values[0] if len(values) == 1 else values
        for layer in self.layers:
            value = layer(value)
        return value


def starts_in_place(layer: torch.nn.Module) -> bool:
    """Does it overwrite its input?"""
    while isinstance(layer, torch.nn.Sequential) and len(layer):
        layer = layer[0]
    return bool(getattr(layer, "inplace", False))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class Answer:
    """A schedule's loss function, which is another one at every batch."""

    loss_of: Callable[..., torch.Tensor]
    tracing = True  # the first call is torch's to learn shapes

    def __call__(self, *args: Any) -> torch.Tensor:
        if not self.tracing:
            return self.loss_of(*args)
        self.tracing = False
        state = randomness.capture()
        loss = self.loss_of(*args)
        randomness.restore(state)
        return loss


class _Taken(Exception):
    """Ends a training_step when it calls the sequential module."""


def taken_by(module: Module, batch: Any, batch_idx: int) -> torch.Tensor | None:
    """What training_step gives to the sequential module; None where it skips the batch before. Nothing is logged and no
    random number is used up.
    """
    found: list[torch.Tensor] = []

    def take(value: torch.Tensor) -> torch.Tensor:
        found.append(value.detach())
        raise _Taken

    state = randomness.capture()
    sequential: Any = module.sequential_module
    before = sequential.__dict__.get("forward")
    sequential.forward = take
    outputs: Any = None
    try:
        with quiet(module):
            outputs = module.training_step(batch, batch_idx)
    except _Taken:
        pass
    finally:
        del sequential.__dict__["forward"]
        if before is not None:
            sequential.forward = before
        randomness.restore(state)
    if not found and outputs is None:
        return None
    if not found:
        raise RuntimeError(f"{type(module).__name__}.training_step did not call self.{NAME}")
    return found[0]


class _NoLogs:
    """Stands for the trainer's logs, and forgets."""

    dataloader_idx = None
    names: Mapping[Any, Any] = MappingProxyType({})

    def first(self, *_: Any) -> Any:
        return SimpleNamespace()

    def log(self, *_: Any) -> None: ...


class _Quiet:
    """A trainer that says and logs nothing and is alone: for steps that only some ranks run."""

    def __init__(self, trainer: Any):
        self._trainer = trainer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)

    logs = _NoLogs()

    @property
    def runtime(self) -> Any:
        return self

    world_size, share = 1, 1.0

    @property
    def device(self) -> Any:
        return self._trainer.runtime.device

    def print(self, *_: Any, **__: Any) -> None: ...

    def all_reduce(self, value: Any, *_: Any) -> Any:
        return value

    def all_gather(self, value: Any, *_: Any) -> Any:
        return value

    def broadcast(self, value: Any) -> Any:
        return value


@contextmanager
def quiet(module: Module) -> Iterator[None]:
    trainer = module._trainer
    module._trainer = _Quiet(trainer)  # type: ignore[assignment]
    try:
        yield
    finally:
        module._trainer = trainer


def balanced(sequential: torch.nn.Sequential, value: torch.Tensor, stages: int, repeats: int = 3) -> list[int]:
    """Layers a stage, so that the slowest stage is as fast as can be: the layers' measured forward and backward."""
    state = randomness.capture()
    costs = []
    given: Any = value
    for layer in copy.deepcopy(sequential):
        given = map_leaves(given, _leaf)
        best = float("inf")
        for _ in range(repeats):
            own = map_leaves(given, torch.clone)  # a layer may overwrite it
            start = time.perf_counter()
            out = layer(own)
            differentiable = [part for part in _several(out) if part.requires_grad]
            if differentiable:
                torch.autograd.backward([part.sum() for part in differentiable])
            best = min(best, time.perf_counter() - start)
        costs.append(best)
        given = out
    randomness.restore(state)
    return cut_evenly(costs, stages)


def _leaf(value: torch.Tensor) -> torch.Tensor:
    return value.detach().requires_grad_(value.is_floating_point())


def cut_evenly(costs: list[float], stages: int) -> list[int]:
    """Sizes of `stages` runs of neighbours, none empty, whose largest sum is the least possible."""
    sums = [0.0, *accumulate(costs)]

    @cache
    def best(start: int, left: int) -> tuple[float, tuple[int, ...]]:
        if left == 1:
            return sums[-1] - sums[start], (len(costs) - start,)
        found: tuple[float, tuple[int, ...]] = (float("inf"), ())
        for end in range(start + 1, len(costs) - left + 2):
            rest, sizes = best(end, left - 1)
            found = min(found, (max(sums[end] - sums[start], rest), (end - start, *sizes)))
        return found

    return list(best(0, stages)[1])
