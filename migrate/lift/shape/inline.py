"""A function that makes the step, called from the loop in one place, is written into the loop.

`loss = train_step(x, y)` becomes the body of train_step; a method that runs an epoch becomes part of the method that
counts epochs. Locals that would meet a name of the caller get the function's name in front.
"""

from __future__ import annotations

import ast
import re

from ...facts.arguments import argument, default_of
from ...facts.matched import capturing
from ...facts.nodes import walk
from ...facts.scopes import Scope
from ...facts.script import Facts
from ..backwards import training_backwards
from ..nodes import walk_here
from ..splice import Splice, indent
from .calls import enclosing_function, only_call, receiver
from .edits import Edits, block_lines


def inline_step(facts: Facts) -> str | None:
    """The text with one function written into its caller; None where there is none to write in."""
    for backward in training_backwards(facts):
        f = _without_loops(facts, backward)
        if f is not None:
            call = only_call(facts, f)
            statement = facts.scopes.parents.get(call) if call is not None else None
            if call is not None and isinstance(statement, ast.stmt) and can_stand(facts, f, call, statement):
                return Inlining(facts, f, call, statement).text()
    return None


def _without_loops(facts: Facts, backward: ast.Call) -> ast.FunctionDef | None:
    """The function around a backward() that holds no loop around it; a method also when it has the batch loop only."""
    loops = 0
    for up in facts.scopes.ancestors(backward):
        if isinstance(up, (ast.For, ast.While)):
            loops += 1
        elif isinstance(up, ast.FunctionDef):
            in_class = facts.scopes.scope_of(up).is_class
            if _is_closure(facts, up):
                continue
            if loops == 0 or (in_class and loops == 1):
                return up
            return None
        elif isinstance(up, ast.ClassDef):
            return None
    return None


def _is_closure(facts: Facts, f: ast.FunctionDef) -> bool:
    """Defined in another function, and handed on: `optimizer.step(closure)`."""
    inner = isinstance(facts.scopes.scope_of(f).node, ast.FunctionDef)
    return inner or any(not isinstance(use, ast.Call) for use in facts.devices.uses_of_function(f) if use is not f)


