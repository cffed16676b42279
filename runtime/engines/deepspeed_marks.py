"""What DeepSpeed writes on a module and its parameters, and its absence again.

In another fit it would find its own marks: a stage 3 takes parameters that it knows for divided already, and trains the
parts it has of them, whatever the user has put there since; the hooks of a layer speak to the engine that wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

LATE = "applied_pre_backward_ref_cnt"  # by a layer's first forward


class Marks:
    """Of one engine; `module`, which nobody has marked yet."""

    def __init__(self, module: torch.nn.Module):
        self.module = module
        self._names: list[tuple[Any, set[str]]] = []
        self._removed: list[tuple[Any, dict[str, Any]]] = []

    @contextmanager
    def written(self) -> Iterator[None]:
        """Around the making of the engine: names that come up inside are its own."""
        things = [*self.module.modules(), *self.module.parameters()]
        before = [set(vars(thing)) for thing in things]
        yield
        self._names = [(thing, set(vars(thing)) - names) for thing, names in zip(things, before, strict=True)]

    def remove(self) -> None:
        """The parameters are whole."""
        for thing, names in self._names:
            own = vars(thing)
            late = {name for name in own if name == LATE or name.startswith("ds_")}
            self._removed.append((thing, {name: own.pop(name) for name in names | late if name in own}))
            if isinstance(thing, torch.nn.Module) and type(thing._parameters) is not dict:
                thing._parameters = dict(thing._parameters)
        self._names = []

    @contextmanager
    def there(self) -> Iterator[None]:
        """Inside, the engine's functions find what was removed."""
        before = []
        for thing, marks in self._removed:
            before.append({name: vars(thing)[name] for name in marks if name in vars(thing)})
            vars(thing).update(marks)
        try:
            yield
        finally:
            for (thing, marks), values in zip(self._removed, before, strict=True):
                for name in marks:
                    del vars(thing)[name]
                vars(thing).update(values)
