"""Eight bits a number: where it lies between a tensor's smallest and largest value, zero exactly at one of the levels,
so that what has no gradient gets none.

Dettmers, 8-Bit Approximations for Parallelism in Deep Learning, ICLR 2016; the linear scale is BAGUA's MinMaxUInt8,
with the zero point of Jacob et al., Quantization and Training of Neural Networks, CVPR 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

LEVELS = 255


class Packed(NamedTuple):
    """`numbers`: uint8 of the tensor's shape (chunks, n); `scales`: float32 (chunks, 2), a level's width and which
    level zero is.
    """

    numbers: torch.Tensor
    scales: torch.Tensor

    @property
    def nbytes(self) -> int:
        return self.numbers.numel() + 4 * self.scales.numel()


def pack(chunks: torch.Tensor) -> Packed:
    """Each row of `chunks` (chunks, n) with a scale of its own; off by at most half a level, or one at the ends."""
    low, high = chunks.amin(1, keepdim=True).clamp_max(0), chunks.amax(1, keepdim=True).clamp_min(0)
    width = ((high - low) / LEVELS).clamp_min(torch.finfo(torch.float32).tiny)
    zero = (-low / width).round_()
    numbers = (chunks / width).round_().add_(zero).clamp_(0, LEVELS).to(torch.uint8)
    return Packed(numbers, torch.cat([width, zero], 1))


def unpack(packed: Packed) -> torch.Tensor:
    """float32 (chunks, n)"""
    width, zero = packed.scales[:, :1], packed.scales[:, 1:]
    return (packed.numbers.float() - zero) * width
