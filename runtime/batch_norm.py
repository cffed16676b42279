"""Batch norm over the whole global batch, on any device: `Trainer(sync_batchnorm=True)`.

Each rank brings its count, mean and sum of squares for a layer in one message; autograd's way back is one more. Samples
count once however a batch is cut, and one that a rank with an empty share has borrowed counts nothing, so the
statistics are those of one process (Chan, Golub & LeVeque, Updating Formulae and a Pairwise Algorithm for Computing
Sample Variances, 1979). torch's SyncBatchNorm needs GPUs and counts what is borrowed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm

from .collectives import sent

if TYPE_CHECKING:
    from .handle import Runtime

DIMENSIONS = {torch.nn.BatchNorm2d: 4, torch.nn.BatchNorm3d: 5}

_joined: weakref.WeakKeyDictionary[Any, JoinedNorms] = weakref.WeakKeyDictionary()


class JoinedNorms:
    """The batch norms of a module while it is trained on several processes; none, where nothing is to be joined."""

    def __init__(self, runtime: Runtime, module: torch.nn.Module | None = None):
        self.runtime = runtime
        self.open = True
        self.sums: list[torch.Tensor] | None = None  # of the current step, where anybody wants them
        self.own: list[torch.Tensor] = []  # what this rank brought to each
        self.calls: list[tuple[Any, int, bool]] = []  # of this step: the part, its input's dimensions, is it trained
        self.stands_in = False  # this rank brings nothing
        self.parts: list[Any] = [] if module is None else [part for part in module.modules() if can_join(part)]
        for part in self.parts:
            kind: Any = type(part)
            part.__class__ = joined_class(kind)
            _joined[part] = self
        self.usual = [(part, dimensions(part), True) for part in self.parts if part.training]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Inside, every rank's batches are its own, and their number differs by rank (evaluation)."""
        self.open, before = False, self.open
        try:
            yield
        finally:
            self.open = before

    def close(self) -> None:
        """The parts are what they were."""
        for part in self.parts:
            _joined.pop(part, None)
            if Joined in type(part).__bases__:  # no engine has put its own class on it
                part.__class__ = type(part).__bases__[1]
        self.parts, self.sums, self.own, self.calls, self.usual = [], None, [], [], []

    def new_step(self) -> None:
        self.usual = self.calls or self.usual
        self.sums, self.own, self.calls = [], [], []

    def absent(self) -> Any:
        """What a rank adds to its loss when its step has none: zero, with the messages of the way back in it. Those of
        the way there that its step has not sent are sent now, by what the last step called.
        """
        before, self.stands_in = self.runtime.part, True
        self.runtime.part = (0, 1)
        try:
            for part, dims, trained in self.usual[len(self.calls) :]:
                shape = (1, part.num_features, *[1] * (dims - 2))
                like = part.weight if part.weight is not None else part.running_mean
                part(torch.zeros(shape, dtype=like.dtype, device=like.device).requires_grad_(trained))
        finally:
            self.runtime.part, self.stands_in = before, False
        return sum(total.sum() * 0.0 for total in self.sums or ())

    def answer(self) -> None:
        """The same messages alone, where a rank has no loss: nothing gets a gradient by it."""
        nothing = self.absent()
        if self.own:
            torch.autograd.grad(nothing, self.own)

    def statistics(self, x: torch.Tensor, channels: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(count, mean, biased variance) over all ranks of x (batch, channels, ...); the last two per channel."""
        part, (rank, ranks) = self.runtime.part, self.runtime.strategy.data_place()
        borrowed = part is not None and part[0] == 0
        count = 0 if borrowed else x.numel() // channels
        variance, mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=0)
        own = torch.cat([torch.full_like(mean[:1], count), mean, variance * count])
        rows = torch.zeros(ranks, len(own), dtype=own.dtype, device=own.device)
        rows = rows.index_copy(0, torch.tensor([rank], device=own.device), own[None])
        total = SumOverRanks.apply(rows, self.runtime.group if own.device.type == "cpu" else None)
        if self.sums is not None and total.requires_grad:
            self.sums.append(total)
            self.own.append(rows)
        counts, means, squares = total.split([1, channels, channels], dim=1)
        everything = counts.detach().sum()
        mean = (counts * means).sum(0) / everything
        return everything, mean, (squares + counts * (means - mean) ** 2).sum(0) / everything


class SumOverRanks(torch.autograd.Function):
    """The sum of all ranks' tensors, which may be differentiated any number of times."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        total = sent(tensor.clone())
        dist.all_reduce(total, group=group)
        return total.to(tensor.device)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, None]:
        return SumOverRanks.apply(gradient, ctx.group), None


class Joined(_BatchNorm):
    """In front of a class of batch norms: statistics of training are those of all ranks."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        together = _joined.get(self)
        if together is None or not together.open or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        wide = input.dtype if input.dtype == torch.float64 else torch.float32
        x = input.to(wide)
        if together.sums is not None:
            together.calls.append((self, input.ndim, input.requires_grad))
        count, mean, variance = together.statistics(x, input.shape[1])
        if together.stands_in and count == 0:
            return input  # no rank has a batch
        if x.device.type == "cpu" and count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
        if self.training and self.track_running_stats:
            self._follow(count, mean.detach(), variance.detach())
        shape = (1, -1, *[1] * (x.ndim - 2))
        result = (x - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        return result.to(input.dtype)

    def _follow(self, count: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> None:
        """The running statistics, as torch's batch norm keeps them."""
        if self.running_mean is None or self.running_var is None:
            return
        factor = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if factor is None:
                factor = 1.0 / float(self.num_batches_tracked)
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), float(factor or 0.0))
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), float(factor or 0.0))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are of the plain class."""
        reduced: Any = super().__reduce_ex__(2)
        return object.__new__, (type(self).__bases__[1],), *reduced[2:]


def dimensions(part: torch.nn.Module) -> int:
    """Of what a batch norm takes in, the fewest."""
    return next((number for kind, number in DIMENSIONS.items() if isinstance(part, kind)), 2)


def can_join(part: torch.nn.Module) -> bool:
    """Is it a batch norm that normalises as torch's do? One with a forward of its own stays as it is."""
    return isinstance(part, _BatchNorm) and type(part).forward is _BatchNorm.forward


@cache
def joined_class(kind: Any) -> Any:
    """`kind` with the statistics of all ranks."""
    return type(f"Joined{kind.__name__}", (Joined, kind), {})


def explain(error: BaseException, several: bool) -> None:
    """Batch norm's own error on several processes says what it is, and gains what to do."""
    if several and isinstance(error, ValueError) and str(error).startswith("Expected more than 1 value per channel"):
        way_out = "this process holds one sample of the batch: use Trainer(sync_batchnorm=True), or larger batches"
        error.args = (f"{error}; {way_out}",)
