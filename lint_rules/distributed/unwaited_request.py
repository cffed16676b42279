"""PTM416: a message whose request is thrown away may never have been sent when its buffer is used again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, is_constant, keyword
from ..rule import Finding, Rule
from .collective_on_some_ranks import COLLECTIVES


class UnwaitedRequest(Rule):
    code = "PTM416"
    name = "unwaited-request"
    why = (
        "isend, irecv and collectives with async_op=True return before the tensor was sent or has arrived. Without "
        "wait() on what they return, the next line reads or overwrites a tensor that is still on its way."
    )
    calls = ("isend", "irecv", *sorted(COLLECTIVES))

    BAD = (
        """
        import torch.distributed as dist
        dist.isend(tensor, dst=1)
        tensor.zero_()
        """,
        """
        import torch.distributed as dist
        work = dist.all_reduce(tensor, async_op=True)
        print(tensor)
        """,
    )
    GOOD = """
        import torch.distributed as dist
        request = dist.isend(tensor, dst=1)
        request.wait()
        dist.all_reduce(tensor)
        requests = [dist.irecv(t, src=0) for t in tensors]
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        home, _, name = full.rpartition(".")
        if home != "torch.distributed":
            return
        if name not in ("isend", "irecv") and not is_constant(keyword(call, "async_op"), True):
            return
        parent = file.nodes.parents.get(call)
        if isinstance(parent, ast.Expr):
            yield self.finding(call, f"the request of `{name}` is thrown away; keep it and call its wait()", file)
        elif isinstance(parent, ast.Assign) and not _is_read(parent.targets[0], file):
            yield self.finding(call, f"nothing waits for this `{name}`; call wait() on what it returns", file)


def _is_read(target: ast.expr, file: File) -> bool:
    if not isinstance(target, ast.Name) or target.id == "_":
        return True
    return any(n.id == target.id and isinstance(n.ctx, ast.Load) for n in file.nodes.of(ast.Name))
