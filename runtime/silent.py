"""Writers and pictures once: rank 0 makes them, other ranks get something that takes every call and does nothing."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from .environment import place


@cache
def folder_to_forget() -> str:
    """A folder of this process's own, gone with it: what a rank that must not write is told to write there."""
    path = tempfile.mkdtemp(prefix="ptrun-rank-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Silent:
    """Stands for a writer on ranks that must not write: any attribute, call, item or `with` gives it back.

    Where a path is asked for (`os.path.join(writer.log_dir, "log.txt")`) it is a folder that goes with the process.
    """

    def __getattr__(self, name: str) -> Silent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Silent:
        return self

    def __getitem__(self, key: Any) -> Silent:
        return self

    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: Any) -> None: ...
    def __iter__(self) -> Iterator:
        return iter(())

    def __bool__(self) -> bool:
        return True  # `if writer:` takes the same way on every rank

    def __reduce__(self) -> tuple:
        return Silent, ()

    def __fspath__(self) -> str:
        return folder_to_forget()

    __str__ = __fspath__

    def __add__(self, other: str) -> str:
        return folder_to_forget() + other

    def __truediv__(self, other: Any) -> Path:
        return Path(folder_to_forget(), other)

    def __repr__(self) -> str:
        return "<nothing: rank 0 has the writer>"


# what opens a file, by the module and the name; it is asked by name, so that nothing is imported for it
OPENS = {
    *((module, "open") for module in ("io", "_io", "gzip", "bz2", "lzma", "codecs", "tarfile")),
    ("zipfile", "ZipFile"), ("tarfile", "TarFile"), ("h5py._hl.files", "File"),
}  # fmt: skip
_forgotten = count()


def opens(made: Callable[..., Any]) -> bool:
    """Whether a function, or a path's own method, opens a file: `open`, `gzip.open`, `path.open`, `h5py.File`."""
    own = getattr(made, "__self__", None)
    if isinstance(own, os.PathLike):
        return getattr(made, "__name__", "") == "open"
    if isinstance(own, type):  # tarfile.open is of a class
        return issubclass(own, tarfile.TarFile)
    return (getattr(made, "__module__", ""), getattr(made, "__name__", "")) in OPENS


def to_forget(made: Callable[..., Any]) -> Callable[..., Any]:
    """`made`, which opens a path, for a file of that mode in a folder that goes with the process."""

    def opened(*args: Any, **options: Any) -> Any:
        path = os.path.join(folder_to_forget(), f"{next(_forgotten)}")
        own = getattr(made, "__self__", None)
        if isinstance(own, os.PathLike):
            return Path(path).open(*args, **options)
        named = next((n for n in ("file", "filename", "name") if n in options), None)
        return made(*args, **{**options, named: path}) if named else made(path, *args[1:], **options)

    return opened


def _starts_wandb(made: Callable[..., Any]) -> bool:
    """`wandb.init`, without which nothing has the settings that a script reads of `wandb.config`, or of a run."""
    named = getattr(made, "__module__", None), getattr(made, "__name__", None)
    return isinstance(named[0], str) and named[0].partition(".")[0] == "wandb" and named[1] == "init"


def on_rank_zero(made: Callable[..., Any]) -> Callable[..., Any]:
    """`made` itself on rank 0; on the others a call that does nothing: `on_rank_zero(SummaryWriter)(log_dir)`.

    Where it opens a file (`on_rank_zero(open)(path, "w")`) the others get one that is forgotten; of wandb.init a run
    that has its settings, and writes nothing.
    """
    if place().rank == 0:
        return made
    if opens(made):
        return to_forget(made)
    if _starts_wandb(made):
        return lambda *args, **options: made(*args, **{**options, "mode": "disabled"})
    logger = logging.getLogger() if made is logging.basicConfig else getattr(made, "__self__", None)
    if isinstance(logger, logging.Logger) and logging.lastResort is not None:
        logger.addHandler(logging.lastResort)  # without any, `logging.info()` gives the root one that says all of it
    return Silent()
