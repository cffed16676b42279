"""Files that are whole or absent: written beside, flushed to the disk, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Any, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` with a file beside `path`, then put it in place. `path` may itself be an open file, which is
    written to.

    A file that exists keeps its mode; links are followed. Raises OSError with the name of the file (a full disk, a
    folder that is gone), and nothing stays behind.
    """
    if hasattr(path, "write"):
        write(path)
        return
    target = Path(os.path.realpath(path))
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode(target))
        os.replace(beside, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        cause = _of_the_disk(error)
        if cause is not None:
            raise OSError(cause.errno, cause.strerror, str(target)) from error
        raise


def _of_the_disk(error: BaseException | None) -> OSError | None:
    """What the system said, where torch's own complaint about the file came after it."""
    while error is not None and not isinstance(error, OSError):
        error = error.__context__
    return error if error is not None and error.errno is not None else None


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
