"""PTM416: a message whose request is thrown away may never have been sent when its buffer is used again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import appended
from ..file import File, is_constant, keyword
from ..rule import Finding, Rule
from .collective_on_some_ranks import COLLECTIVES, is_expected_to_fail

REQUESTS = ("isend", "irecv", "batch_isend_irecv")


class UnwaitedRequest(Rule):
    code = "PTM416"
    name = "unwaited-request"
    why = (
        "isend, irecv and collectives with async_op=True return before the tensor was sent or has arrived. Without "
        "wait() on what they return, the next line reads or overwrites a tensor that is still on its way."
    )
    fix = "unsafe"
    calls = (*REQUESTS, *sorted(COLLECTIVES))

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
        for request in requests:
            request.wait()
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        home, _, name = full.rpartition(".")
        if home != "torch.distributed":
            return
        if name not in REQUESTS and not is_constant(keyword(call, "async_op"), True):
            return
        if is_expected_to_fail(call, file):
            return
        holder: ast.AST = call
        parent = file.nodes.parents.get(call)
        if isinstance(parent, ast.ListComp) and parent.elt is call:
            holder, parent = parent, file.nodes.parents.get(parent)
        if isinstance(parent, ast.Expr):
            repair = appended(call, ".wait()") if name != "batch_isend_irecv" and holder is call else None
            text = f"the request of `{name}` is thrown away; keep it and call its wait()"
            yield self.finding(call, text, file, repair)
        elif isinstance(parent, ast.Assign) and holder is parent.value and not _is_read(parent.targets[0], file):
            yield self.finding(call, f"nothing waits for this `{name}`; call wait() on what it returns", file)


def _is_read(target: ast.expr, file: File) -> bool:
    """Whether the name is read in its function, or in one inside of that."""
    if not isinstance(target, ast.Name) or target.id == "_":
        return True
    scope = file.tensors.scope(target)
    return any(
        n.id == target.id
        and isinstance(n.ctx, ast.Load)
        and (scope is file.tree or any(up is scope for up in file.nodes.ancestors(n)))
        for n in file.nodes.of(ast.Name)
    )
