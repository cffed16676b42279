"""What a checkpoint's file is called."""

from __future__ import annotations

import os
import re
from typing import Any


def stem(pattern: str | None, values: dict[str, Any], insert_names: bool) -> str:
    """`{epoch}-{val_loss:.2f}` as `epoch=3-val_loss=0.12`; a metric that was not logged is 0."""

    def fill(match: re.Match) -> str:
        name, spec = match[1], match[2] or ""
        value = values.get(name, 0)
        number = float(value) if hasattr(value, "item") else value
        text = format(number, spec[1:])
        return f"{name}={text}" if insert_names else text

    return re.sub(r"{([^:{}]+)(:[^{}]*)?}", fill, pattern or "{epoch}-{step}")


def free_path(
    callback: Any, trainer: Any, values: dict[str, Any], replaced: str | None, name: str | None = None
) -> str:
    """The path for these values; `-v1`, `-v2` where another file has it, unless that is the one being replaced."""
    path, version = callback.format_checkpoint_name(values, name), 0
    while callback.enable_version_counter and path != replaced and trainer.runtime.broadcast(os.path.exists(path)):
        version += 1
        path = callback.format_checkpoint_name(values, name, version)
    return path
