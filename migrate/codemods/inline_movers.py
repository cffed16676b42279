"""T1, before what finds moves: a tensor that a function of the script's own moves is moved where it is made.

    def to_gpu(x): return x.cuda() if use_cuda else x

`to_gpu(torch.zeros(3))` is `torch.zeros(3).to('cuda' if use_cuda else 'cpu')`, which T2 puts where its inputs are. What
is a batch or a module keeps the call, which T1 takes off with the function.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from ..facts.arguments import argument, default_of
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.other_files import name_there
from ..facts.own_movers import MOVERS
from ..facts.plain import VARIABLE
from ..facts.script import Facts
from .base import Change, Codemod
from .remove_device_calls import Mover

HERE = ast.Constant("cpu")  # where a tensor is that was made without a device
LONGEST = 6  # statements of such a function: each of its branches is followed
ANYWHERE = {"torch", "os"}  # names that are the same in all files that import them
TENSORS = {"torch.Tensor", VARIABLE, "torch.autograd.variable.Variable"}


class InlineMovers(Codemod):
    code = "PTM101"
    name = "inline-movers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        moves = any(name in facts.attributes for name in MOVERS)
        movers: list[Mover] = [*facts.walk(ast.FunctionDef), *facts.walk(ast.Lambda)]
        for f in movers if moves else ():
            place = _place(facts, f)
            if place is None or not self._is_given_made(facts, f):
                continue
            uses = facts.classes.uses_of(f)
            made = [c for c in uses if isinstance(c, ast.Call) and _gives_made(facts, f, c)]
            written = {c: where for c in made if (where := _written(facts, f, c, place)) is not None}
            for call, where in written.items():
                says = f"`{facts.short(call)}` is moved where it is made, for its place to be seen"
                yield Change(call, self.edit(facts, call, says), _moved_to(where))
            if written and len(written) == len(uses) and not facts.is_library and facts.classes.holder(f) is None:
                s = facts.scopes.statement_of(f)
                says = f"{facts.classes.name_of(f)}() removed: nothing calls it any more"
                yield Change(s, self.edit(facts, s, says), None, (s,))
        if facts.movers_elsewhere:
            yield from self._imported(facts)

    def _is_given_made(self, facts: Facts, f: Mover) -> bool:
        x = _given(facts, f)
        return x is not None and facts.placed.is_given_made(x, facts.scopes.by_node[f])

    def _imported(self, facts: Facts) -> Iterator[Change]:
        """`to_gpu(torch.zeros(3))` of another file, which lets go of what it moves as this one does."""
        for call in facts.walk(ast.Call):
            where = said_here(facts, call, facts.movers_elsewhere)
            if where is not None:
                says = f"`{facts.short(call)}` is moved where it is made, for its place to be seen"
                yield Change(call, self.edit(facts, call, says), _moved_to(where))


def movers_of(facts: Facts) -> dict[str, str]:
    """The functions of a file that only move what they are given: `lambda x, gpu: 'cuda' if gpu else 'cpu'`."""
    found = {}
    for f in (s for s in facts.tree.body if isinstance(s, ast.FunctionDef)):
        place = _place(facts, f)
        if place is None or not all(isinstance(d, ast.Constant) for d in f.args.defaults):
            continue
        own = set(facts.scopes.by_node[f].params)
        names = {n.id for n in walk(place, ast.Name)} - own - ANYWHERE
        given = {name: facts.devices.assigned(name, facts.scopes.module) or [] for name in names}
        place = _Given({n: v[0] for n, v in given.items() if len(v) == 1}).visit(copy.deepcopy(place))
        if all(n.id in own | ANYWHERE for n in ast.walk(place) if isinstance(n, ast.Name)):
            found[f.name] = ast.unparse(ast.Lambda(f.args, place))
    return found


def said_here(facts: Facts, call: ast.Call, movers: dict[str, str]) -> str | None:
    """Where a function of another file brings what a call gives it; None where the call stays."""
    full = name_there(facts, call.func) or ""
    said = movers.get(full.rpartition(".")[2])
    if said is None or full.startswith("torch.") or not _gives_made(facts, None, call):
        return None
    return _said_here(facts, ast.parse(said, mode="eval").body, call)


def _said_here(facts: Facts, said: ast.expr, call: ast.Call) -> str | None:
    """Where a function of another file brings what a call gives it; None where that is said in names of its own."""
    if not isinstance(said, ast.Lambda):
        return None
    given: dict[str, ast.expr] = {}
    for n in (n for n in ast.walk(said.body) if isinstance(n, ast.Name)):
        if n.id in ANYWHERE:
            home = facts.scopes.scope_of(call).lookup(n.id)
            stores = home.stores[n.id] if home is facts.scopes.module else [said]
            if not all(isinstance(s, (ast.alias, ast.Import)) for s in stores):
                return None
            continue
        value = argument(call, said, n.id) or default_of(said, n.id)
        if not isinstance(value, (ast.Name, ast.Attribute, ast.Constant)):
            return None
        given[n.id] = value
    return ast.unparse(_Given(given).visit(said.body))


def _place(facts: Facts, f: Mover) -> ast.expr | None:
    """Where a function brings the tensor that it is given first, and does nothing else to it; None for any other."""
    body: list[ast.stmt] = f.body if isinstance(f, ast.FunctionDef) else [ast.Return(f.body)]
    x, asked = _given(facts, f), isinstance(f, ast.FunctionDef) and bool(f.decorator_list)
    if x is None or asked or len(body) > LONGEST or f.args.vararg or f.args.kwarg:
        return None
    if not any(n.attr in MOVERS for n in walk(f, ast.Attribute)):
        return None
    place = _of_block(facts, body, x, HERE)
    return None if place is HERE else place


def _given(facts: Facts, f: Mover) -> str | None:
    """The parameter that is first in a call; of a method it is the second, where no other class has one of its name."""
    own = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
    if facts.classes.holder(f) is not None:
        name = getattr(f, "name", "")
        if own[:1] != ["self"] or sum(g.name == name for g in facts.walk(ast.FunctionDef)) > 1:
            return None
        del own[0]
    return own[0] if own else None


def _of_block(facts: Facts, body: list[ast.stmt], x: str, now: ast.expr) -> ast.expr | None:
    """Where the tensor of that name is when a block gives it back; `now`: where it is before."""
    for i, s in enumerate(body):
        if isinstance(s, ast.Return):
            return None if s.value is None else _of_value(facts, s.value, x, now)
        if isinstance(s, ast.If) and len(body) <= LONGEST:
            ways = [_of_block(facts, [*way, *body[i + 1 :]], x, now) for way in _ways(facts, s, x)]
            return _either(s.test, *ways) if len(ways) == 2 else ways[0] if ways else None
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            continue
        to_itself = isinstance(s, ast.Assign) and len(s.targets) == 1 and _is(s.targets[0], x)
        after = _of_value(facts, s.value, x, now) if to_itself else None  # type: ignore[attr-defined]
        if after is None:
            return None
        now = after
    return None


def _ways(facts: Facts, branch: ast.If, x: str) -> list[list[ast.stmt]]:
    """The blocks of a condition that a tensor may come through; none where the condition does more than ask."""
    test = branch.test
    if isinstance(test, ast.Call) and test.args and _is(test.args[0], x):
        kinds = test.args[-1]
        if facts.names.resolve(test.func) == "torch.is_tensor" or facts.names.resolve(kinds) in TENSORS:
            return [branch.body]
        named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        if all(isinstance(k, ast.Name) and k.id in ("list", "tuple", "dict") for k in named):
            return [branch.orelse]
    asks = only_asks(facts.names, test) and not any(_is(n, x) for n in walk(test))
    return [branch.body, branch.orelse] if asks else []


def _of_value(facts: Facts, value: ast.expr, x: str, now: ast.expr) -> ast.expr | None:
    """Where an expression is that is the tensor itself, moved or not."""
    if isinstance(value, ast.Name):
        return now if value.id == x else None
    if isinstance(value, ast.IfExp) and only_asks(facts.names, value.test):
        ways = [_of_value(facts, way, x, now) for way in (value.body, value.orelse)]
        return None if any(_is(n, x) for n in walk(value.test)) else _either(value.test, *ways)
    if not isinstance(value, ast.Call):
        return None
    if facts.names.resolve(value.func) == VARIABLE and len(value.args) == 1:
        return None if any(k.arg != "volatile" for k in value.keywords) else _of_value(facts, value.args[0], x, now)
    moved = facts.devices.moved(value)
    if moved is None or _of_value(facts, moved, x, now) is None:
        return None
    where = facts.devices.device_arguments(value)
    if value.func.attr != "to":  # type: ignore[attr-defined]
        plain = not value.args and all(k.arg == "non_blocking" for k in value.keywords)
        return ast.Constant(value.func.attr) if plain else None  # type: ignore[attr-defined]
    if len(where) < len(value.args) + len(value.keywords):
        return None  # a dtype, too
    return where[0].value if isinstance(where[0], ast.keyword) else where[0]


def _either(test: ast.expr, one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    if one is None or other is None:
        return None
    return one if ast.unparse(one) == ast.unparse(other) else ast.IfExp(test, one, other)


def _gives_made(facts: Facts, f: Mover | None, call: ast.Call) -> bool:
    """Whether a call gives the function a tensor that is made on the CPU, and has no history."""
    if not call.args or any(up is f for up in facts.scopes.ancestors(call)) or facts.is_fixed(call):
        return False
    if "#" in facts.text.get(call):
        return False  # a comment among its arguments
    given = call.args[0]
    placed = (k.arg for n in walk(given, ast.Call) for k in n.keywords)
    if "device" in placed or any(n.attr in MOVERS for n in walk(given, ast.Attribute)):
        return False
    return not isinstance(given, (ast.Starred, ast.NamedExpr)) and facts.tensors.is_tensor(given)


def _written(facts: Facts, f: Mover, call: ast.Call, place: ast.expr) -> str | None:
    """The device as it is said where the function is called; None where a name of it is another's there."""
    given: dict[str, ast.expr] = {}
    own, bound = facts.scopes.by_node[f], facts.classes.holder(f) is not None
    for n in walk(place, ast.Name):
        if bound and n.id == "self":
            continue
        if n.id in own.params:
            value = argument(call, f, n.id, bound) or default_of(f, n.id)
            if value is None or n.id in own.stores or not isinstance(value, (ast.Name, ast.Attribute, ast.Constant)):
                return None
            given[n.id] = value
        elif own.lookup(n.id) is not facts.scopes.scope_of(call).lookup(n.id):
            return None
    return ast.unparse(_Given(given).visit(copy.deepcopy(place)))


class _Given(ast.NodeTransformer):
    """Arguments in the place of parameters."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node)


def _moved_to(where: str) -> Any:
    """`f(x)` to `x.to(where)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        x = updated.args[0].value
        if not x.lpar and not isinstance(x, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
            x = x.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return updated.with_changes(func=cst.Attribute(x, cst.Name("to")), args=[cst.Arg(cst.parse_expression(where))])

    return rewrite


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
