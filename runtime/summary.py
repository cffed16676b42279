"""A module in one table: `Trainer(enable_model_summary=True)`."""

from __future__ import annotations

import torch


def summary(module: torch.nn.Module) -> str:
    """The children with their types and numbers of parameters, and the sum."""
    parts = [*module.named_children(), ("all", module)]
    rows = [(name, type(part).__name__, f"{size(part):,}") for name, part in parts]
    frozen = size(module) - sum(p.numel() for p in module.parameters() if p.requires_grad)
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{name:{widths[0]}}  {kind:{widths[1]}}  {number:>13}" for name, kind, number in rows]
    return "\n".join([*lines, *([f"frozen: {frozen:,}"] if frozen else [])])


def size(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
