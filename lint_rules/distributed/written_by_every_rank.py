"""PTM410: what every rank prints appears once a rank, and what every rank saves is overwritten by the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, argument
from ..rule import Finding, Rule
from .collective_on_some_ranks import is_expected_to_fail
from .guards import runs_on_some_ranks

LOOPS = (ast.For, ast.While)
RANK_WORDS = ("rank", "gpu", "process", "worker", "node", "device")


class WrittenByEveryRank(Rule):
    code = "PTM410"
    name = "written-by-every-rank"
    why = (
        "A script that runs as several processes prints every line once a process. Saving is worse: all write the same "
        "file at once, and a reader finds it half-written."
    )
    calls = ("print", "save")

    BAD = (
        """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model)
        for epoch in range(10):
            for x, y in loader:
                criterion(model(x), y).backward()
            print("epoch", epoch)
        """,
        """
        import torch
        torch.distributed.init_process_group("gloo")
        torch.save(model.state_dict(), "model.pt")
        """,
    )
    GOOD = (
        """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model)
        for epoch in range(10):
            train(model)
            if rank == 0:
                print("epoch", epoch)
                torch.save(model.module.state_dict(), "model.pt")
        print(f"rank {rank} is done")
        """,
        """
        import torch
        torch.save(model.state_dict(), "model.pt")
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        is_print = isinstance(call.func, ast.Name) and call.func.id == "print"
        if not is_print and file.resolve(call.func) != "torch.save":
            return
        if file.ranks.distributed is None or _is_careful(file) or runs_on_some_ranks(call, file):
            return
        if is_print and (not file.loops.hot_loops or not _in_loop(call, file) or _tells_ranks_apart(call, file)):
            return
        if not is_print and (not is_shared_file(argument(call, 1, "f"), file) or is_expected_to_fail(call, file)):
            return
        doing = "printed" if is_print else "saved to the same file"
        yield self.finding(call, f"{doing} by every rank; guard it with `if rank == 0:`", file)


def _in_loop(call: ast.Call, file: File) -> bool:
    """Whether a line is printed again and again."""
    return any(isinstance(up, LOOPS) for up in file.nodes.ancestors(call)) or file.hot(call) is not None


def _tells_ranks_apart(node: ast.AST, file: File) -> bool:
    """Whether the text, or the file's name, says which rank it comes from."""
    text = file.source(node, 500).lower()
    return any(word in text for word in RANK_WORDS)


def is_shared_file(target: ast.expr | None, file: File) -> bool:
    """Whether all ranks would write the same file: no buffer in memory, no name with the rank in it."""
    if target is None or _tells_ranks_apart(target, file):
        return False
    if any(word in file.source(target, 500).lower() for word in ("tmp", "temp", "buf", "stream", "bytes")):
        return False
    values = file.tensors.assigned(target) if isinstance(target, ast.Name) else []
    return not any(v is not None and (_tells_ranks_apart(v, file) or "BytesIO" in file.source(v)) for v in values)


def _is_careful(file: File) -> bool:
    """Whether the file has a print of its own, or redefines it for all ranks but the first."""
    if any(f.name == "print" for f in file.nodes.functions):
        return True
    return "builtins.print" in file.text or "builtin_print" in file.text or "__builtin__.print" in file.text
