"""What the rules about ranks share: branches that only some ranks take."""

from __future__ import annotations

import ast

from ptmigrate.migrate.facts.nodes import walk

from ..file import File, last_part


def rank_guard(node: ast.AST, file: File) -> ast.AST | None:
    """The branch with the node in it that some ranks take and others do not.

    `if local_rank != -1` and `if world_size > 1` ask whether there are ranks at all: no such branch.
    """
    guard = file.ranks.guard_of(node)
    while isinstance(guard, (ast.If, ast.IfExp)) and asks_whether_distributed(guard.test):
        guard = file.ranks.guard_of(guard)
    return guard


def runs_on_some_ranks(node: ast.AST, file: File, depth: int = 0) -> bool:
    """Whether only some ranks get to the node: by a branch around it, or around every call of its function."""
    if rank_guard(node, file) is not None or _under_card_test(node, file):
        return True
    function = file.nodes.function_of(node)
    calls = file.loops.calls_of(function) if function is not None and depth < 3 else []
    return bool(calls) and all(runs_on_some_ranks(call, file, depth + 1) for call in calls)


def _under_card_test(node: ast.AST, file: File) -> bool:
    """`if self.gpu_id == 0`: with one process a card, the card stands for the rank."""
    child = node
    for up in file.nodes.ancestors(node):
        if isinstance(up, ast.If) and child in up.body:
            for n in walk(up.test):
                name = last_part(n.left) if isinstance(n, ast.Compare) else None
                if name in ("gpu", "gpu_id", "device_id", "local_id", "proc_id", "pid"):
                    return True
        child = up
    return False


def asks_whether_distributed(test: ast.expr) -> bool:
    """Whether a test compares a rank with -1 (or asks for `>= 0`), and nothing else with it."""
    compares = list(walk(test, ast.Compare))
    return bool(compares) and all(_is_minus_one(c) for c in compares)


def _is_minus_one(compare: ast.Compare) -> bool:
    if len(compare.ops) != 1:
        return False
    operator, right = compare.ops[0], compare.comparators[0]
    minus_one = isinstance(right, ast.UnaryOp) and isinstance(right.operand, ast.Constant) and right.operand.value == 1
    none = isinstance(right, ast.Constant) and right.value is None
    zero = isinstance(right, ast.Constant) and right.value == 0 and not isinstance(right.value, bool)
    return minus_one or none or (zero and isinstance(operator, ast.GtE))


def evaluation_step_of(node: ast.AST, file: File) -> str | None:
    """The name of the Lightning method for evaluation that the node stands in, or that calls the node's method."""
    method = file.classes.method_of(node)
    if method is None or file.classes.kind_of(node) != "lightning":
        return None
    return file.classes.reached_from(method, EVALUATION_METHODS)


EVALUATION_METHODS = {
    "validation_step", "test_step", "validation_epoch_end", "test_epoch_end", "on_validation_epoch_end",
    "on_test_epoch_end", "validation_step_end", "test_step_end", "on_validation_batch_end", "on_test_batch_end",
    "on_validation_end", "on_test_end",
}  # fmt: skip
