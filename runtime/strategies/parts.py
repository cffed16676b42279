"""A state_dict taken while a rank has parts of the parameters: in a file it would pass for the module's whole state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Parts:
    """Refuses `state_dict` of `module` and of what is in it, where `is_part` says so of one of its parameters."""

    def __init__(self, module: torch.nn.Module, is_part: Callable[[torch.Tensor], bool], engine: str):
        """`engine`: its name, for the error."""
        self.is_part, self.engine, self._meant = is_part, engine, False
        self._handles = [part.register_state_dict_pre_hook(self._check) for part in module.modules()]

    def _check(self, part: torch.nn.Module, prefix: str, *_: Any) -> None:
        for name, parameter in part._parameters.items():
            if parameter is not None and not self._meant and self.is_part(parameter):
                raise RuntimeError(
                    f"state_dict: under {self.engine} each process has its part of {prefix + name!r} here; take it in "
                    "a hook between batches, as on_train_epoch_end, where all have it whole, or call "
                    "trainer.save_checkpoint"
                )

    @contextmanager
    def meant(self) -> Iterator[None]:
        """Inside, parts are what is asked for."""
        before, self._meant = self._meant, True
        try:
            yield
        finally:
            self._meant = before

    def release(self) -> None:
        for handle in self._handles:
            handle.remove()


def make_contiguous(module: torch.nn.Module) -> None:
    """Give each parameter's numbers the order of its shape in memory: engines that divide them take no other."""
    for parameter in module.parameters():
        parameter.data = parameter.data.contiguous()
