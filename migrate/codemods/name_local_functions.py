"""T7: a function made inside another one, where it has to be pickled, moves to the module.

What it takes from around it is bound with functools.partial, at the place where it stood.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator
from typing import Any

from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..report import Note
from ._bound_names import CELLS, mangled, unbindable, unsteady
from ._own_defaults import first_line, top_of
from .base import Change, Codemod, Insertion
from .name_lambdas import free_name, is_pickled


class NameLocalFunctions(Codemod):
    code = "PTM202"
    name = "name-local-functions"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        taken = {n.id for n in facts.walk(ast.Name)} | {c.name for c in facts.walk(ast.ClassDef)}
        taken |= {a.asname or a.name.partition(".")[0] for a in facts.walk(ast.alias)}
        defined = {f.name for f in facts.walk(ast.FunctionDef)}
        for f in facts.walk(ast.FunctionDef):
            scope = facts.scopes.scope_of(f)
            if not isinstance(scope.node, ast.FunctionDef) or not self._is_pickled(facts, f, scope):
                continue
            why, free = self._free(facts, f, scope)
            if why is None and _is_spread_over(facts, f):
                why = "its lines cannot be moved as they are"
            if why is not None:
                self._tell(facts, f, why)
                continue
            moved = f.name if not free and self._keeps_name(facts, f) else f"_{f.name}"
            if moved != f.name:
                moved = free_name(moved, taken | facts.new_names | defined)
            facts.new_names.add(moved)
            bound = ", ".join(f"{n}={n}" for n in free)
            new = f"{f.name} = functools.partial({moved}, {bound})" if free else f"{f.name} = {moved}"
            says = f"{f.name}() moved to the module: a function made inside of another cannot be pickled"
            has = "functools" in facts.scopes.module.stores
            imports = ["import functools"] if free and not has else []
            insertion = Insertion(first_line(top_of(facts, f)), _definition(facts, f, moved, free), imports)
            rewrite = None if moved == f.name else _replaced(new)
            yield Change(f, self.edit(facts, f, says), rewrite, insertion=insertion)  # what it reads is read as before

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _keeps_name(self, facts: Facts, f: ast.FunctionDef) -> bool:
        """Whether its name means nothing else in the file."""
        alone = sum(g.name == f.name for g in facts.walk(ast.FunctionDef)) == 1
        alone = alone and len(facts.scopes.scope_of(f).stores[f.name]) == 1
        return alone and f.name not in facts.scopes.scope_of(f).params and f.name not in facts.scopes.module.stores

    def _tell(self, facts: Facts, f: ast.FunctionDef, why: str) -> None:
        line, column, _, _ = facts.text.key(f)
        says = f"{f.name}() is made inside of another function and cannot be pickled; it is not moved: {why}"
        self.left.append(Note(line, column + 1, self.code, says))

    def _is_pickled(self, facts: Facts, f: ast.FunctionDef, scope: Scope) -> bool:
        """Whether it is given to a loader, a transform or a schedule, kept by a module, or called by one that is."""
        if f.decorator_list:
            return False
        return any(
            is_pickled(facts, r) or self._goes_along(facts, f, scope, r) for r in facts.scopes.reads(f.name, scope)
        )

    def _goes_along(self, facts: Facts, f: ast.FunctionDef, scope: Scope, read: ast.Name) -> bool:
        """Read in another local function, or in a lambda, which takes it along."""
        if any(isinstance(u, ast.Lambda) and is_pickled(facts, u) for u in facts.scopes.ancestors(read)):
            return True
        ups = [u for u in facts.scopes.ancestors(read) if isinstance(u, ast.FunctionDef)]
        by = next((u for u in ups if facts.scopes.scope_of(u) is scope), None)
        return by is not None and by is not f and f.lineno < by.lineno and self._is_pickled(facts, by, scope)

    def _is_kept(self, facts: Facts, f: ast.FunctionDef, scope: Scope) -> bool:
        """`self.show = show`: a deep copy of the module has what is bound, of a function it has the same one."""
        holders = [facts.scopes.parents.get(r) for r in facts.scopes.reads(f.name, scope)]
        kept = [s for s in holders if isinstance(s, ast.Assign)]
        return any(isinstance(t, ast.Attribute) and ast.unparse(t.value) == "self" for s in kept for t in s.targets)

    def _free(self, facts: Facts, f: ast.FunctionDef, scope: Scope) -> tuple[str | None, list[str]]:
        """What it takes from the functions around it, and why it cannot be moved."""
        own = facts.scopes.by_node[f]
        private = mangled(facts, f)
        if private is not None:
            return f"`{private}` is its class's own", []
        if any(isinstance(facts.scopes.parents[r], ast.Attribute) for r in facts.scopes.reads(f.name, scope)):
            return "it has attributes of its own", []
        found: list[str] = []
        calls_itself = False
        for n in walk(f):
            if isinstance(n, (ast.Nonlocal, ast.Global)):
                return f"it changes `{n.names[0]}` outside of itself", []
            if not (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)) or n.id in found:
                continue
            if n.id in CELLS:
                return f"it reads `{n.id}`", []
            generator = facts.scopes.generator_of(n)
            if generator is not None and f in facts.scopes.ancestors(generator):
                continue
            home = facts.scopes.scope_of(n).lookup(n.id)
            if home is None and not hasattr(builtins, n.id):
                return f"`{n.id}` comes from nowhere to be seen", []
            if home is None or home is facts.scopes.module or _inside(home, own):
                continue
            if n.id == f.name:
                calls_itself = True
                continue
            if n.id == "self" and self._is_kept(facts, f, scope):
                return (
                    "it reads `self`, which in a deep copy of the module would be the copy",
                    [],
                )
            why = unbindable(facts, home, n.id, f)
            if why is not None:
                return why, []
            found.append(n.id)
        if calls_itself and (found or not self._keeps_name(facts, f)):
            return f"it reads `{f.name}`", []
        return _unsteady_header(facts, f), found


def _unsteady_header(facts: Facts, f: ast.FunctionDef) -> str | None:
    """Why its header would be another one above the function around, where it is read once, and not at each call."""
    line = first_line(top_of(facts, f))
    if unsteady(facts, [*f.args.defaults, *(d for d in f.args.kw_defaults if d is not None)], line):
        return "its defaults take values from around it, or are made anew with it"
    if any(s.module == "__future__" for s in facts.walk(ast.ImportFrom)):
        return None  # annotations are texts
    given = [a.annotation for a in walk(f.args, ast.arg) if a.annotation is not None]
    if unsteady(facts, [*given, *([f.returns] if f.returns is not None else [])], line, (ast.AST,)):
        return "its annotations name what is defined below"
    return None


def _inside(scope: Scope, own: Scope) -> bool:
    up: Scope | None = scope
    while up is not None:
        if up is own:
            return True
        up = up.parent
    return False


def _is_spread_over(facts: Facts, f: ast.FunctionDef) -> bool:
    """A text over several lines changes with its indentation, if not a docstring; so does a body begun beside it."""
    first = f.body[0].value if isinstance(f.body[0], ast.Expr) else None
    texts = (n for n in walk(f) if isinstance(n, (ast.Constant, ast.JoinedStr)) and n is not first)
    begun = f.body[0].lineno == f.lineno != f.end_lineno
    return begun or any(n.lineno != n.end_lineno for n in texts)


def _definition(facts: Facts, f: ast.FunctionDef, name: str, free: list[str]) -> str:
    """The function as one of the module, its body as it is written, and its header where nothing is added to it."""
    arguments = copy.copy(f.args)
    arguments.kwonlyargs = [*f.args.kwonlyargs, *(ast.arg(n) for n in free)]
    arguments.kw_defaults = [*f.args.kw_defaults, *(None for _ in free)]
    returns = f" -> {ast.unparse(f.returns)}" if f.returns is not None else ""
    if f.lineno == f.end_lineno:  # def f(x): return x
        beside = facts.text.text[facts.text.span(f.body[0])[0] : facts.text.line_span(f.lineno, f.lineno)[1]]
        return f"def {name}({ast.unparse(arguments)}){returns}:\n{facts.indentation}{beside.rstrip()}\n"
    lines = [facts.text.text[slice(*facts.text.line_span(n, n))] for n in range(f.lineno, (f.end_lineno or 0) + 1)]
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    first = f.body[0].lineno - f.lineno
    while lines[first - 1].lstrip().startswith("#"):
        first -= 1
    body = "".join(line.removeprefix(margin) for line in lines[first:])
    if not free:
        header = "".join(line.removeprefix(margin) for line in lines[:first])
        return re.sub(r"(def\s+)\w+", rf"\g<1>{name}", header, count=1) + body.rstrip() + "\n"
    return f"def {name}({ast.unparse(arguments)}){returns}:\n{body.rstrip()}\n"


def _replaced(new: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        line = cst.parse_statement(new)
        assert isinstance(line, cst.SimpleStatementLine)
        return line.with_changes(leading_lines=updated.leading_lines)

    return rewrite
