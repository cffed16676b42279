"""Under ptrun a ConfigurationError that nobody catches is one line and exit code 2, as wrong usage of it is."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from . import environment

USAGE = 2  # exit code for what was asked and cannot be done
TURN = 1.0  # seconds in which rank 0 may say it first; the others then are ended


def install(error_type: type[BaseException]) -> None:
    """Let the hook for uncaught errors speak in one line, where ptrun has started this process."""
    if not environment.flag("one_line"):
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, error_type):
            previous(kind, error, trace)
            return
        if environment.place().rank:
            time.sleep(TURN)
        # once there is a process group, torch's hook puts a buffer in place of sys.stderr, which would go with us
        print(f"error: {error}", file=sys.__stderr__, flush=True)
        sys.stdout.flush()
        os._exit(USAGE)

    sys.excepthook = hook
