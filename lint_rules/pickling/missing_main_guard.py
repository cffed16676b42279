"""PTM207: a script that starts processes when it is merely imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..data.loaders import option
from ..file import File
from ..rule import Finding, Rule
from .class_under_guard import is_main_guard

STARTS = {
    "torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.Process",
    "torch.multiprocessing.Pool", "multiprocessing.Process", "multiprocessing.Pool",
    "concurrent.futures.ProcessPoolExecutor",
}  # fmt: skip
CONTEXTS = {"torch.multiprocessing.get_context", "multiprocessing.get_context"}


class MissingMainGuard(Rule):
    code = "PTM207"
    name = "missing-main-guard"
    why = (
        "A spawned process imports the script first; without `if __name__ == '__main__':` it starts the same processes "
        "again, and Python stops with an error. Workers are spawned on macOS and Windows, and by some strategies."
    )
    calls = ("spawn", "start_processes", "Process", "Pool", "ProcessPoolExecutor", "fit")

    BAD = (
        """
        import torch.multiprocessing as mp
        def work(rank):
            pass
        mp.spawn(work, nprocs=2)
        """,
        """
        from torch.utils.data import DataLoader
        def main():
            for batch in DataLoader(dataset, num_workers=4):
                train(batch)
        main()
        """,
    )
    GOOD = (
        """
        import torch.multiprocessing as mp
        def work(rank):
            pass
        if __name__ == "__main__":
            mp.spawn(work, nprocs=2)
        """,
        """
        from torch.utils.data import DataLoader
        loader = DataLoader(dataset, num_workers=4)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        starts = file.resolve(call.func) in STARTS or _by_context(call, file) or _by_trainer(call, file)
        if starts and self._runs_on_import(call, file):
            yield self.finding(call, f"`{file.source(call)}` runs on import: no `if __name__ == '__main__':`", file)

    def check_file(self, file: File) -> Iterator[Finding]:
        loaders = [c for c in file.nodes.calls.get("DataLoader", ()) if _has_workers(c, file)]
        for loader in loaders:
            if self._runs_on_import(loader, file) and self._is_iterated_on_import(file):
                yield self.finding(loader, "workers are started on import: no `if __name__ == '__main__':`", file)
                return  # one guard settles them all

    def _is_iterated_on_import(self, file: File) -> bool:
        return any(
            isinstance(loop, ast.For) and file.loops.is_loader(loop.iter) and self._runs_on_import(loop, file)
            for loop in file.nodes.loops
        )

    def _runs_on_import(self, node: ast.AST, file: File, depth: int = 0) -> bool:
        """Whether the node stands at the top, or in a function that is called from there, under no guard."""
        for up in file.nodes.ancestors(node):
            if is_main_guard(up) or isinstance(up, (ast.ClassDef, ast.Lambda)):
                return False
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
                calls = file.nodes.calls.get(up.name, ()) if depth < 4 else ()
                return any(isinstance(c.func, ast.Name) and self._runs_on_import(c, file, depth + 1) for c in calls)
        return True


def _by_context(call: ast.Call, file: File) -> bool:
    """`ctx.Process(...)` with `ctx = get_context("spawn")`."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr in ("Process", "Pool") and isinstance(func.value, ast.Name)):
        return False
    values = file.tensors.assigned(func.value) or file.module_values.get(func.value.id, [])
    return any(
        isinstance(v, ast.Call)
        and file.resolve(v.func) in CONTEXTS
        and any(isinstance(a, ast.Constant) and a.value in ("spawn", "forkserver") for a in v.args)
        for v in values
    )


def _by_trainer(call: ast.Call, file: File) -> bool:
    """`trainer.fit(...)` of a Trainer that spawns."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and func.attr == "fit"):
        return False
    made = [func.value] if isinstance(func.value, ast.Call) else []
    if isinstance(func.value, ast.Name):
        values = file.tensors.assigned(func.value) or file.module_values.get(func.value.id, [])
        made = [v for v in values if isinstance(v, ast.Call)]
    return any(
        isinstance(k.value, ast.Constant) and k.value.value == "ddp_spawn" for trainer in made for k in trainer.keywords
    )


def _has_workers(call: ast.Call, file: File) -> bool:
    if file.resolve(call.func) != "torch.utils.data.DataLoader":
        return False
    workers = option(call, "num_workers")
    if workers is None:
        return False
    value = file.constant(workers)
    return not isinstance(workers, ast.Constant) if value is None else isinstance(value, int) and value > 0
