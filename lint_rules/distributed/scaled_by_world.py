"""PTM418: a batch size or learning rate that depends on the number of processes makes each number another run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, last_part
from ..rule import Finding, Rule

SCALED = re.compile(r"(^|_)(batch_?size|bs|bsz|lr|learning_rate|base_lr)$", re.I)
RATE = re.compile(r"(^|_)(lr|learning_rate)$", re.I)
TOTAL = re.compile(r"(^|_)(total|global|effective|all|full|world)_", re.I)
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
        if isinstance(file.nodes.parents.get(node), ast.BinOp):
            return  # told of as a whole
        over, under = _factors(node)
        rated = _names_rate(node, file)
        divided = (any(_is_scaled(n) for n in over) or _is_batch(node, file)) and any(_is_world(n, file) for n in under)
        multiplied = any(_is_world(n, file) for n in over) and (
            any(_is_rate(n) for n in over) or (rated and not any(_is_scaled(n) for n in under))
        )
        counted = any(_is_world(n, file) for n in over) and _is_batch(node, file)
        if divided or multiplied or counted:
            yield self.finding(node, f"`{file.source(node)}` depends on the number of processes", file)

    def check_augmented(self, node: ast.AugAssign, file: File) -> Iterator[Finding]:
        scales = isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mult)) and _is_scaled(node.target)
        if scales and _is_world(node.value, file):
            yield self.finding(node, f"`{file.source(node)}` depends on the number of processes", file)


def _factors(node: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """What is multiplied, and what it is divided by, through the whole of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        (a, b), (c, d) = _factors(node.left), _factors(node.right)
        return a + c, b + d
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
        (a, b), (c, d) = _factors(node.left), _factors(node.right)
        return a + d, b + c
    return [node], []


def _names_rate(node: ast.BinOp, file: File) -> bool:
    """Whether the product is given as a learning rate: `lr=0.1 * world_size`, `lr = ...`."""
    return RATE.search(_given_to(node, file)) is not None


def _is_batch(node: ast.BinOp, file: File) -> bool:
    """Whether the product is given as a batch size, not as the number of samples of a step."""
    given = _given_to(node, file)
    return bool(SCALED.search(given)) and not RATE.search(given) and not TOTAL.search(given)


def _given_to(node: ast.BinOp, file: File) -> str:
    parent = file.nodes.parents.get(node)
    while isinstance(parent, ast.IfExp) or (
        isinstance(parent, ast.Call) and last_part(parent.func) in ("int", "float", "max", "min", "round")
    ):
        parent = file.nodes.parents.get(parent)
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    return (last_part(parent.targets[0]) or "") if isinstance(parent, ast.Assign) else ""


def _name(node: ast.expr) -> str | None:
    """`lr` of `args.lr`, and of `config["lr"]`."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return key if isinstance(key, str) else None
    return last_part(node)


def _is_rate(node: ast.expr) -> bool:
    return RATE.search(_name(node) or "") is not None


def _is_scaled(node: ast.expr) -> bool:
    name = _name(node)
    return name is not None and bool(SCALED.search(name))


def _is_world(node: ast.expr, file: File, depth: int = 0) -> bool:
    """`world_size`, `torch.cuda.device_count()`, `int(os.environ["WORLD_SIZE"])`, or a name that is given one."""
    if isinstance(node, ast.Call):
        if last_part(node.func) in ("int", "float", "max") and node.args:
            return any(_is_world(a, file, depth) for a in node.args)
        if last_part(node.func) in ("get", "getenv"):
            return any(isinstance(a, ast.Constant) and a.value == "WORLD_SIZE" for a in node.args)
        return last_part(node.func) in WORLD_CALLS or file.resolve(node.func) == "horovod.torch.size"
    name = _name(node)
    if name is not None and WORLD.search(name):
        return True
    if not isinstance(node, ast.Name) or depth > 1:
        return False
    values = file.tensors.assigned(node) or file.module_values.get(node.id, [])
    return len(values) == 1 and isinstance(values[0], ast.Call) and _is_world(values[0], file, depth + 1)
