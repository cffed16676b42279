"""Gradients averaged over all ranks at every step: whole, or in eight bits."""

from __future__ import annotations

import torch
import torch.distributed as dist

from .base import Algorithm, mean_over_ranks
from .bytes import Packed, pack, unpack


class GradientAllReduce(Algorithm):
    """The exact mean.

    Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.
    """

    def __init__(self, hierarchical: bool = False, average: bool = True):
        self.average = average

    def reduce(self, flat: torch.Tensor) -> None:
        if self.average:
            mean_over_ranks(flat)
        else:
            dist.all_reduce(flat)


class ByteGrad(Algorithm):
    """The mean in eight bits: each rank averages one part of what all have sent it, and sends that to all, so that a
    rank sends 2 (world - 1) / world bytes a number where an all-reduce of float32 sends 8 (world - 1) / world.

    Dettmers, 8-Bit Approximations for Parallelism in Deep Learning, ICLR 2016; Gan et al., BAGUA, VLDB 2021.
    """

    dense = True

    def __init__(self, hierarchical: bool = False, average: bool = True):
        self.average = average
        self.bytes_sent = self.bytes_whole = 0  # by this rank; what a float32 all-reduce would have sent

    def reduce(self, flat: torch.Tensor) -> None:
        mean = scatter_gather_mean(flat, self)
        flat.copy_(mean if self.average else mean * dist.get_world_size())

    def told(self) -> str | None:
        if not self.bytes_whole:
            return None
        saved = 100 * (1 - self.bytes_sent / self.bytes_whole)
        return f"bytegrad: {self.bytes_sent} bytes of gradients sent by a rank, {saved:.0f} % less than in float32"


def scatter_gather_mean(flat: torch.Tensor, count: ByteGrad | None = None) -> torch.Tensor:
    """The mean over ranks of `flat` (n,), sent as bytes both ways; the same numbers on every rank."""
    world, size = dist.get_world_size(), flat.numel()
    length = -(-size // world)
    padded = torch.nn.functional.pad(flat.float(), (0, length * world - size))
    mine = pack(padded.view(world, length))
    theirs = Packed(torch.empty_like(mine.numbers), torch.empty_like(mine.scales))
    dist.all_to_all_single(theirs.numbers, mine.numbers)
    dist.all_to_all_single(theirs.scales, mine.scales)
    part = pack(unpack(theirs).mean(0, keepdim=True))
    whole = Packed(torch.empty_like(mine.numbers), torch.empty_like(mine.scales))
    dist.all_gather(list(whole.numbers.split(1)), part.numbers)
    dist.all_gather(list(whole.scales.split(1)), part.scales)
    if count is not None:
        count.bytes_sent += (world - 1) * (mine.nbytes // world + part.nbytes)
        count.bytes_whole += 2 * (world - 1) * length * 4
    return unpack(whole).view(-1)[:size].to(flat.dtype)
