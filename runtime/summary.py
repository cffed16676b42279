"""Tables: of a module, `Trainer(enable_model_summary=True)`, and of what an evaluation gave."""

from __future__ import annotations

from typing import Any

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


def metrics_table(stage: str, results: list[dict[str, Any]]) -> str:
    """A line a metric, a column a loader."""
    names = list({name: None for result in results for name in result})
    heads = [f"loader {index}" for index in range(len(results))] if len(results) > 1 else [""]
    columns = [
        [head, *(f"{result[name]:.6g}" if name in result else "" for name in names)]
        for head, result in zip(heads, results, strict=True)
    ]
    first = [f"{stage} metric", *names]
    width = max(map(len, first))
    lines = [
        f"{line[0]:{width}}" + "".join(f"  {cell:>12}" for cell in line[1:])
        for line in zip(first, *columns, strict=True)
    ]
    return "\n".join(lines)
