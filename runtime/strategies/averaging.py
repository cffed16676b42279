"""Gradients averaged over ranks when `backward` returns, for loops that use a model in any way they like.

The model stays the user's own object: nothing depends on its forward, so losses from methods, bare parameters or
double backward are averaged alike. Averaging is linear, so it is right under accumulation: what an earlier backward
left is the same on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from ..collectives import broadcast_tensors

DENSE, SPARSE = 1, 2  # kinds of gradients
BUCKET_BYTES = 25 * 2**20  # as DistributedDataParallel


class GradientAverager:
    """Notes the parameters that a backward touched, and averages their gradients. One for all models of a run."""

    def __init__(self, world: int, group: dist.ProcessGroup, reduce: Callable[[torch.Tensor], None] | None = None):
        """`reduce`: what makes the mean, in place, of a flat tensor of gradients; by default an all-reduce."""
        self.world, self.group = world, group
        self.reduce = reduce or self._mean
        self.parameters: list[torch.nn.Parameter] = []
        self._position: dict[torch.nn.Parameter, int] = {}
        self._touched: set[int] = set()
        self._frozen: list[torch.nn.Parameter] = []
        self._handles: list = []
        self._paused = 0
        self.expects = True  # may gradients come just now?
        self._unasked: set[int] = set()  # the parameters to which some came when they might not
        self.batch = 0  # the number of the training batch that is worked on, where somebody counts

    def follow(self, module: torch.nn.Module) -> None:
        """Start from rank 0's parameters and buffers, wherever they are by now, and watch the parameters."""
        broadcast_tensors([*module.parameters(), *module.buffers()], host=self.group)
        self.watch(module.parameters())

    def watch(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Average these too; the same ones in the same order on all ranks."""
        for parameter in parameters:
            if parameter not in self._position:
                self._position[parameter] = len(self.parameters)
                self.parameters.append(parameter)
                self._frozen.append(parameter)
        self._watch_thawed()

    def _watch_thawed(self) -> None:
        """A frozen parameter takes no hook; one that is frozen no longer may have a gradient already."""
        for parameter in [p for p in self._frozen if p.requires_grad]:
            position = self._position[parameter]
            hook = parameter.register_post_accumulate_grad_hook(lambda p, position=position: self._touch(position, p))
            self._handles.append(hook)
            if parameter.grad is not None:
                self._touched.add(position)
        self._frozen = [p for p in self._frozen if not p.requires_grad]

    def _touch(self, position: int, parameter: torch.Tensor) -> None:
        if parameter.grad is None:  # torch also tells of a backward that brings none
            return
        self._touched.add(position)
        if not self.expects and not self._paused:
            self._unasked.add(position)

    def expect(self) -> None:
        """A backward begins whose gradients are averaged. Ones that came unasked for and were cleared since, as those
        of a search for a perturbation are, are of no step.
        """
        gone = {position for position in self._unasked if not _holds(self.parameters[position].grad)}
        gone |= {position for position in self._touched if self.parameters[position].grad is None}
        self._unasked -= gone
        self._touched -= gone
        self.expects = True

    def check(self) -> None:
        """Before a step of an optimizer. Raises RuntimeError where it would be one of this rank's own gradients."""
        if self._unasked:
            refuse_own()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def begin_batch(self, number: int | None) -> None:
        """Training batch `number` begins; None: no other does for now, and all ranks are here."""
        self.batch = -1 if number is None else number
        if number is None:
            self.average()

    @property
    def touched(self) -> list[torch.nn.Parameter]:
        """What this rank's backward passes have given a gradient since the last average."""
        return [self.parameters[position] for position in sorted(self._touched)]

    def average(self) -> None:
        """Average what was touched, on any rank; where a rank did not touch it, its part is zero.

        RuntimeError on all ranks where this is for another batch than theirs: their numbers of backward passes differ.
        """
        if self._paused:
            return
        if self._frozen:
            self._watch_thawed()
        touched = torch.zeros(len(self.parameters) + 2, dtype=torch.int32)
        for position in self._touched:
            gradient = self.parameters[position].grad
            touched[position] = SPARSE if gradient is not None and gradient.is_sparse else DENSE
        self._touched.clear()
        self._agree(touched, 0)
        bucket: list[torch.Tensor] = []
        size = 0
        for position in touched[:-2].nonzero().flatten().tolist():
            if touched[position] == SPARSE:
                self._reduce_sparse(self.parameters[position])
                continue
            gradient = _gradient(self.parameters[position])
            if bucket and (size >= BUCKET_BYTES or gradient.dtype != bucket[0].dtype):
                self._reduce(bucket)
                bucket, size = [], 0
            bucket.append(gradient)
            size += gradient.numel() * gradient.element_size()
        if bucket:
            self._reduce(bucket)

    def meet(self, optimizer: int) -> None:
        """Before the step of this optimizer, where steps send messages: all ranks are about to make it."""
        self._agree(torch.zeros(len(self.parameters) + 2, dtype=torch.int32), 1 + optimizer)

    def _agree(self, marks: torch.Tensor, act: int) -> None:
        """The largest of all ranks' `marks`, whose last two tell what a rank is at: 0 for a backward, or a step."""
        marks[-2] = self.batch * 64 + act
        marks[-1] = -marks[-2]
        dist.all_reduce(marks, dist.ReduceOp.MAX, group=self.group)
        if marks[-2] != -marks[-1]:
            raise RuntimeError(
                "ranks make different numbers of backward passes: every rank has to call manual_backward equally often "
                "for each batch; decide by what is the same on all (batch_idx, a value that all_reduce gave)"
            )

    def _reduce(self, bucket: list[torch.Tensor]) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        self.reduce(flat)
        for gradient, mean in zip(bucket, flat.split([gradient.numel() for gradient in bucket]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def _reduce_sparse(self, parameter: torch.nn.Parameter) -> None:
        """An embedding's gradient: the rows that any rank's batch has touched."""
        gradient = parameter.grad
        if gradient is None:
            gradient = parameter.new_zeros(parameter.shape).to_sparse(1)
        elif not gradient.is_sparse:
            gradient = gradient.to_sparse(1)
        gradient = gradient.coalesce()
        summed = self._summed(gradient)
        parameter.grad = (summed / self.world).to(gradient.dtype)

    def _mean(self, flat: torch.Tensor) -> None:
        flat.copy_(self._summed(flat) / self.world)

    def _summed(self, gradient: torch.Tensor) -> torch.Tensor:
        """In float64 where the sum of equal gradients, divided again, would be another one: of 3, 5, 6, 7 ranks."""
        exact = self.world & (self.world - 1) == 0 or gradient.dtype == torch.float64
        wide = gradient if exact else gradient.double()
        dist.all_reduce(wide)
        return wide

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


@contextmanager
def averaged(module: torch.nn.Module) -> Iterator[None]:
    """For engines whose ranks hold different weights: inside, the module has their mean; then its own again."""
    own = [parameter.detach().clone() for parameter in module.parameters()]
    average_weights(module)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), own, strict=True):
                parameter.copy_(value)


def average_weights(module: torch.nn.Module) -> None:
    """Give every rank the mean of all ranks' parameters."""
    world = dist.get_world_size()
    with torch.no_grad():
        for parameter in module.parameters():
            mean = parameter.detach().clone(memory_format=torch.contiguous_format)
            dist.all_reduce(mean)
            parameter.copy_(mean / world)


def clip_parts(
    measured: Iterable[torch.nn.Parameter], clipped: Iterable[torch.nn.Parameter], value: float, device: torch.device
) -> None:
    """Clip the gradients of `clipped` by the norm of all ranks' `measured` together, where each rank has other ones."""
    norms = [
        p.grad.detach().norm(dtype=None if p.grad.dtype == torch.float64 else torch.float32)
        for p in measured
        if p.grad is not None
    ]
    square = sum(
        (norm.to(device).double().square() for norm in norms), torch.zeros((), dtype=torch.float64, device=device)
    )
    dist.all_reduce(square)
    scale = (value / (square.sqrt() + 1e-6)).clamp(max=1.0)
    for gradient in [p.grad for p in clipped if p.grad is not None]:
        gradient.mul_(scale.to(gradient.dtype))


def zero_of(parameters: Iterable[torch.nn.Parameter]) -> Any:
    """Zero, whose gradient with respect to each of the parameters is zero."""
    return sum(parameter.reshape(-1)[:1].sum() * 0.0 for parameter in parameters if parameter.requires_grad)


def refuse_own() -> None:
    """RuntimeError for a step that would be one of this rank's own gradients."""
    raise RuntimeError(
        "training_step called the backward of a loss itself, whose gradients then stay this process's own: call "
        "self.manual_backward(loss) in place of loss.backward()"
    )


def _holds(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and bool((gradient.coalesce().values() if gradient.is_sparse else gradient).any())


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad.detach()
