"""A folder that the script makes is made once, as by one process: the ranks of a machine that come later find it made.

`os.makedirs(run)` on every rank would fail on all but the first, and `if not os.path.exists(run): os.mkdir(run)` where
two ranks come at the same time. A folder that was there before is still an error. Only for the script's own calls:
libraries make folders as locks, too.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import site
import sys
import sysconfig
from collections import Counter
from functools import wraps
from typing import Any

from . import alike, environment

MADE, MISSING, FAILED = b"made", b"missing", b"failed"
PASSED_THROUGH = ("os", "pathlib", "pathlib._local", __name__)


def on_import() -> None:
    """Let `os.mkdir` know of this rank's peers, of those too that it may start later; not in a loader's worker."""
    if multiprocessing.parent_process() is None and not hasattr(os.mkdir, "alone"):
        os.mkdir = _among_ranks(os.mkdir)


def _among_ranks(alone: Any) -> Any:
    times: Counter[str] = Counter()  # how often this rank has asked for a folder
    process = os.getpid()

    @wraps(alone)
    def mkdir(path: Any, *args: Any, **options: Any) -> None:
        if options.get("dir_fd") is not None or os.getpid() != process or not _by_the_script():
            return alone(path, *args, **options)
        name, place = os.path.abspath(os.fsdecode(path)), environment.place()
        times[name] += 1
        key = alike.key(f"folder/{place.node_rank}/{name}", times[name])
        store = alike.store() if place.world_size > 1 else None
        if store is None or store.add(f"{key}/asked", 1) == 1:
            return _first(store, key, lambda: alone(path, *args, **options))
        outcome = store.get(key)
        if outcome == MISSING:  # as the first found it: it makes the folder above now, and so does this rank
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        try:
            alone(path, *args, **options)
        except FileExistsError:
            if outcome != MADE:
                raise

    mkdir.alone = alone  # type: ignore[attr-defined]
    return mkdir


def _first(store: Any, key: str, make: Any) -> None:
    outcome = FAILED
    try:
        make()
        outcome = MADE
    except FileNotFoundError:
        outcome = MISSING
        raise
    finally:
        if store is not None:
            store.set(key, outcome)
        else:
            alike.kept[key] = outcome


def _by_the_script() -> bool:
    """Whether the call comes from a file of the user's, not from an installed package or the standard library."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in PASSED_THROUGH:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return False
    file = os.path.abspath(frame.f_code.co_filename)
    return not any(file.startswith(folder + os.sep) for folder in _INSTALLED)


_INSTALLED = {os.path.dirname(os.path.abspath(os.__file__)), *site.getsitepackages(), *sysconfig.get_paths().values()}
_INSTALLED = {f for f in _INSTALLED if f and not os.path.abspath(sys.argv[0] or ".").startswith(f + os.sep)}
