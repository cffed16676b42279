"""PTM110: CUDA does not survive a fork, and what a module touches when it is imported is touched in every process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.arguments import given_to
from ptmigrate.migrate.facts.nodes import walk

from ..file import File, last_part
from ..rule import Finding, Rule
from .literal import ACCELERATOR, text_of

STARTS = {
    "torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.Process",
    "torch.multiprocessing.Pool", "multiprocessing.Process", "multiprocessing.Pool", "os.fork",
    "concurrent.futures.ProcessPoolExecutor",
}  # fmt: skip
TOUCHES = {
    "set_device", "current_device", "get_device_name", "get_device_properties", "init", "synchronize", "empty_cache",
    "memory_allocated", "mem_get_info", "get_device_capability", "current_stream",
}  # fmt: skip


class CudaBeforeStart(Rule):
    code = "PTM110"
    name = "cuda-before-start"
    why = (
        "CUDA cannot be used in a forked process once its parent has started it, and a spawned one repeats what the "
        "module does on import, on the first card. Touch CUDA only in the processes that train."
    )
    calls = ("spawn", "start_processes", "Process", "Pool", "fork", "ProcessPoolExecutor")

    BAD = (
        """
        import torch
        import torch.multiprocessing as mp
        def main():
            name = torch.cuda.get_device_name(0)
            mp.spawn(train, nprocs=2)
        """,
    )
    GOOD = (
        """
        import torch
        import torch.multiprocessing as mp
        def main():
            count = torch.cuda.device_count()
            mp.spawn(train, nprocs=count)
            print(torch.cuda.get_device_name(0))
        def train(rank):
            torch.cuda.set_device(rank)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if file.resolve(call.func) not in STARTS and not _of_context(call, file):
            return
        if last_part(call.func) not in ("spawn", "start_processes", "fork") and _says_spawn(file):
            return
        function = file.nodes.function_of(call)
        for touch in self._touches(file):
            if touch.lineno < call.lineno and file.nodes.function_of(touch) in (function, None):
                if _under_main_guard(touch, file) and function is not None:
                    continue
                yield self.finding(touch, f"CUDA is touched before processes are started on line {call.lineno}", file)

    def _touches(self, file: File) -> Iterator[ast.Call]:
        calls = file.nodes.calls
        for name in TOUCHES:
            for touch in calls.get(name, ()):
                if file.resolve(touch.func) == f"torch.cuda.{name}":
                    yield touch
        for touch in calls.get("cuda", ()):
            if isinstance(touch.func, ast.Attribute) and file.resolve(touch.func) is None:
                yield touch
        for touch in calls.get("to", ()):
            if touch.args and last_part(touch.func) and _is_cuda(touch.args[0], file):
                yield touch
        for k in file.nodes.of(ast.keyword):
            if k.arg == "device" and _is_cuda(k.value, file):
                made = file.nodes.parents[k]
                full = file.resolve(made.func) if isinstance(made, ast.Call) else None
                if isinstance(made, ast.Call) and full and full.startswith("torch.") and full != "torch.load":
                    yield made


def _is_cuda(node: ast.expr, file: File) -> bool:
    """`"cuda:0"`, or a name that is given such a device."""
    if not isinstance(node, ast.Name):
        return bool(ACCELERATOR.match(text_of(node)))
    values = file.tensors.assigned(node) or file.module_values.get(node.id, [])
    return any(
        ACCELERATOR.match(text_of(n)) for v in values if v is not None for n in walk(v) if isinstance(n, ast.Constant)
    )


def _of_context(call: ast.Call, file: File) -> bool:
    """`ctx.Process(...)` with `ctx = multiprocessing.get_context(...)`."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)):
        return False
    values = file.tensors.assigned(func.value) or file.module_values.get(func.value.id, [])
    return any(
        isinstance(v, ast.Call)
        and file.resolve(v.func) in ("torch.multiprocessing.get_context", "multiprocessing.get_context")
        for v in values
    )


def _says_spawn(file: File) -> bool:
    """Whether the file has its processes spawned, and so expects CUDA to be in use: `set_start_method("spawn")`."""
    calls = (*file.nodes.calls.get("set_start_method", ()), *file.nodes.calls.get("get_context", ()))
    return any(text_of(a) in ("spawn", "forkserver") for c in calls for a in given_to(c))


def _under_main_guard(node: ast.AST, file: File) -> bool:
    return any(
        isinstance(up, ast.If) and any(n.id == "__name__" for n in walk(up.test, ast.Name))
        for up in file.nodes.ancestors(node)
    )