def can_stand(facts: Facts, f: ast.FunctionDef, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether the body can take the place of the statement: called plainly, left at its end only."""
    plain = isinstance(statement, ast.Expr) or (isinstance(statement, ast.Assign) and len(statement.targets) == 1)
    if not plain or statement.value is not call:  # type: ignore[attr-defined]
        return False
    a = f.args
    unpacks = any(isinstance(x, ast.Starred) for x in call.args) and _unpacked(call, f) is None
    if a.vararg or a.kwarg or unpacks or any(not k.arg for k in call.keywords):
        return False
    if Splice(facts.text).shares_a_line(statement) or not _globals_stay(facts, f, statement):
        return False
    body = _body(f)
    for s in body:
        for n in walk_here(s):
            if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.Import, ast.ImportFrom)):
                return False
            if isinstance(n, ast.Return) and n is not body[-1]:
                return False
    caller = enclosing_function(facts, statement)
    if caller is f or capturing(f):
        return False
    returned = body[-1].value if body and isinstance(body[-1], ast.Return) else None
    return not (isinstance(statement, ast.Assign) and returned is None)


def _unpacked(call: ast.Call, f: ast.FunctionDef) -> ast.expr | None:
    """The one iterable that gives all arguments: `train_step(*get_batch())`."""
    a = f.args
    plain = a.args and not (a.posonlyargs or a.kwonlyargs or a.defaults) and isinstance(call.func, ast.Name)
    only = call.args[0] if plain and len(call.args) == 1 and not call.keywords else None
    return only.value if isinstance(only, ast.Starred) else None


def _globals_stay(facts: Facts, f: ast.FunctionDef, statement: ast.stmt) -> bool:
    """Whether what a function declares as global, in statements of its own, is the same by that name in its caller: at
    the module's level, or where the caller declares it, too.
    """
    declared = facts.scopes.by_node[f].globals
    own = {name for s in f.body if isinstance(s, ast.Global) for name in s.names}
    caller = facts.scopes.scope_of(statement)
    return declared == own and (caller is facts.scopes.module or declared <= caller.globals - caller.nonlocals)


def _body(f: ast.FunctionDef) -> list[ast.stmt]:
    body = f.body[1:] if ast.get_docstring(f, clean=False) is not None else f.body
    return [s for s in body if not isinstance(s, ast.Global)]


def _only_reads(n: ast.AST) -> bool:
    """Not a call, or one that changes nothing: `loss.item()`, `len(x)`."""
    if not isinstance(n, ast.Call):
        return True
    if isinstance(n.func, ast.Attribute):
        return n.func.attr in ("item", "detach", "cpu", "size", "tolist") and not n.args
    return isinstance(n.func, ast.Name) and n.func.id in ("len", "float", "int")


class Inlining:
    """`spare`: names of the caller that may be given other values there."""

    def __init__(
        self,
        facts: Facts,
        f: ast.FunctionDef,
        call: ast.Call,
        statement: ast.stmt,
        spare: frozenset[str] = frozenset(),
    ) -> None:
        self.facts, self.f, self.call, self.statement, self.spare = facts, f, call, statement, spare
        self.own: Scope = facts.scopes.by_node[f]
        self.caller: Scope = facts.scopes.scope_of(statement)
        self.target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        body = _body(f)
        self.returned = body[-1].value if isinstance(body[-1], ast.Return) else None
        self.body = body[:-1] if isinstance(body[-1], ast.Return) else body

    def text(self) -> str:
        names, lines = self._names()
        replaced = self._replaced(names)
        lines += block_lines(self.facts, self.body, replaced)
        lines += self._result(replaced)
        if self.f.decorator_list:
            lines = self._decorated(lines)
        edits = Edits(self.facts)
        first = self.facts.text.line_of(self.facts.text.span(self.statement)[0])
        last = self.statement.end_lineno or first
        by = self.facts.text.margin(self.statement)
        if self._goes():
            self._remove_function(edits)
            lines = [*(lines or ["pass"]), *Splice(self.facts.text).ending(self.f)]
        edits.replace_lines(first, last, indent(lines or ["pass"], by))
        return edits.done()

    def _decorated(self, lines: list[str]) -> list[str]:
        """Under what the function is decorated with: `with torch.no_grad():`."""
        for d in reversed(self.f.decorator_list):
            opened = self.facts.text.get(d) + ("" if isinstance(d, ast.Call) else "()")
            lines = [f"with {opened}:", *indent(lines or ["pass"], self.facts.indentation)]
        return lines

    def _names(self) -> tuple[dict[str, str], list[str]]:
        """What each local of the function is called in the caller, and the assignments that parameters need."""
        taken = {*self.caller.stores, *self.caller.params, *self.caller.read(), *self.caller.globals} - self.spare
        free = {n.id for n in walk(self.f, ast.Name)} - {*self.own.stores, *self.own.params}
        taken |= free
        names: dict[str, str] = {}
        lines: list[str] = []
        self_name = receiver(self.facts, self.call, self.f)
        parameters = [*self.f.args.posonlyargs, *self.f.args.args, *self.f.args.kwonlyargs]
        if self_name is not None:
            names[parameters[0].arg] = self_name.id
            parameters = parameters[1:]
        if (value := _unpacked(self.call, self.f)) is not None:
            names.update((p.arg, self._free_name(p.arg, taken)) for p in parameters)
            bound = ", ".join(names[p.arg] for p in parameters) + ("," if len(parameters) == 1 else "")
            lines.append(f"{bound} = {self.facts.text.get(value)}")
            parameters = []
        for p in parameters:
            value = self._given(p.arg, self_name is not None)
            written = p.arg in self.own.stores
            if isinstance(value, (ast.Name, ast.Constant)) and not written:
                names[p.arg] = self.facts.text.get(value)
                continue
            names[p.arg] = self._free_name(p.arg, taken)
            lines.append(f"{names[p.arg]} = {self.facts.text.get(value)}")
        straight = self._straight_results()
        for name in self.own.stores:
            if name not in names:
                names[name] = straight.get(name) or self._free_name(name, taken)
        return names, lines

    def _given(self, name: str, bound: bool) -> ast.expr:
        """The argument of the call, or the default."""
        f = self.f
        if bound:  # the receiver is the first argument
            f = ast.FunctionDef(
                name=f.name,
                body=[],
                decorator_list=[],
                args=ast.arguments(
                    posonlyargs=f.args.posonlyargs[1:],
                    args=f.args.args[1:] if not f.args.posonlyargs else f.args.args,
                    kwonlyargs=f.args.kwonlyargs,
                    kw_defaults=f.args.kw_defaults,
                    defaults=f.args.defaults,
                ),
            )
        value = argument(self.call, f, name) or default_of(f, name)
        if value is None:
            raise LookupError(f"{f.name}() is called without `{name}`")
        return value

    def _straight_results(self) -> dict[str, str]:
        """Locals that are returned and assigned to a name: they get that name at once."""
        if self.target is None or self.returned is None:
            return {}
        pairs = [(self.target, self.returned)]
        if isinstance(self.target, ast.Tuple) and isinstance(self.returned, ast.Tuple):
            pairs = list(zip(self.target.elts, self.returned.elts, strict=False))
        inside = {n.id for n in walk(self.call, ast.Name)}
        return {
            value.id: to.id
            for to, value in pairs
            if isinstance(to, ast.Name)
            and isinstance(value, ast.Name)
            and value.id in self.own.stores
            and to.id not in inside
            and (to.id == value.id or to.id not in self.own.stores)
        }

    def _free_name(self, name: str, taken: set[str]) -> str:
        new = name
        while new in taken:
            new = f"{self.f.name.strip('_')}_{new}"
        taken.add(new)
        return new

    def _replaced(self, names: dict[str, str]) -> dict[tuple[int, int], str]:
        found = {}
        for s in [*self.body, *([self.returned] if self.returned is not None else [])]:
            for n in walk(s):
                name: str = n.id if isinstance(n, ast.Name) else getattr(n, "name", None) or ""
                if names.get(name, name) != name and self.facts.scopes.scope_of(n).lookup(name) is self.own:
                    found[self._written(n, name)] = names[name]
        return found

    def _written(self, n: ast.AST, name: str) -> tuple[int, int]:
        """Where a node has its name: a nested function behind `def`, a handler behind `as`."""
        text = self.facts.text
        if isinstance(n, ast.Name):
            return text.span(n)
        named = re.compile(rf"(?:\bdef|\bclass|\bas)\s+({name})\b")
        found = named.search(text.text, text.offset(n.lineno, n.col_offset))  # type: ignore[attr-defined]
        return found.span(1) if found is not None else text.span(n)

    def _result(self, replaced: dict[tuple[int, int], str]) -> list[str]:
        if self.returned is None:
            return []
        value = self._with(replaced, self.returned)
        if self.target is None:
            return [] if all(_only_reads(n) for n in walk(self.returned)) else [value]
        target = self.facts.text.get(self.target)
        if isinstance(self.target, ast.Tuple) and isinstance(self.returned, ast.Tuple):
            pairs = list(zip(self.target.elts, self.returned.elts, strict=False))
            given = [(self.facts.text.get(t), self._with(replaced, v)) for t, v in pairs]
            left = [(t, v) for t, v in given if t != v]
            if len(left) < len(given) == len(self.target.elts) == len(self.returned.elts):
                return [" = ".join(", ".join(side) for side in zip(*left, strict=True))] if left else []
        return [] if target.strip("()") == value.strip("()") else [f"{target} = {value}"]

    def _with(self, replaced: dict[tuple[int, int], str], part: ast.expr) -> str:
        """The source of a part of what is returned, with the names of the caller."""
        start, stop = self.facts.text.span(part)
        value = self.facts.text.get(part)
        for (a, b), new in sorted(replaced.items(), reverse=True):
            if start <= a and b <= stop:
                value = value[: a - start] + new + value[b - start :]
        return value

    def _goes(self) -> bool:
        """Whether the function has others beside it in its block, which would be empty without it."""
        return len(getattr(self.facts.scopes.parents[self.f], "body", [])) != 1

    def _remove_function(self, edits: Edits) -> None:
        splice, text = Splice(self.facts.text), self.facts.text
        first, last = splice.with_comments(self.f)
        last = max(last, splice.with_inner_comments(self.f))
        while last < len(text.starts) - 1 and not text.text[slice(*text.line_span(last + 1, last + 1))].strip():
            last += 1
        edits.replace_lines(first, last, [])
