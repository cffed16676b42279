"""The garbage collector stands still while one file is worked on.

A file's trees live until it is done: every collection meanwhile goes through them and finds nothing, for a seventh of
the time. What is in cycles is collected between files.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from .facts.nodes import forget_nodes
from .facts.script import of_one_file


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection inside; afterwards nothing is kept of nodes, and the collector does what it did before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with of_one_file():
            yield
    finally:
        forget_nodes()
        if was_enabled:
            gc.enable()
