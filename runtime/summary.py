"""A module in one table: `Trainer(enable_model_summary=True)`."""

from __future__ import annotations

import torch


def summary(module: torch.nn.Module, depth: int = 1) -> str:
    """The parts with their types and numbers of parameters, and the sum. `depth`: of parts within parts; -1: all."""
    parts = [(name, part) for name, part in module.named_modules() if name and (depth < 0 or name.count(".") < depth)]
    rows = [(name, type(part).__name__, f"{size(part):,}") for name, part in [*parts, ("all", module)]]
    frozen = size(module) - sum(p.numel() for p in module.parameters() if p.requires_grad)
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{name:{widths[0]}}  {kind:{widths[1]}}  {number:>13}" for name, kind, number in rows]
    return "\n".join([*lines, *([f"frozen: {frozen:,}"] if frozen else [])])


def size(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
