"""T1: `DataLoader(..., pin_memory_device=device)` names a device only to say for which one memory is pinned.

Without it that is the accelerator at hand: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.effects import only_asks
from ..facts.script import Facts
from .argument_rewrites import DropArgument
from .base import Change, Codemod

NAME = "pin_memory_device"
LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


def pinned_for(codemod: Codemod, facts: Facts) -> Iterator[Change]:
    """The loaders' arguments, whatever they are given."""
    for call in facts.walk(ast.Call) if NAME in facts.text.text else ():
        for i, k in enumerate(call.keywords):
            if k.arg == NAME and facts.names.resolve(call.func) in LOADERS and _has_no_effect(facts, k.value):
                says = f"`{facts.short(k)}`: memory is pinned for the device at hand"
                yield Change(call, codemod.edit(facts, k.value, says), DropArgument(len(call.args) + i), (k.value,))


def _has_no_effect(facts: Facts, value: ast.expr) -> bool:
    """A device and its text: `str(device)`, `f"cuda:{rank}"`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "str" and len(value.args) == 1:
        return _has_no_effect(facts, value.args[0])
    return facts.devices.is_device(value) or only_asks(facts.names, value)
