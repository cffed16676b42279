"""Parameters that are gathered where the user's code looks at one, and not otherwise: around hooks of every batch, most
of which look at none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
import torch.distributed as dist


@cache
def own_group(world: Any) -> Any:
    """A group for these messages, so that none meets one that the user's code sends."""
    return dist.new_group(backend="gloo")


class WhenAsked:
    """`whole`: the context in which all ranks have parameters whole; all ranks enter it. A rank whose hook has asked
    for none enters it when its hook is over, if another's has.
    """

    def __init__(self, module: torch.nn.Module, whole: Callable[[], AbstractContextManager]):
        self.module, self.whole = module, whole
        self.group = own_group(dist.group.WORLD)

    def around(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with ExitStack() as stack:
                with self._watched(stack) as ask:
                    outcome = hook(*args)
                    ask(False)
                return outcome

        return call

    @contextmanager
    def _watched(self, stack: ExitStack) -> Iterator[Callable[[bool], None]]:
        """Inside, whoever gets a parameter from its module gets it whole."""
        own = [(part, part._parameters) for part in self.module.modules() if part._parameters]
        asked: list[bool] = []

        def ask(mine: bool) -> None:
            if asked:
                return
            asked.append(mine)
            for part, parameters in own:
                part._parameters = parameters
            anywhere = torch.tensor([mine], dtype=torch.uint8)
            dist.all_reduce(anywhere, dist.ReduceOp.MAX, group=self.group)
            if anywhere.item():
                stack.enter_context(self.whole())

        for part, parameters in own:
            part._parameters = Asking(parameters, lambda: ask(True))
        try:
            yield ask
        finally:
            for part, parameters in own:
                part._parameters = parameters


class Asking(dict):
    """A module's parameters by name; `ask` is called before any is handed out."""

    def __init__(self, parameters: dict[str, Any], ask: Callable[[], None]):
        super().__init__(parameters)
        self.parameters, self.ask = parameters, ask

    def __getitem__(self, name: str) -> Any:
        self.ask()
        return self.parameters[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.ask()
        self.parameters[name] = value

    def __delitem__(self, name: str) -> None:
        self.ask()
        del self.parameters[name]

    def get(self, name: str, default: Any = None) -> Any:
        self.ask()
        return self.parameters.get(name, default)

    def items(self) -> Any:
        self.ask()
        return self.parameters.items()

    def values(self) -> Any:
        self.ask()
        return self.parameters.values()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies are plain."""
        self.ask()
        return dict, (dict(self.parameters),)
