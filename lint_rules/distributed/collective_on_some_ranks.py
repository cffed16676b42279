"""PTM409: a collective that only some ranks enter waits for the others until the time-out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File, last_part
from ..rule import Finding, Rule
from .guards import rank_guard

COLLECTIVES = {
    "barrier", "monitored_barrier", "all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor",
    "all_to_all", "all_to_all_single", "broadcast", "broadcast_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "gather", "gather_object", "scatter", "scatter_object_list",
}  # fmt: skip

HOROVOD = {
    "allreduce", "allreduce_", "allgather", "broadcast", "broadcast_", "alltoall", "broadcast_parameters",
    "broadcast_optimizer_state", "broadcast_object", "allgather_object", "join",
}  # fmt: skip
# methods of what stands for a group elsewhere, and of what they are
WRAPPED = {"barrier", "all_gather", "all_reduce", "broadcast", "wait_for_everyone", "gather_for_metrics"}
HANDLES = {"fabric", "accelerator", "strategy", "runtime"}


class CollectiveOnSomeRanks(Rule):
    code = "PTM409"
    name = "collective-on-some-ranks"
    why = (
        "Every rank of a group has to enter a collective. Where a branch keeps some of them out, those inside wait "
        "until the time-out, half an hour later. Let all ranks take part, and use the result where it is wanted."
    )
    calls = tuple(sorted(COLLECTIVES | HOROVOD | WRAPPED))

    BAD = """
        import torch.distributed as dist
        if dist.get_rank() == 0:
            dist.all_reduce(loss)
            print(loss)
        """
    GOOD = (
        """
        import torch.distributed as dist
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(loss)
        """,
        """
        import torch.distributed as dist
        if rank != 0:
            dist.barrier()
        download()
        if rank == 0:
            dist.barrier()
        """,
        """
        import torch.distributed as dist
        if rank == 0:
            dist.scatter(out, chunks, src=0)
        else:
            dist.scatter(out, src=0)
        """,
        """
        import torch.distributed as dist
        if args.local_rank != -1:
            dist.barrier()
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        name = _collective(call, file)
        if name is not None and not _names_a_group(call):
            yield from self._checked(call, name, file)

    def check_file(self, file: File) -> Iterator[Finding]:
        """A function whose every call enters a collective is one itself."""
        if file.ranks.distributed is None and not any(name in file.nodes.calls for name in COLLECTIVES):
            return
        inside = {}
        for name in COLLECTIVES & file.nodes.calls.keys():
            for call in file.nodes.calls[name]:
                function = file.nodes.function_of(call)
                if function is None or not _collective(call, file) or _names_a_group(call):
                    continue
                if file.nodes.statement_of(call) in function.body:
                    inside[function] = name
        for function in inside:
            if rank_guard(function.body[-1], file) is None:
                for call in file.loops.calls_of(function):
                    yield from self._checked(call, function.name, file)

    def _checked(self, call: ast.Call, name: str, file: File) -> Iterator[Finding]:
        guard = rank_guard(call, file)
        if name == "barrier" and isinstance(guard, ast.If) and _is_for_the_others(guard.test):
            return
        if guard is not None and not is_expected_to_fail(call, file) and not _others_join(call, name, guard, file):
            line = getattr(guard, "lineno", call.lineno)
            text = f"`{name}` is reached by some ranks only (line {line} decides), and waits for the others"
            yield self.finding(call, text, file)


def _collective(call: ast.Call, file: File) -> str | None:
    """The name of the collective that a call is."""
    full = file.resolve(call.func)
    if full is None:
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in WRAPPED:
            return None
        holder = last_part(func.value)
        of_module = holder == "self" and func.attr == "all_gather" and file.classes.kind_of(call) == "lightning"
        return func.attr if holder in HANDLES or of_module else None
    home, _, name = full.rpartition(".")
    known = (home == "torch.distributed" and name in COLLECTIVES) or (home == "horovod.torch" and name in HOROVOD)
    return name if known else None


def _names_a_group(call: ast.Call) -> bool:
    """A group of those ranks that take the branch may well be meant."""
    return any(k.arg == "group" for k in call.keywords)


def _is_for_the_others(test: ast.expr) -> bool:
    """`if rank != 0: barrier()` waits for the first rank, whose own barrier may well stand in another function."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq)


def is_expected_to_fail(call: ast.Call, file: File) -> bool:
    """Whether a test looks at the error itself."""
    return any(
        isinstance(up, ast.With)
        and any(word in file.source(up.items[0].context_expr, 200) for word in ("assertRaises", "raises", "exc"))
        for up in file.nodes.ancestors(call)
    )


def _others_join(call: ast.Call, name: str, guard: ast.AST, file: File) -> bool:
    """Whether the function has the collective for the other ranks too, in another branch or under its own guard."""
    function = file.nodes.function_of(call)
    for other in file.nodes.calls.get(name, ()):
        if other is call or file.nodes.function_of(other) is not function:
            continue
        theirs = rank_guard(other, file)
        if theirs is guard and _side(call, guard, file) is not _side(other, guard, file):
            return True
        if theirs is not None and theirs is not guard and not (_is_for_the_first(guard) and _is_for_the_first(theirs)):
            return True
    return False


def _is_for_the_first(guard: ast.AST) -> bool:
    """`if rank == 0:`, `if not rank:`, `if is_main:`: surely for the first rank, as part of a condition too."""
    test = getattr(guard, "test", None)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[0]
    if isinstance(test, ast.Compare):
        right = test.comparators[0]
        return isinstance(test.ops[0], ast.Eq) and isinstance(right, ast.Constant) and right.value == 0
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not) and "rank" in ast.unparse(test.operand)
    return test is not None and "main" in ast.unparse(test)


def _side(node: ast.AST, guard: ast.AST, file: File) -> object:
    """Which branch of a guard the node stands in."""
    child = node
    for up in file.nodes.ancestors(node):
        if up is guard:
            if isinstance(up, (ast.If, ast.IfExp)):
                return child in up.body if isinstance(up, ast.If) else child is up.body
            return child if isinstance(up, ast.Match) else True
        child = up
    return True
