"""PTM205: a lock, a thread or a queue in a module or data set."""

from __future__ import annotations

import ast

from ..file import File
from .held import Held, called

# not those of multiprocessing, which are made to be handed to the processes that are started
LOCKS = {
    f"{module}.{name}"
    for module in ("threading", "asyncio")
    for name in ("Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier", "local")
} | {"queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "queue.SimpleQueue", "threading.Thread"}


class LockInState(Held):
    code = "PTM205"
    name = "lock-in-state"
    why = (
        "Locks, events, threads and queues belong to the process that made them: an object that holds one cannot be "
        "pickled for workers or spawned processes. Make it where it is used, or leave it out in `__getstate__`."
    )

    BAD = """
        import threading
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.lock = threading.Lock()
        """
    GOOD = """
        import threading
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.lock = threading.Lock()
            def __getstate__(self):
                return {}
        """

    def held(self, value: ast.expr, file: File) -> str | None:
        name = called(value, file)
        return f"a {name.rpartition('.')[2]}" if name in LOCKS else None
