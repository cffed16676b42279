"""Reading checkpoints: whole, unchanged, and with weights_only, so that a file cannot run code."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from ..errors import ConfigurationError


class DamagedCheckpoint(ConfigurationError):
    """A checkpoint that cannot be read: its name, what is wrong, and the last good one beside it."""


class NoCheckpoint(DamagedCheckpoint, FileNotFoundError):
    """There is no such file."""


def problem(path: Path) -> str | None:
    """What is wrong with the file, or None. Every record of torch's zip format carries a checksum; all are compared."""
    if not path.is_file():
        return "there is no such file"
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        return f"not a whole checkpoint ({error})"
    return f"the checksum of {broken} does not match" if broken else None


def read(path: Any, weights_only: bool = True) -> dict[str, Any]:
    """The checkpoint at `path`, its tensors on the CPU. Raises DamagedCheckpoint, naming the last good one there is."""
    file = Path(path)
    wrong = problem(file)
    if wrong:
        good = last_good(file)
        hint = f"; the last good one there is {str(good)!r}" if good else ""
        kind = DamagedCheckpoint if file.is_file() else NoCheckpoint
        raise kind(f"checkpoint {str(file)!r}: {wrong}{hint}")
    try:
        checkpoint = torch.load(file, map_location="cpu", weights_only=weights_only)
    except pickle.UnpicklingError as error:
        detail = str(error).splitlines()[0]
        raise ConfigurationError(
            f"checkpoint {str(file)!r} holds more than tensors and plain values; "
            f"if you trust it, pass weights_only=False ({detail})"
        ) from None
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise ConfigurationError(
            f"{str(file)!r} is no checkpoint of a Trainer: it has no 'state_dict'; "
            "weights alone are loaded by `module.load_state_dict(torch.load(...))`"
        )
    return checkpoint


def last_good(file: Path) -> Path | None:
    """The newest whole checkpoint in the folder of `file`."""
    if not file.parent.is_dir():
        return None
    others = [other for other in file.parent.glob("*.ckpt") if other != file]
    return next((other for other in sorted(others, key=_changed, reverse=True) if problem(other) is None), None)


def _changed(file: Path) -> float:
    return file.stat().st_mtime
