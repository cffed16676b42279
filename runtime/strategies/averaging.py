"""Gradients averaged over ranks when `backward` returns, for loops that use a model in any way they like.

The model stays the user's own object: nothing depends on its forward, so losses from methods, bare parameters or
double backward are averaged alike. Averaging is linear, so it is right under accumulation: what an earlier backward
left is the same on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from ..collectives import broadcast_tensors

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
        self._handles: list = []
        self._paused = 0
        self.batch = 0  # the number of the training batch that is worked on, where somebody counts

    def follow(self, module: torch.nn.Module) -> None:
        """Start from rank 0's parameters and buffers, and watch the parameters that are new."""
        broadcast_tensors([*module.parameters(), *module.buffers()])
        for parameter in module.parameters():
            if parameter not in self._position:
                self._position[parameter] = len(self.parameters)
                self.parameters.append(parameter)
                if parameter.requires_grad:
                    self._watch(parameter)

    def _watch(self, parameter: torch.nn.Parameter) -> None:
        position, touched = self._position[parameter], self._touched
        self._handles.append(parameter.register_post_accumulate_grad_hook(lambda _: touched.add(position)))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def average(self) -> None:
        """Average what was touched, on any rank; where a rank did not touch it, its part is zero.

        RuntimeError on all ranks where this is for another batch than theirs: their numbers of backward passes differ.
        """
        if self._paused:
            return
        touched = torch.zeros(len(self.parameters) + 2, dtype=torch.int32)
        touched[list(self._touched)] = 1
        touched[-2], touched[-1] = self.batch, -self.batch
        self._touched.clear()
        dist.all_reduce(touched, dist.ReduceOp.MAX, group=self.group)
        if touched[-2] != -touched[-1]:
            raise RuntimeError(
                "ranks make different numbers of backward passes: every rank has to call manual_backward equally often "
                "for each batch; decide by what is the same on all (batch_idx, a value that all_reduce gave)"
            )
        bucket: list[torch.Tensor] = []
        size = 0
        for position in touched[:-2].nonzero().flatten().tolist():
            gradient = _gradient(self.parameters[position])
            if bucket and (size >= BUCKET_BYTES or gradient.dtype != bucket[0].dtype):
                self._reduce(bucket)
                bucket, size = [], 0
            bucket.append(gradient)
            size += gradient.numel() * gradient.element_size()
        if bucket:
            self._reduce(bucket)

    def _reduce(self, bucket: list[torch.Tensor]) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        self.reduce(flat)
        for gradient, mean in zip(bucket, flat.split([gradient.numel() for gradient in bucket]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def _mean(self, flat: torch.Tensor) -> None:
        dist.all_reduce(flat)
        flat /= self.world

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


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad.detach()
