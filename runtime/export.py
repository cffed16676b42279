"""A Module for use without Python, or without this package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from .checkpoint.write import write_atomically
from .data.move import move_to
from .errors import ConfigurationError


class Exports:
    """Lightning's names, on torch's own exporters. What is exported is `forward`, in eval mode."""

    example_input_array: Any = None

    def to_torchscript(
        self, file_path: Any = None, method: str = "script", example_inputs: Any = None, **more: Any
    ) -> torch.jit.ScriptModule:
        """By torch.jit.script, or by torch.jit.trace on `example_inputs` (or `example_input_array`); written to
        `file_path` where one is given. Raises ConfigurationError without an example to trace.
        """
        if method not in ("script", "trace"):
            raise ConfigurationError(f"method={method!r}: 'script' or 'trace'")
        with self._as_used() as module:
            if method == "trace":
                made = torch.jit.trace(module, self._example(example_inputs), **more)
            else:
                made = torch.jit.script(module, **more)
        if file_path is not None:
            write_atomically(file_path, lambda file: torch.jit.save(made, file))
        return made

    def to_onnx(self, file_path: Any = None, input_sample: Any = None, **more: Any) -> Any:
        """What torch.onnx.export gives, which needs the package onnx (and onnxscript)."""
        path = os.fspath(file_path) if isinstance(file_path, os.PathLike) else file_path
        example = self._example(input_sample)
        with self._as_used() as module:
            return torch.onnx.export(module, example, path, **more)

    def _example(self, given: Any) -> Any:
        example = self.example_input_array if given is None else given
        if example is None:
            raise ConfigurationError("an example is needed: pass one, or set example_input_array")
        return move_to(example, next(self.parameters(), torch.empty(0)).device)  # type: ignore[attr-defined]

    @contextmanager
    def _as_used(self) -> Iterator[Any]:
        """In eval mode, without gradients, and with nothing in the trainer's place: exporters ask for every attribute,
        and would follow it.
        """
        module: Any = self
        modes, trainer = {part: part.training for part in module.modules()}, module._trainer
        module._trainer = SimpleNamespace(runtime=SimpleNamespace(device=module.device))
        module.eval()
        try:
            with torch.no_grad():
                yield module
        finally:
            module._trainer = trainer
            for part, mode in modes.items():
                part.training = mode
