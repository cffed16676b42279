"""Writing results: whole or not at all, with the file's own mode; and what git says before a file is written over."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes, like: Path | None = None) -> None:
    """Write beside and rename; the mode is that of `like` (or of the file itself). Links are followed."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        model = like if like is not None else path
        if model.exists():
            shutil.copymode(model, beside)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def uncommitted(path: Path) -> bool:
    """Whether the file stands in a git work tree with changes that git does not have (or is not known to it)."""
    try:
        done = subprocess.run(
            ["git", "status", "--porcelain", "--ignored", "--", path.name],
            cwd=path.parent,
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())
