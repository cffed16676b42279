"""T9: functions that have nothing left to do once the runtime has the processes: `setup()`, `zero_first()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.effects import only_asks
from ..facts.script import Facts
from .base import Change, Codemod
from .branch_rewrites import body_only

TENSORS = (".parameters()", ".buffers()", ".named_parameters()", ".named_buffers()", ".state_dict().values()")
NO_GRAD = ("torch.no_grad", "torch.inference_mode")
WHY = "the runtime starts and connects the processes"


def empty_blocks(codemod: Codemod, facts: Facts, removed: set[ast.AST]) -> Iterator[Change]:
    """`for p in model.parameters():` and `with torch.no_grad():` around what goes."""
    seen: set[ast.AST] = set()
    for s in facts.walk(ast.With) + facts.walk(ast.For):
        if not seen & set(facts.scopes.ancestors(s)) and s not in removed and _is_out(facts, s, removed):
            seen.add(s)
            says = f"`{facts.short(s)}` removed: {WHY}"
            yield Change(s, codemod.edit(facts, s, says), None, (s,))


def empty_functions(codemod: Codemod, facts: Facts, removed: set[ast.AST]) -> Iterator[Change]:
    """`setup()` and `cleanup()` that have nothing left to do go with their calls."""
    around = {up for s in removed for up in facts.scopes.ancestors(s)}
    for f in facts.walk(ast.FunctionDef):
        body = [s for s in f.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if f not in around or facts.is_library:
            continue
        yields = [s for s in body if f.decorator_list and _only_yields(s)]
        if len(yields) > 1 or not all(s in yields or _is_out(facts, s, removed) for s in body):
            continue
        if f.decorator_list:
            yield from _around_nothing(codemod, facts, f)
            continue
        uses = facts.devices.uses_of_function(f)
        holders = [facts.scopes.parents.get(u) for u in uses]
        if all(isinstance(u, ast.Call) for u in uses) and all(isinstance(h, ast.Expr) for h in holders):
            yield Change(f, codemod.edit(facts, f, f"{f.name}() removed: {WHY}"), None, (f,))
            for h in holders:
                assert h is not None
                yield Change(h, codemod.edit(facts, h, f"`{facts.short(h)}` removed: {WHY}"), None, (h,))


def _around_nothing(codemod: Codemod, facts: Facts, f: ast.FunctionDef) -> Iterator[Change]:
    """`with zero_first(rank):` that has nothing left to do before or after its block."""
    scope = facts.scopes.scope_of(f)
    items = [facts.scopes.parents.get(facts.scopes.parents[r]) for r in facts.scopes.reads(f.name, scope)]
    blocks = [facts.scopes.parents.get(i) for i in items if isinstance(i, ast.withitem) and i.optional_vars is None]
    alone = [b for b in blocks if isinstance(b, ast.With) and len(b.items) == 1]
    decorators = [facts.names.resolve(d) for d in f.decorator_list]
    if scope.is_class or decorators != ["contextlib.contextmanager"] or not len(items) == len(alone) > 0:
        return
    yield Change(f, codemod.edit(facts, f, f"{f.name}() removed: {WHY}"), None, (f,))
    for block in alone:
        says = f"`with {facts.short(block.items[0].context_expr)}:` removed: {WHY}"
        yield Change(block, codemod.edit(facts, block, says), body_only, (block.items[0],))


def _is_out(facts: Facts, s: ast.stmt, removed: set[ast.AST]) -> bool:
    """Whether a statement goes, or nothing is left in it."""
    if s in removed or isinstance(s, ast.Pass):
        return True
    if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and len(s.targets) == 1:
        return only_asks(facts.names, _inner(s.value)) and _is_unread(facts, s.targets[0], removed)
    if isinstance(s, ast.For):
        goes = isinstance(s.iter, ast.Call) and ast.unparse(s.iter).endswith(TENSORS)
    elif isinstance(s, ast.With):
        calls = [i.context_expr for i in s.items if isinstance(i.context_expr, ast.Call) and i.optional_vars is None]
        goes = len(calls) == len(s.items) and all(facts.names.resolve(c.func) in NO_GRAD for c in calls)
        return goes and all(_is_out(facts, x, removed) for x in s.body)
    else:
        goes = isinstance(s, ast.If) and only_asks(facts.names, s.test)
    return goes and all(_is_out(facts, x, removed) for x in (*s.body, *s.orelse))  # type: ignore[attr-defined]


def _only_yields(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield) and s.value.value is None


def _inner(value: ast.expr) -> ast.expr:
    """`dist.get_world_size()` of `float(dist.get_world_size())`."""
    converts = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "float"
    return value.args[0] if converts and len(value.args) == 1 else value  # type: ignore[attr-defined]


def _is_unread(facts: Facts, name: ast.Name, removed: set[ast.AST]) -> bool:
    """Whether only what goes reads a name of a function."""
    home = facts.scopes.scope_of(name).lookup(name.id)
    if home is None or home is facts.scopes.module:
        return False
    return all(any(up in removed for up in facts.scopes.ancestors(r)) for r in facts.scopes.reads(name.id, home))
