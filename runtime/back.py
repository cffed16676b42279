"""What a Trainer placed, back on the CPU: for scripts that work with it there once it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

SKIPPED = ("_parameters", "_buffers", "_modules", "trainer")


def give_back(module: torch.nn.Module) -> None:
    """Move a module to the CPU, and the tensors and networks that its attributes hold, alone or in containers.

    Each stays the object that it is, so that what else holds it has it on the CPU too. Lightning's strategies leave
    their modules there (Strategy.teardown).
    """
    module.cpu()
    seen = set[int]()
    for part in module.modules():
        for name, value in vars(part).items():
            if name not in SKIPPED:
                _give_back(value, seen)


def _give_back(value: Any, seen: set[int]) -> None:
    if isinstance(value, torch.nn.Module):
        value.cpu()
    elif isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            value.data = value.data.cpu()
    elif isinstance(value, (Mapping, list, tuple)) and id(value) not in seen:
        seen.add(id(value))
        for each in value.values() if isinstance(value, Mapping) else value:
            _give_back(each, seen)
