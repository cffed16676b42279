"""Eight bits a number: a tensor as its smallest and largest value and where each number lies between them.

Dettmers, 8-Bit Approximations for Parallelism in Deep Learning, ICLR 2016; the linear scale is BAGUA's MinMaxUInt8.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

LEVELS = 255


class Packed(NamedTuple):
    """`numbers`: uint8 of the tensor's shape (chunks, n); `ends`: float32 (chunks, 2), smallest and largest."""

    numbers: torch.Tensor
    ends: torch.Tensor

    @property
    def nbytes(self) -> int:
        return self.numbers.numel() + 4 * self.ends.numel()


def pack(chunks: torch.Tensor) -> Packed:
    """Each row of `chunks` (chunks, n) with ends of its own; off by at most (largest - smallest) / 510 a number."""
    low, high = chunks.amin(1, keepdim=True), chunks.amax(1, keepdim=True)
    scale = LEVELS / (high - low).clamp_min(torch.finfo(torch.float32).tiny)
    numbers = ((chunks - low) * scale).round_().clamp_(0, LEVELS).to(torch.uint8)
    return Packed(numbers, torch.cat([low, high], 1))


def unpack(packed: Packed) -> torch.Tensor:
    """float32 (chunks, n)"""
    low, high = packed.ends[:, :1], packed.ends[:, 1:]
    return packed.numbers.float() * ((high - low) / LEVELS) + low
