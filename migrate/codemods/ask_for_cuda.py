"""What only a machine with CUDA has is asked of such a machine alone: `torch.cuda.synchronize()` and its like.

They wait, reset and give nothing; without CUDA they raise, in a script that otherwise runs anywhere by now. So does
`with torch.cuda.device(i):`, which is told of where it stays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.devices import AVAILABILITY
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod, Insertion
from .rewrites import under

NAMES = "synchronize reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached ipc_collect init"
CARD = "torch.cuda.device"
RAISE = {f"torch.cuda.{name}" for name in f"{NAMES} reset_accumulated_memory_stats".split()}
LEFT = "Stream Event ExternalStream CUDAGraph current_stream default_stream current_device mem_get_info"
LEFT += " get_device_name get_device_properties get_device_capability"
LEFT_NAMES = {f"torch.cuda.{name}" for name in LEFT.split()}
TELLS_OF_CUDA = re.compile(r"cuda|gpu|device|accelerator", re.IGNORECASE)


class AskForCuda(Codemod):
    code = "PTM112"
    name = "ask-for-cuda"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call) if not RAISE.isdisjoint(facts.called) else ():
            if facts.names.resolve(call.func) not in RAISE:
                continue
            asks = _question(facts, call.func)
            s = facts.scopes.parents.get(call)
            if asks is not None and isinstance(s, ast.Expr) and stands_alone(facts, s) and not _asked(facts, s):
                says = f"`{facts.short(call)}` raises without CUDA, which is asked for first"
                more = (
                    None
                    if facts.scopes.module.stores.get(asks.partition(".")[0])
                    else Insertion(1, "", ["import torch"])
                )
                yield Change(s, self.edit(facts, s, says), under(f"{asks}()", facts.indentation), (), more)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self._left(facts)
        for s in facts.walk(ast.With) if "cuda" in facts.text.text else ():
            for call in (i.context_expr for i in s.items if isinstance(i.context_expr, ast.Call)):
                where = argument_at(call, "device", 0) if facts.names.resolve(call.func) == CARD else None
                if where is None or isinstance(where, ast.Constant) or _is_place_of_tensor(where) or _asked(facts, s):
                    continue  # a card that is written there is told of as any other device
                if facts.is_library or len(s.items) > 1 or not facts.devices.says_where(where):
                    line, column, _, _ = facts.text.key(call)
                    says = f"`with {facts.short(call)}:` raises where there is no CUDA"
                    yield Note(line, column + 1, self.code, says)

    def _left(self, facts: Facts) -> Iterator[Note]:
        """Streams, events and what else asks CUDA itself, by the first call of each."""
        told: set[str] = set()
        for call in facts.walk(ast.Call) if "cuda" in facts.text.text else ():
            full = facts.names.resolve(call.func) or ""
            left = full in LEFT_NAMES or full.startswith("torch.cuda.nvtx.")
            if not left or full in told or _asked(facts, facts.scopes.statement_of(call)) or _asked_beside(facts, call):
                continue
            told.add(full)
            line, column, _, _ = facts.text.key(call)
            yield Note(line, column + 1, self.code, f"`{facts.short(call)}` raises where there is no CUDA")


def _asked_beside(facts: Facts, call: ast.Call) -> bool:
    """Whether the expression around a call tells of devices: `Stream() if use_cuda else None`."""
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.stmt):
            return False
        tests = [up.test] if isinstance(up, ast.IfExp) else up.values if isinstance(up, ast.BoolOp) else []
        if any(_tells(facts, n) for test in tests if test is not child for n in walk(test)):
            return True
        child = up
    return False


def _tells(facts: Facts, n: ast.AST) -> bool:
    name = n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else ""
    return TELLS_OF_CUDA.search(name) is not None or facts.names.resolve(n) in AVAILABILITY


def _is_place_of_tensor(where: ast.expr) -> bool:
    """`x.get_device()`, which is a negative number on the CPU, where the block does nothing."""
    return isinstance(where, ast.Call) and isinstance(where.func, ast.Attribute) and where.func.attr == "get_device"


def _question(facts: Facts, func: ast.expr) -> str | None:
    """The source of `torch.cuda.is_available`, for a function of that module or one that was imported from it."""
    if isinstance(func, ast.Attribute):
        return f"{facts.text.get(func.value)}.is_available"
    home = facts.scopes.scope_of(func).lookup(func.id) if isinstance(func, ast.Name) else None
    if home is not facts.scopes.module or not all(isinstance(s, ast.alias) for s in home.stores[func.id]):  # type: ignore[attr-defined]
        return None
    return "torch.cuda.is_available" if _is_torch(facts, home.stores.get("torch", [])) else None


def _is_torch(facts: Facts, stores: list[ast.AST]) -> bool:
    """Whether the name `torch` is free, or is the package."""
    plain = all(isinstance(s, ast.alias) and s.name.partition(".")[0] == "torch" for s in stores)
    return plain and all("torch" not in (*scope.params, *scope.stores) for scope in facts.scopes.module.children)


def stands_alone(facts: Facts, s: ast.stmt) -> bool:
    """On a line of its block; not behind a colon."""
    first = next(b for b in facts.scopes.block_of(s) or [s] if b.lineno == s.lineno or b.end_lineno == s.lineno)
    return not facts.text.margin(first).strip()


def _asked(facts: Facts, s: ast.stmt) -> bool:
    """Whether a condition around a statement tells of devices, or a `try` is ready for what is raised: not one that
    holds the loop around it, which would end.
    """
    in_loop = False
    for up in facts.scopes.ancestors(s):
        in_loop = in_loop or isinstance(up, (ast.For, ast.While))
        if isinstance(up, ast.Try) and up.handlers and not in_loop:
            return True
        if isinstance(up, (ast.If, ast.While)) and any(_tells(facts, n) for n in walk(up.test)):
            return True
    return False
