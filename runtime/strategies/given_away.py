"""Gradients that an engine has taken from the parameters: who looks for one where one process has it is told, and
does not find None or this rank's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import torch

Parameter = torch.nn.Parameter
# What torch does to gradients by way of a module: it finds none, which is as well where none waits for a step.
PASSING = {torch.nn.Module.zero_grad.__code__, torch.nn.Module._apply.__code__}
OURS = str(Path(__file__).parent.parent)


class GivenAway:
    """Watches `p.grad` of a module's parameters until `release`. `why`: the engine, and what to do instead, for the
    error.
    """

    watching: ClassVar[dict[int, GivenAway]] = {}  # {id of a parameter: its}

    def __init__(self, module: torch.nn.Module, why: str, engine: str):
        """`engine`: the folder of its own code, which may look for them."""
        self.why, self.homes = why, (engine, OURS)
        self.parameters = list(module.parameters())
        self.gone = False  # has a backward brought gradients, which nobody has zeroed since?
        self.waiting = False  # for a step
        self._here = 0
        self._handles: list[Any] = []
        self._asked: Callable[[], bool] = bool
        if not self.watching:
            Parameter.grad = property(_get, _set, _delete)  # type: ignore[assignment]
        self.watching.update((id(parameter), self) for parameter in self.parameters)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Inside, the engine works, or parameters have their gradients."""
        self._here += 1
        try:
            yield
        finally:
            self._here -= 1

    def refuse_own(self, asked: Callable[[], bool]) -> None:
        """RuntimeError from a backward that is not the engine's, which would take its gradients for the step's, nor
        `asked` for: the module's own for its loss.
        """
        self._asked = asked
        for parameter in self.parameters:
            if parameter.requires_grad:
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._check_own))

    def _check_own(self, _: torch.Tensor) -> None:
        if not (self._here or self._asked()):
            raise RuntimeError(
                "a step calls backward() itself, whose gradients the engine would take for those of its loss: search "
                "for inputs by torch.autograd.grad, or use 'ddp', 'fsdp' or 'ddp_sharded'"
            )

    def came(self) -> None:
        """A backward is over."""
        self.gone = self.waiting = True

    def check(self, who: CodeType) -> None:
        """RuntimeError where `who` must not look for a gradient now."""
        if not self.gone or self._here or (who in PASSING and not self.waiting):
            return
        if not who.co_filename.startswith(self.homes):
            raise RuntimeError(f"a parameter's gradient is asked for where this process does not have it: {self.why}")

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()
        for parameter in self.parameters:
            self.watching.pop(id(parameter), None)
        self.parameters = []
        if not self.watching and "grad" in vars(Parameter):
            del Parameter.grad


_torchs: Any = Parameter.grad  # of the class below it


def _check(parameter: torch.Tensor) -> None:
    watcher = GivenAway.watching.get(id(parameter))
    if watcher is not None:
        watcher.check(sys._getframe(2).f_code)


def _get(parameter: torch.Tensor) -> Any:
    _check(parameter)
    return _torchs.__get__(parameter)


def _set(parameter: torch.Tensor, value: Any) -> None:
    _check(parameter)
    _torchs.__set__(parameter, value)


def _delete(parameter: torch.Tensor) -> None:
    _check(parameter)
    _torchs.__delete__(parameter)
