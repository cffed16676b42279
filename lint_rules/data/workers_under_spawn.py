"""PTM502: every spawned process starts all of its workers again at each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, keyword
from ..rule import Finding, Rule
from .loaders import is_loader, option

SPAWNERS = {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"}


class WorkersUnderSpawn(Rule):
    code = "PTM502"
    name = "workers-under-spawn"
    why = (
        "Every spawned process has that many workers of its own and starts all of them again at each epoch; on macOS "
        "and Windows each one imports the script anew. Keep them with persistent_workers=True, or start the processes "
        "with a launcher (ptrun, torchrun) and give each its share of the cores."
    )
    fix = "unsafe"
    calls = ("DataLoader",)

    BAD = """
        import torch.multiprocessing as mp
        from torch.utils.data import DataLoader
        def work(rank):
            loader = DataLoader(data, num_workers=8)
        mp.spawn(work, nprocs=2)
        """
    GOOD = (
        """
        import torch.multiprocessing as mp
        from torch.utils.data import DataLoader
        def work(rank):
            loader = DataLoader(data, num_workers=8, persistent_workers=True)
        mp.spawn(work, nprocs=2)
        """,
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(data, num_workers=8)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        workers = option(call, "num_workers")
        if workers is None or (isinstance(workers, ast.Constant) and workers.value in (0, None)):
            return
        if is_loader(call, file) and keyword(call, "persistent_workers") is None and spawns(file):
            text = f"num_workers={file.source(workers)} in spawned processes: all workers start anew every epoch"
            repair = with_argument(call, "persistent_workers=True")
            yield self.finding(call, f"{text}; add persistent_workers=True", file, repair)


def spawns(file: File) -> bool:
    """Whether the file starts its processes by spawning."""
    for name in ("spawn", "start_processes"):
        if any(file.resolve(c.func) in SPAWNERS for c in file.nodes.calls.get(name, ())):
            return True
    return any(
        isinstance(k.value, ast.Constant) and k.value.value == "ddp_spawn"
        for c in file.nodes.calls.get("Trainer", ())
        for k in c.keywords
    )
