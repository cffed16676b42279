"""The hooks of a run, by Lightning's names, and which of them anybody has filled.

A hook is looked up once, before the loop that calls it; one that nobody overrides costs nothing there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .errors import ConfigurationError

# where the module's own code may do anything with its weights, and has the time to gather them
BETWEEN_BATCHES = (
    *(
        "on_fit_start",
        "on_train_start",
        "on_train_epoch_start",
        "on_train_batches_end",
        "on_train_epoch_end",
        "training_epoch_end",
    ),
    *("on_sanity_check_start", "on_sanity_check_end", "on_validation_start", "on_validation_end"),
    *("on_validation_epoch_start", "on_validation_epoch_end"),
)
AT_BATCHES = ("on_train_batch_start", "on_train_batch_end", "on_before_zero_grad")
WITH_GRADIENTS = ("on_after_backward", "on_before_optimizer_step")
OURS = f"{__package__}.callbacks."


class Hooks:
    """What a Module and a Callback have in common, all empty. A Callback's get `(trainer, module)` first."""

    def setup(self, *args: Any) -> Any: ...
    def teardown(self, *args: Any) -> Any: ...
    def on_fit_start(self, *args: Any) -> Any: ...
    def on_fit_end(self, *args: Any) -> Any: ...
    def on_sanity_check_start(self, *args: Any) -> Any: ...
    def on_sanity_check_end(self, *args: Any) -> Any: ...
    def on_train_start(self, *args: Any) -> Any: ...
    def on_train_end(self, *args: Any) -> Any: ...
    def on_train_epoch_start(self, *args: Any) -> Any: ...
    def on_train_epoch_end(self, *args: Any) -> Any: ...
    def on_train_batch_start(self, *args: Any) -> Any: ...
    def on_train_batch_end(self, *args: Any) -> Any: ...
    def on_train_batches_end(self, *args: Any) -> Any: ...  # ours: an epoch's batches are over, validation comes next
    def on_before_zero_grad(self, *args: Any) -> Any: ...
    def on_before_backward(self, *args: Any) -> Any: ...
    def on_after_backward(self, *args: Any) -> Any: ...
    def on_before_optimizer_step(self, *args: Any) -> Any: ...
    def on_validation_start(self, *args: Any) -> Any: ...
    def on_validation_end(self, *args: Any) -> Any: ...
    def on_validation_epoch_start(self, *args: Any) -> Any: ...
    def on_validation_epoch_end(self, *args: Any) -> Any: ...
    def on_validation_batch_start(self, *args: Any) -> Any: ...
    def on_validation_batch_end(self, *args: Any) -> Any: ...
    def on_test_start(self, *args: Any) -> Any: ...
    def on_test_end(self, *args: Any) -> Any: ...
    def on_test_epoch_start(self, *args: Any) -> Any: ...
    def on_test_epoch_end(self, *args: Any) -> Any: ...
    def on_test_batch_start(self, *args: Any) -> Any: ...
    def on_test_batch_end(self, *args: Any) -> Any: ...
    def on_predict_start(self, *args: Any) -> Any: ...
    def on_predict_end(self, *args: Any) -> Any: ...
    def on_predict_epoch_start(self, *args: Any) -> Any: ...
    def on_predict_epoch_end(self, *args: Any) -> Any: ...
    def on_predict_batch_start(self, *args: Any) -> Any: ...
    def on_predict_batch_end(self, *args: Any) -> Any: ...
    def on_save_checkpoint(self, *args: Any) -> Any: ...
    def on_load_checkpoint(self, *args: Any) -> Any: ...
    def on_epoch_complete(self, *args: Any) -> Any: ...  # ours: schedulers have stepped, the next epoch has not begun
    def on_exception(self, *args: Any) -> Any: ...


def overridden(owner: Any, name: str, base: type) -> bool:
    """Has `owner` (its class, or the object itself) a method of its own under this name?"""
    mine = getattr(owner, name, None)
    return mine is not None and getattr(mine, "__func__", mine) is not getattr(base, name, None)


def find_hook(name: str, trainer: Any, callbacks: Sequence[Any], module: Any) -> Callable[..., Any] | None:
    """All of the hook's bodies as one call (callbacks first, then the module, whose answer is returned), or None."""
    around = trainer.fit_loop.around_hook
    calls = []
    for callback in callbacks:
        if overridden(callback, name, Hooks):
            call = partial(getattr(callback, name), trainer, trainer.module)
            ours = str(getattr(call.func, "__module__", "")).startswith(OURS)
            calls.append(call if ours else around(name, call))
    of_module = getattr(module, name) if module is not None and overridden(module, name, Hooks) else None
    if of_module is not None:
        of_module = around(name, of_module)
    if not calls:
        return of_module

    def call_all(*args: Any) -> Any:
        for call in calls:
            call(*args)
        return of_module(*args) if of_module is not None else None

    return call_all


def with_gradients(strategy: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    """The user's own `hook` between backward and step."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with strategy.gradients():
            return hook(*args, **kwargs)

    return call


def takes(function: Callable[..., Any], name: str, count: int | None = None) -> bool:
    """Has `function` a parameter `name`; or, under whatever names, `count` positional ones?"""
    parameters = inspect.signature(function).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    if name in parameters or (count is not None and inspect.Parameter.VAR_POSITIONAL in kinds):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return count is not None and sum(kind in positional for kind in kinds) >= count


def step_caller(module: Any, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
    """`step`, called with (batch, batch_idx, ...) whether the module's method `name` wants batch_idx or not."""
    method = getattr(module, name)
    if takes(method, "dataloader_iter"):
        raise ConfigurationError(f"{name}(dataloader_iter) is not supported; take (batch, batch_idx)")
    if takes(method, "hiddens"):
        raise ConfigurationError(f"{name}(hiddens) is not supported; cut the batch in {name} and optimize manually")
    if takes(method, "batch_idx", 2):
        return step
    return lambda batch, batch_idx, *more: step(batch, *more)
