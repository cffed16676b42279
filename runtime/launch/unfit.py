"""A message that does not fit: gloo ends the process from a thread of its own, and says only how many bytes it got.

Before it goes, the rank asks the others where they stand, and tells every rank's line.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

ENDS = "ptmigrate/unfit"
LIMIT = 4.0  # seconds for the others to answer: they ask once a second
_kept: list[Any] = []  # what C++ calls must not be collected


def tell_before_gloo_ends(store: Any, rank: int, world: int, place: Callable[[], str]) -> None:
    """Where the C++ library has a handler for exceptions that nobody catches. `place`: where this rank stands."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libstdc++.so.6")
        set_handler, handler_type = library._ZSt13set_terminatePFvvE, ctypes.CFUNCTYPE(None)
        set_handler.restype, set_handler.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        exception_type = library.__cxa_current_exception_type
        exception_type.restype = ctypes.c_void_p
        process = os.getpid()

        def ended() -> None:
            if os.getpid() == process and is_gloos(exception_type()):
                telling = threading.Thread(target=tell, args=(store, rank, world, place), daemon=True)
                telling.start()
                telling.join(3 * LIMIT)
            handler_type(before)()

        called = handler_type(ended)
        before = set_handler(ctypes.cast(called, ctypes.c_void_p))
        _kept.append(called)
        atexit.register(set_handler, before)


def is_gloos(kind: int | None) -> bool:
    """Is the exception one of gloo's? `kind`: the address of its std::type_info, whose second word is the name."""
    name = ctypes.c_char_p.from_address(kind + ctypes.sizeof(ctypes.c_void_p)).value if kind else None
    return name is not None and b"gloo" in name


def answer(store: Any, rank: int, place: Callable[[], str]) -> bool:
    """Tell a rank that ends where this one stands; was there one that asks?"""
    if not store.check([ENDS]):
        return False
    store.set(f"{ENDS}/{rank}", place())
    return True


def tell(store: Any, rank: int, world: int, place: Callable[[], str]) -> None:
    """On standard error, once a job: the first rank that ends speaks, and the others wait until it has."""
    store.set(f"{ENDS}/{rank}", place())
    if store.add(ENDS, 1) > 1:
        time.sleep(2 * LIMIT)
        return
    keys = [f"{ENDS}/{other}" for other in range(world)]
    deadline = time.monotonic() + LIMIT
    while not store.check(keys) and time.monotonic() < deadline:
        time.sleep(0.1)
    lines = [f"  rank {r}: {store.get(key).decode() if store.check([key]) else 'ended'}" for r, key in enumerate(keys)]
    told = f"rank {rank} got a message of another size than its own; all have to log, reduce and step alike:"
    print("\n".join([f"RuntimeError: {told}", *lines]), file=sys.stderr, flush=True)
