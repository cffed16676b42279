"""The networks that a step calls, where the classes of the file show them: their forward may mix samples, too."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from .back_from_cpu import itself
from .batch_functions import is_own
from .classes import Function
from .loops import last_part
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


SERIES = re.compile(r"torch\.nn\.((LSTM|GRU|RNN)(Cell)?|Transformer\w*|MultiheadAttention|Embedding(Bag)?)\Z")
# of these `dim=0` may say that they go over the samples
OVER_A_DIMENSION = set(
    "mean sum std var norm softmax log_softmax normalize logsumexp amax amin max min median prod cumsum".split()
)
ALWAYS_OF_ALL = {"t", "cdist", "randperm"}  # `a @ b.t()` is of matrices alone, whose rows all meet


class Networks:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._series: dict[ast.ClassDef, bool] = {}

    def called(self, func: ast.expr) -> ast.ClassDef | None:
        """The class whose forward `model(x)`, `self.encoder(x)` or `model.forward(x)` runs, where that is one."""
        if isinstance(func, ast.Attribute) and func.attr == "forward":
            func = func.value
        c = self._of(func)
        return c if c is not None and self.facts.classes.method(c, "forward") is not None else None

    def method(self, func: ast.expr) -> tuple[Function, ast.ClassDef] | None:
        """The method of its own that a network is asked for, with its class: `model.log_prob(x)`."""
        c = self._of(func.value) if isinstance(func, ast.Attribute) else None
        if c is None or not isinstance(func, ast.Attribute):
            return None
        f = self.facts.classes.method(c, func.attr)
        return (f, c) if f is not None else None

    def _of(self, func: ast.expr) -> ast.ClassDef | None:
        if isinstance(func, ast.Attribute):
            holder = self.facts.names.nodes.class_of(func)
            own = isinstance(func.value, ast.Name) and func.value.id == "self" and holder is not None
            return self._one(self._kept.get((holder, func.attr), [])) if own else None
        if not isinstance(func, ast.Name):
            return self._class(func) if isinstance(func, ast.Call) else None
        scope = self.facts.scopes.scope_of(func).lookup(func.id)
        values = self.facts.devices.assigned(func.id, scope) if scope is not None else None
        return self._one(values or [])

    def has_series(self, c: ast.ClassDef) -> bool:
        """Whether a class, or one that it makes, has layers for series: it may sort samples, and turn dimensions."""
        if c not in self._series:
            self._series[c] = False  # while it is asked
            made = list(walk(c, ast.Call))
            inner = [self._class(n) for n in made]
            self._series[c] = any(SERIES.match(self.facts.names.resolve(n.func) or "") for n in made) or any(
                self.has_series(i) for i in inner if i is not None and i is not c
            )
        return self._series[c]

    def mixing(self, c: ast.ClassDef, mixes: list[ast.AST]) -> list[ast.AST]:
        """Of what mixes in a class that was followed, what does so with layers for series, too: over the samples by
        their dimension, by a product of matrices, or in a layer of its own.
        """
        if not self.has_series(c):
            return mixes
        return [n for n in mixes if (isinstance(n, ast.Call) and is_own(n.func)) or any(_is_of_all(m) for m in walk(n))]

    @cached_property
    def _kept(self) -> dict[tuple[ast.AST | None, str], list[ast.expr]]:
        """What `self.name` is given, by the class and the name."""
        found: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        for s in self.facts.walk(ast.Assign):
            for t in s.targets:
                if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self":
                    holder = self.facts.names.nodes.class_of(s)
                    found.setdefault((holder, t.attr), []).append(s.value)
        return found

    def _one(self, values: list[ast.expr]) -> ast.ClassDef | None:
        found = {self._class(v) for v in values}
        return found.pop() if len(found) == 1 else None

    def _class(self, made: ast.expr) -> ast.ClassDef | None:
        """The class of the file that a call makes a module of."""
        made = itself(made)
        name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        own = [c for c in self.facts.classes.modules if c.name == name] if name is not None else []
        return own[0] if len(own) == 1 else None


def _is_of_all(node: ast.AST) -> bool:
    """`x.mean(0)`, `F.softmax(f(x), dim=0)`, `a @ b.T`: over the first dimension, by what is written."""
    if isinstance(node, ast.Attribute):
        return node.attr == "T"
    name = last_part(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or name not in OVER_A_DIMENSION:
        return name in ALWAYS_OF_ALL
    given = [*node.args, *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
    firsts = (e for g in given for e in (g.elts if isinstance(g, (ast.Tuple, ast.List)) else [g]))
    return any(isinstance(e, ast.Constant) and e.value == 0 and type(e.value) is int for e in firsts)
