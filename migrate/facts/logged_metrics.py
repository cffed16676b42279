"""Which values are metric objects, of torchmetrics or of a class derived from its Metric: these reduce themselves."""

from __future__ import annotations

import ast
import re

from .arguments import argument
from .nodes import walk
from .script import Facts

ON_ITSELF = ("to", "cuda", "cpu", "clone", "double", "float", "eval")  # what gives the object that it is called on


class LoggedMetrics:
    """`metrics`: the attributes of the module that hold metric objects."""

    def __init__(self, facts: Facts, metrics: set[str]) -> None:
        self.facts, self.metrics = facts, metrics
        self._asked: set[tuple[ast.AST, str]] = set()

    def holds(self, value: ast.expr | None) -> bool:
        """A metric object, one of several, or what its compute() gives: they are reduced already."""
        for given in ("item", "compute"):
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == given:
                value = value.func.value
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.DictComp):
            return self.holds(value.value)
        if isinstance(value, ast.Dict):
            return bool(value.values) and all(self.holds(v) for v in value.values)
        if isinstance(value, ast.Name):
            return self._name_holds(value)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "getattr":
            return len(value.args) > 1 and self._got(value.args[1])
        return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.attr in self.metrics

    def _name_holds(self, name: ast.Name) -> bool:
        generator = self.facts.scopes.generator_of(name)
        if generator is not None:
            return self.holds(_of_loop(generator.iter, generator.target, name.id))
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        if scope is None or (asked := (scope.node, name.id)) in self._asked:
            return False
        if name.id in scope.params:
            given = self._passed(scope.node, name.id) if name.id not in scope.stores else []
        else:
            given = [_source(self.facts, s) for s in scope.stores.get(name.id, [])]
        self._asked.add(asked)
        try:
            return bool(given) and all(self.holds(g) for g in given)
        finally:
            self._asked.discard(asked)

    def _passed(self, f: ast.AST, name: str) -> list[ast.expr | None]:
        """What every call of a method gives for a parameter."""
        if not isinstance(f, ast.FunctionDef):
            return []
        calls = self.facts.attributes.get(f.name, []) if self.facts.classes.holder(f) is not None else []
        ups = [(a, self.facts.scopes.parents.get(a)) for a in calls]
        called = [u for a, u in ups if isinstance(u, ast.Call) and u.func is a]
        return [argument(u, f, name, True) for u in called]

    def _got(self, name: ast.expr) -> bool:
        """`getattr(self, f"{stage}_acc")`: all attributes that it may name."""
        if isinstance(name, ast.Constant):
            return name.value in self.metrics
        if not isinstance(name, ast.JoinedStr):
            return False
        known = [re.escape(str(v.value)) if isinstance(v, ast.Constant) else r"\w+" for v in name.values]
        fits = re.compile("".join(known)).fullmatch
        kept = {a for a, uses in self.facts.attributes.items() if any(isinstance(u.ctx, ast.Store) for u in uses)}
        named = {a for a in kept if fits(a)}
        return bool(named) and named <= self.metrics


def is_metric(facts: Facts, c: ast.ClassDef, value: ast.expr, deep: bool = True) -> bool:
    """Whether an expression makes a metric object, or several."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ON_ITSELF:
        if value.func.attr == "clone" and not isinstance(value.func.value, ast.Call):
            return True
        value = value.func.value
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and facts.classes.is_self(value.func.value)
    ):
        method = facts.classes.methods(c).get(value.func.attr)
        given = [n.value for n in walk(method, ast.Return) if n.value] if method and deep else []
        return bool(given) and all(is_metric(facts, c, g, False) for g in given)
    full = facts.names.resolve(value.func) or ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    several = isinstance(value, (ast.Dict, ast.List, ast.Tuple, ast.ListComp, ast.DictComp, ast.IfExp))
    if several or full in ("torch.nn.ModuleList", "torch.nn.ModuleDict"):
        parts = [x for x in walk(value, ast.Call) if x is not value]
        full = " ".join(facts.names.resolve(x.func) or ast.unparse(x.func) for x in parts)
    return "metrics" in full.lower() or "Metric" in full or any(f in _own(facts) for f in full.split())


def _own(facts: Facts) -> set[str]:
    """The classes of the file that derive from a metric."""
    found: set[str] = set()
    for d in facts.walk(ast.ClassDef):
        bases = [facts.names.resolve(b) or ast.unparse(b) for b in d.bases]
        if any(b in found or "Metric" in b or b.startswith("torchmetrics.") for b in bases):
            found.add(d.name)
    return found


def _source(facts: Facts, store: ast.AST) -> ast.expr | None:
    """What a name is given: the value of an assignment, or what a loop goes through."""
    child, up = store, facts.scopes.parents.get(store)
    while isinstance(up, ast.Tuple):
        child, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.For):
        return _of_loop(up.iter, up.target, getattr(store, "id", ""))
    return up.value if isinstance(up, ast.Assign) and child is store else None


def _of_loop(over: ast.expr, target: ast.expr, name: str) -> ast.expr:
    """What a loop's name is one of: `self.metrics` in `for k, m in self.metrics.items()`."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "enumerate" and over.args:
        over = over.args[0]
    if isinstance(over, ast.Call) and ast.unparse(over.func) == "zip" and isinstance(target, ast.Tuple):
        places = [getattr(t, "id", None) == name for t in target.elts]
        over = over.args[places.index(True)] if True in places[: len(over.args)] else over
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in ("items", "values"):
        return over.func.value
    return over
