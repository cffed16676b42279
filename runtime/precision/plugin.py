"""Precision 32, 64, bf16 and 16 under Lightning's names, old (`16`) and new (`"16-mixed"`).

16-mixed scales the loss (Micikevicius et al., Mixed Precision Training, ICLR 2018); gradients are unscaled before
they are clipped.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from ..errors import unknown_name

NAMES = {
    "32": "32-true",
    "32-true": "32-true",
    "64": "64-true",
    "64-true": "64-true",
    "16": "16-mixed",
    "16-mixed": "16-mixed",
    "16-true": "16-true",
    "bf16": "bf16-mixed",
    "bf16-mixed": "bf16-mixed",
    "bf16-true": "bf16-true",
}
MIXED = {"16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}
TRUE = {"16-true": torch.float16, "bf16-true": torch.bfloat16, "64-true": torch.float64}


class Precision:
    """What a precision changes: the module once, every batch, the context of the forward pass, and the optimizer's
    step.
    """

    def __init__(self, name: str, device_type: str):
        self.name = name
        self.device_type = device_type
        self.autocast_dtype = MIXED.get(name)
        self.dtype = TRUE.get(name)
        self.scaler = torch.amp.GradScaler(device_type) if name == "16-mixed" else None
        self.parts = 1  # into which each batch is cut

    @property
    def plain(self) -> bool:
        """Nothing to do at a step."""
        return self.name == "32-true"

    def cut(self, parts: int, group: Any) -> None:
        """Each batch is cut into so many parts, which the ranks of the group have."""
        if parts != self.parts:
            self._share(parts, group)

    def share(self, group: Any) -> None:
        """A gradient that overflowed on the rank that has it makes every rank skip the step."""
        if type(self.scaler) is torch.amp.GradScaler:
            self._share(self.parts, group)

    def _share(self, parts: int, group: Any) -> None:
        if self.scaler is not None:
            from .overflow import SharedScaler

            self.scaler = SharedScaler(self.device_type, self.scaler.get_scale() * self.parts, parts, group)
            self.parts = parts

    def scaler_state(self) -> dict[str, Any]:
        """As one process would have it."""
        assert self.scaler is not None
        state = self.scaler.state_dict()
        return {**state, "scale": state["scale"] * self.parts}

    def load_scaler_state(self, state: dict[str, Any]) -> None:
        assert self.scaler is not None
        self.scaler.load_state_dict({**state, "scale": state["scale"] / self.parts})

    def convert_module(self, module: torch.nn.Module) -> None:
        if self.dtype is not None:
            module.to(self.dtype)

    def convert_batch(self, batch: Any) -> Any:
        """Floating point tensors of the batch in the module's dtype."""
        if self.dtype is None:
            return batch
        from ..collectives import map_leaves

        dtype = self.dtype
        return map_leaves(batch, lambda x: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x)

    def forward_context(self) -> AbstractContextManager:
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device_type, dtype=self.autocast_dtype)


def choose_precision(name: Any, device_type: str) -> Precision:
    """Raises ConfigurationError for an unknown name, with the nearest."""
    full = NAMES.get(str(name)) if not isinstance(name, bool) else None
    if full is None:
        raise unknown_name("precision", str(name), NAMES)
    return Precision(full, device_type)
