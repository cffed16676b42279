"""Lists and meters that an evaluation's step fills: `losses.update(loss.item(), n)`, `guesses += out.tolist()`.

Batches may go round among the ranks where the step only fills them, by calls whose values are not used: every rank then
makes the calls of all, in the order of one process. What the step reads of them besides keeps the evaluation whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables
from .collected import depends, filled_by, given_by
from .nodes import names_of, walk_here
from .reads import stored

# their metric objects bring the ranks together themselves
REDUCE_THEMSELVES = ("torchmetrics.", "torcheval.", "ignite.", "pytorch_lightning.", "lightning.")
LISTS = ("list", "tuple", "tolist", "sorted")
Edits = dict[tuple[int, int], str]


class Fills:
    """The statements of an evaluation's step that only fill something, by what they fill."""

    def __init__(self, facts: Facts, binder: Binder, chunk: Chunk, variables: Variables) -> None:
        assert chunk.passing is not None
        self.facts, self.binder, self.chunk, self.variables = facts, binder, chunk, variables
        self.passing = chunk.passing
        self.names: dict[Variable, list[ast.Name]] = {}  # every mention in the step
        for n in (n for s in chunk.statements for n in walk(s, ast.Name)):
            if isinstance(var := binder.variable(n), Variable) and var in variables.attributes:
                self.names.setdefault(var, []).append(n)
        self.by_variable: dict[Variable, dict[ast.Name, ast.stmt]] = {}
        for name, s in self._statements():
            if (var := binder.variable(name)) in self.names:
                self.by_variable.setdefault(var, {})[name] = s

    def in_order(self) -> set[ast.stmt]:
        """The statements that are to be made on every rank; none of what the step also reads."""
        chosen = {v for v in self.names if self._only_filled(v) and self._is_read_whole(v)}
        while True:  # what shows a meter, made of it, comes after it
            more = {v for v in self.names if v not in chosen and self._made_of(v, chosen)}
            if not more:
                break
            if not all(self._only_filled(v) for v in more):
                return set()
            chosen |= more
        if any(self._reduces_itself(value) for v in chosen for value in self._values_of(v)):
            return set()
        statements = {s for v in chosen for s in self.by_variable[v].values()}
        inside = {n for s in statements for n in walk(_values(s), ast.Name)}
        return set() if any(self.binder.variable(n) in chosen for n in inside) else statements

    def _statements(self) -> Iterator[tuple[ast.Name, ast.stmt]]:
        for n in (n for s in self.chunk.statements for n in walk_here(s)):
            if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Attribute):
                at: ast.expr = n.value.func
                while isinstance(at, (ast.Attribute, ast.Subscript)):
                    at = at.value
                if isinstance(at, ast.Name) and not any(isinstance(x, (ast.Lambda, ast.GeneratorExp)) for x in walk(n)):
                    yield at, n
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and is_list(n.value):
                yield n.target, n

    def _only_filled(self, var: Variable) -> bool:
        """Whether each mention in the step is of a statement that fills it, and no function reads it meanwhile."""
        if set(self.names[var]) != set(self.by_variable.get(var, ())):
            return False
        home = self._home(var)
        if home is not self.facts.scopes.module:
            return True
        places = (home.node, self.passing.function)
        return all(self.facts.scopes.scope_of(n).node in places for n in self.facts.scopes.reads(var.name, home))

    def _is_read_whole(self, var: Variable) -> bool:
        """Whether it is filled with values of the samples, or lives from before the batches until after them."""
        own = stored(self.passing.body) | {n.id for n in names_of(self.passing.target)}
        for s in self.by_variable[var].values():
            fill = s.value if isinstance(s, ast.Expr) else s
            if filled_by(fill) is not None and any(depends(value, own, set()) for value in given_by(fill)):
                return True
        name = var.name
        after = {n.id for s in self.passing.after for n in names_of(s)}
        after |= {n.id for n in names_of(self.passing.returns)} if self.passing.returns is not None else set()
        return name in after and name in stored(self.passing.before)

    def _made_of(self, var: Variable, others: set[Variable]) -> bool:
        """Whether what has this name may hold one of the others, or be what one of them is taken from."""
        if any(self.binder.variable(n) in others for value in self._values_of(var) for n in names_of(value)):
            return True
        taken = [v for other in others for v in self._values_of(other) if not isinstance(v, ast.Call)]
        return any(self.binder.variable(n) == var for value in taken for n in names_of(value))

    def _reduces_itself(self, value: ast.expr) -> bool:
        made = (n.func for n in walk(value, ast.Call))
        return any((self.facts.names.resolve(f) or "").startswith(REDUCE_THEMSELVES) for f in made)

    def _values_of(self, var: Variable) -> Iterator[ast.expr]:
        """What the name is given above the batches."""
        for store in self._home(var).stores.get(var.name, ()):
            s = self.facts.scopes.statement_of(store)
            if isinstance(s, (ast.Assign, ast.AnnAssign, ast.For)) and store not in self.names[var]:
                value = s.iter if isinstance(s, ast.For) else s.value
                yield from value.elts if isinstance(value, ast.Tuple) else [] if value is None else [value]

    def _home(self, var: Variable) -> Scope:
        if var.owner == "":
            return self.binder.trunk_scope
        return self.facts.scopes.by_node[self.passing.function]  # type: ignore[index]


def is_list(value: ast.expr) -> bool:
    """`list(y)`, `[loss.item()]`, `y.tolist()`: added to a list."""
    if isinstance(value, ast.Call):
        return (value.func.attr if isinstance(value.func, ast.Attribute) else ast.unparse(value.func)) in LISTS
    return isinstance(value, (ast.List, ast.ListComp, ast.Tuple))


def _values(s: ast.stmt) -> ast.AST:
    """What a filling puts in, with the keys of what it fills."""
    if isinstance(s, ast.AugAssign):
        return s.value
    assert isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
    keys, at = [], s.value.func
    while isinstance(at, (ast.Attribute, ast.Subscript)):
        keys += [at.slice] if isinstance(at, ast.Subscript) else []
        at = at.value
    return ast.Tuple([*keys, *s.value.args, *(k.value for k in s.value.keywords)], ast.Load())


def put_in_order(facts: Facts, s: ast.stmt) -> Edits:
    """`losses.update(x)` to `self.in_order(losses.update, x)`, `ys += y` to `self.in_order(ys.extend, y)`."""
    start, stop = facts.text.span(s)
    if isinstance(s, ast.AugAssign):
        target, value = facts.text.span(s.target), facts.text.span(s.value)
        return {
            (start, start): "self.in_order(",
            (target[1], value[0]): ".extend, ",
            (value[1], stop): facts.text.text[value[1] : stop] + ")",
        }
    assert isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
    end = facts.text.span(s.value.func)[1]
    opened = facts.text.text.index("(", end)
    given = s.value.args or s.value.keywords
    return {(start, start): "self.in_order(", (end, opened + 1): ", " if given else ""}
