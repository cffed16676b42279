"""Ranks that wait for one another and will for ever: ended within seconds, with the line where each of them stands.

It happens when ranks branch or log differently: one sends a message that the other never asks for. Each rank watches
its own main thread. One that stands inside a message, while its process neither computes nor reads nor writes, waits;
when all of them wait, none can go on.
"""

from __future__ import annotations

import atexit
import contextlib
import linecache
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.distributed as dist

from . import unfit

TICK = 1.0  # seconds
CALM, CALM_OF_NODES = 5, 60  # ticks without any work, until a rank says that it waits: a network may rest for long
BUSY_SECONDS, BUSY_BYTES = 0.05, 1 << 14  # of a tick in which something was done
TORCH, OURS = os.path.dirname(torch.__file__), str(Path(__file__).parents[1])
BETWEEN = (TORCH, OURS, contextlib.__file__)  # the script's line and a message: what is no script's
MESSAGES = ("distributed/distributed_c10d.py", "nn/parallel/distributed.py", "autograd/graph.py")
KEY, FOUND = "ptmigrate/waits", "ptmigrate/stuck"


def watch_for_waiting(nodes: int = 1) -> None:
    """In a thread, until the process ends; where the messages are gloo's and the system tells of a process's work."""
    if not WORK.is_file() or dist.get_backend() != "gloo":
        return
    unfit.tell_before_gloo_ends(
        dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size(), where_it_stands
    )
    ended = threading.Event()
    patience = CALM if nodes == 1 else CALM_OF_NODES
    thread = threading.Thread(target=_watch, args=(ended, patience), daemon=True, name="waits")
    atexit.register(thread.join, TICK)
    atexit.register(ended.set)  # runs first
    thread.start()


WORK = Path("/proc/self/io")


def _watch(ended: threading.Event, patience: int) -> None:
    store: Any = dist.distributed_c10d._get_default_store()
    rank, world, main = dist.get_rank(), dist.get_world_size(), threading.main_thread().ident
    calm, periods, said, before, stood = 0, 0, "", (0.0, 0), None
    seen: tuple[list[str], int] = ([], 0)  # what all ranks said, and for how many ticks since
    try:
        while not ended.wait(TICK):
            now = work_done()
            idle = now[0] - before[0] < BUSY_SECONDS and now[1] - before[1] < BUSY_BYTES
            before = now
            place = place_of_message(sys._current_frames().get(main or 0)) if idle else None
            calm, stood = calm + 1 if place is not None and place == stood else 0, place
            if (calm >= patience) != bool(said):
                periods += 1
                said = f"{periods} {place}" if calm else ""
                store.set(f"{KEY}/{rank}", said)
            if rank == 0:
                every = waiting(store, world) if said else []
                seen = (every, seen[1] + 1 if every and every == seen[0] else 0)
                if seen[1] >= 2:
                    store.set(FOUND, "")
                    tell(every)
            unfit.answer(store, rank, where_it_stands)
            if said and store.check([FOUND]):
                time.sleep(TICK if rank else 0)  # rank 0 speaks, and ends first
                sys.stdout.flush()
                os._exit(1)
    except RuntimeError:  # the store is gone, and with it the run
        return


def work_done() -> tuple[float, int]:
    """Seconds of computing, and bytes read and written, of this process until now."""
    counters = dict(line.split(": ") for line in WORK.read_text().splitlines())
    return time.process_time(), int(counters["rchar"]) + int(counters["wchar"])


def where_it_stands() -> str:
    """The main thread's line in the script."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    ours = ""
    while frame is not None and frame.f_code.co_filename.startswith(BETWEEN):
        ours = ours or (own_line(frame) if frame.f_code.co_filename.startswith(OURS) else "")
        frame = frame.f_back
    return line_of(frame, ours) if frame is not None else ours or "ended"


def place_of_message(frame: FrameType | None) -> str | None:
    """The line of the script (or of this package, where no script is below it) that waits in a message; None where
    the thread is elsewhere.
    """
    sends, ours = False, ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(TORCH):
            sends = sends or (file.endswith(MESSAGES) and not ours)
        elif file.startswith(OURS):
            ours = ours or own_line(frame)
        elif not file.startswith(BETWEEN):
            if not sends:
                return None
            break
        frame = frame.f_back
    if not sends or frame is None:
        return ours if sends else None
    return line_of(frame, ours)


def line_at(trace: TracebackType | None) -> str:
    """The script's line that led to an error: `train.py:12 in main: the text`."""
    found = ""
    while trace is not None:
        code, number = trace.tb_frame.f_code, trace.tb_lineno
        if not code.co_filename.startswith(BETWEEN):
            text = linecache.getline(code.co_filename, number).strip()
            found = f"{os.path.basename(code.co_filename)}:{number} in {code.co_name}: {text}"
        trace = trace.tb_next
    return found


def own_line(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def line_of(frame: FrameType, ours: str) -> str:
    """`train.py:12 in main: the text`, and the line of this package that it called."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    script = f"{own_line(frame)}: {line}"
    return f"{script} ({ours})" if ours else script


def waiting(store: Any, world: int) -> list[str]:
    """What each rank says of where it waits; empty where one of them does not wait."""
    keys = [f"{KEY}/{rank}" for rank in range(world)]
    if not store.check(keys):
        return []
    every = [text.decode() for text in store.multi_get(keys)]
    return every if all(every) else []


def tell(every: list[str]) -> None:
    lines = [f"  rank {rank}: {text.partition(' ')[2]}" for rank, text in enumerate(every)]
    told = "the ranks wait for one another, and none can go on; all have to log, reduce and step alike:"
    print("\n".join([f"RuntimeError: {told}", *lines]), file=sys.stderr, flush=True)
