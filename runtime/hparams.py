"""The arguments that a module was made with, kept for checkpoints and loggers."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any


class Hyperparameters(dict):
    """A dict whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no hyper-parameter {name!r}; there are: {', '.join(self) or 'none'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def chosen_arguments(frame: FrameType, cls: type, names: tuple, ignore: Any) -> dict[str, Any]:
    """The arguments of the `__init__` running in `frame`: all, the named ones, or those of one given object (a
    Namespace).
    """
    if len(names) == 1 and not isinstance(names[0], str):
        given = names[0]
        return dict(given) if isinstance(given, dict) else dict(vars(given))
    found: dict[str, Any] = {}
    parameters = list(inspect.signature(cls.__init__).parameters.items())[1:]  # type: ignore[misc]  # the first is self
    for name, parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            found.update(frame.f_locals.get(name, {}))
        elif name in frame.f_locals and parameter.kind is not parameter.VAR_POSITIONAL:
            found[name] = frame.f_locals[name]
    left_out = {ignore} if isinstance(ignore, str) else set(ignore or ())
    return {k: v for k, v in found.items() if k not in left_out and (not names or k in names)}
