"""Where a file shows that it runs as several processes, and which branches only one rank takes."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import FUNCTIONS, Nodes, walk

RANK_NAME = re.compile(
    r"(^|_)(rank|local_rank|global_rank|node_rank|rank_id|proc_id|process_index|local_process_index)$", re.I
)
MAIN_NAME = re.compile(
    r"(^|_)is_(main|master|global_zero|rank_?0|rank_?zero|chief|primary|root|first)(_\w+)?$|^master_process$|^is_main$"
    r"|(^|_)(main|master)_(process|proc|rank|worker|gpu|node)$",
    re.I,
)
RANK_CALLS = {"get_rank", "get_node_rank", "get_local_rank", "get_global_rank", "is_main_process", "is_master"}
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "GROUP_RANK", "OMPI_COMM_WORLD_RANK")
DISTRIBUTED = {
    "torch.distributed.init_process_group",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "apex.parallel.DistributedDataParallel",
    "horovod.torch.init",
    "horovod.torch.DistributedOptimizer",
}
_DISTRIBUTED_LASTS = {name.rpartition(".")[2] for name in DISTRIBUTED}


class Ranks:
    def __init__(self, nodes: Nodes, names: Names) -> None:
        self.nodes = nodes
        self.names = names

    @cached_property
    def distributed(self) -> ast.Call | None:
        """A call that shows that the file's processes train together."""
        calls = self.nodes.calls
        for wanted in DISTRIBUTED:
            last = wanted.rpartition(".")[2]
            found = next((c for c in calls.get(last, ()) if self.names.resolve(c.func) == wanted), None)
            if found is None and last == "DistributedDataParallel":
                found = next((c for c in calls.get("DDP", ()) if self.names.resolve(c.func) == wanted), None)
            if found is not None:
                return found
        # imported under another name
        for others in calls.values():
            for call in others:
                func = call.func
                if isinstance(func, ast.Name) and self.names.resolve(func) in DISTRIBUTED:
                    return call
        return None

    def guard_of(self, node: ast.AST) -> ast.AST | None:
        """The branch that only some ranks take, with the node in it: an `if`, or a function that returns first."""
        child = node
        for up in self.nodes.ancestors(node):
            if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and self.is_rank_test(up.test):
                return up
            if isinstance(up, ast.BoolOp) and child is not up.values[0] and self.is_rank_test(up.values[0]):
                return up
            if isinstance(up, ast.Match) and child is not up.subject and self.is_rank_test(up.subject):
                return up
            block = getattr(up, "body", None)
            if isinstance(block, list) and child in block:
                early = self._early_exit(block, child)
                if early is not None:
                    return early
            if isinstance(up, FUNCTIONS):
                decorated = [d for d in up.decorator_list if "rank" in _text(d) or "main_process" in _text(d)]
                if decorated:
                    return up
            child = up
        return None

    def _early_exit(self, block: list[ast.stmt], child: ast.AST) -> ast.AST | None:
        for s in block:
            if s is child:
                return None
            leaves = isinstance(s, ast.If) and isinstance(s.body[-1], (ast.Return, ast.Continue, ast.Raise))
            if leaves and self.is_rank_test(s.test):  # type: ignore[attr-defined]
                return s
        return None

    def is_rank_test(self, test: ast.expr) -> bool:
        """`rank == 0`, `not is_main_process()`, `args.local_rank in (-1, 0)`, also as part of a condition."""
        for node in walk(test):
            name = _last(node.func) if isinstance(node, ast.Call) else _last(node)
            if isinstance(node, ast.Constant):
                if node.value in RANK_VARIABLES and self._reads_environment(node):
                    return True
                continue
            if isinstance(node, ast.Call) and (self.names.resolve(node.func) or "").endswith((".get_rank", ".rank")):
                return True
            if name and (RANK_NAME.search(name) or MAIN_NAME.search(name) or name in RANK_CALLS):
                return True
            if isinstance(node, ast.Name) and node.id in self._rank_flags:
                return True
        return False

    def _reads_environment(self, name: ast.AST) -> bool:
        """`os.environ["RANK"]`, `os.environ.get("RANK", 0)`, `os.getenv("RANK")`"""
        up = self.nodes.parents.get(name)
        if isinstance(up, ast.Subscript):
            return _last(up.value) == "environ"
        return isinstance(up, ast.Call) and _last(up.func) in ("get", "getenv")

    @cached_property
    def _rank_flags(self) -> set[str]:
        """Names given the result of a comparison with the rank: `verbose = rank == 0`."""
        found: set[str] = set()
        for assign in self.nodes.of(ast.Assign):
            if isinstance(assign.value, (ast.Compare, ast.BoolOp)) and any(
                (name := _last(n)) and (RANK_NAME.search(name) or name in RANK_CALLS) for n in walk(assign.value)
            ):
                found.update(t.id for t in assign.targets if isinstance(t, ast.Name))
        return found


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _text(node: ast.AST) -> str:
    return " ".join(filter(None, (_last(n) for n in walk(node))))
