"""PTM418: a batch size or learning rate that depends on the number of processes makes each number another run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, last_part
from ..rule import Finding, Rule

SCALED = re.compile(r"(^|_)(batch_?size|bs|bsz|lr|learning_rate|base_lr)$", re.I)
RATE = re.compile(r"(^|_)(lr|learning_rate)$", re.I)
WORLD = re.compile(
    r"(^|_)(world_?size|n_?gpus?|num_?gpus?|ngpus?_per_node|n_?procs|num_?(replicas|processes|devices))$", re.I
)
WORLD_CALLS = {"get_world_size", "device_count"}


class ScaledByWorld(Rule):
    code = "PTM418"
    name = "scaled-by-world"
    why = (
        "What is divided or multiplied by hand is easily done twice, by the script and by a trainer, and a "
        "remainder is dropped without a word. With --global-batch the runtime keeps the script's batch on any "
        "number of processes."
    )

    BAD = (
        """
        import torch
        args.batch_size = int(args.batch_size / ngpus_per_node)
        """,
        """
        import torch
        args.lr *= torch.distributed.get_world_size()
        """,
    )
    GOOD = """
        import torch
        steps = total // (batch_size * accumulate)
        samples = batch_size * steps
        rank = node * ngpus_per_node + gpu
        """

    def check_operation(self, node: ast.BinOp, file: File) -> Iterator[Finding]:
        divided = isinstance(node.op, ast.Div | ast.FloorDiv) and _is_scaled(node.left) and _is_world(node.right)
        if divided or (isinstance(node.op, ast.Mult) and _is_rate_by_world(node.left, node.right)):
            yield self.finding(node, f"`{file.source(node)}` depends on the number of processes", file)

    def check_augmented(self, node: ast.AugAssign, file: File) -> Iterator[Finding]:
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mult) and _is_scaled(node.target) and _is_world(node.value):
            yield self.finding(node, f"`{file.source(node)}` depends on the number of processes", file)


def _is_rate_by_world(left: ast.expr, right: ast.expr) -> bool:
    """A learning rate times the world; a batch size times the world only counts samples."""
    return any(RATE.search(last_part(one) or "") and _is_world(other) for one, other in ((left, right), (right, left)))


def _is_scaled(node: ast.expr) -> bool:
    name = last_part(node)
    return name is not None and bool(SCALED.search(name))


def _is_world(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if last_part(node.func) in ("int", "float", "max") and node.args:
            return any(_is_world(a) for a in node.args)
        return last_part(node.func) in WORLD_CALLS
    name = last_part(node)
    return name is not None and bool(WORLD.search(name))
