"""Whether a value is shown to need a gradient: a parameter, what a layer with weights gives, what is asked for it."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import given_to
from .classes import WEIGHTED
from .nodes import children, walk

if TYPE_CHECKING:
    from .script import Facts

CUT = {
    "detach",
    "detach_",
    "data",
    "item",
    "tolist",
    "numpy",
    "argmax",
    "long",
    "int",
    "bool",
    "size",
    "shape",
    "dtype",
}
KEPT_WEIGHTS = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention")


class Gradients:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._asked: set[ast.AST] = set()

    def needed(self, node: ast.AST) -> bool:
        """Shown to need a gradient where a module trains; never so in a file that takes gradients away by hand."""
        return not self._freezes and self._needed(node)

    @cached_property
    def _freezes(self) -> bool:
        off = [c for c in self.facts.walk(ast.Call) if _takes_away(c)]
        sets = [s for s in self.facts.walk(ast.Assign) if _sets(s)]
        return bool(off) or any(getattr(s.value, "value", None) is not True for s in sets)

    def _needed(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Compare, ast.Lambda, ast.Constant)):
            return False
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Attribute):
            return node.attr not in CUT and (self._is_parameter(node) or self._needed(node.value))
        if not isinstance(node, ast.Call):
            return any(self._needed(n) for n in children(node))
        if isinstance(node.func, ast.Attribute) and node.func.attr in CUT:
            return False
        if _asks_itself(node):
            return True
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        parts = [*node.args, *(k.value for k in node.keywords), *([of] if of is not None else ())]
        again = (self.facts.names.resolve(node.func) or "").startswith("torch.utils.checkpoint.")
        layers = [node.func, *(node.args[:1] if again else ())]
        return any(map(self._has_weights, layers)) or any(map(self._needed, parts))

    def _name(self, node: ast.Name) -> bool:
        if node in self._asked:
            return True  # computed from itself: what it began as decides
        if self._is_asked_for(node):
            return True
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        self._asked.add(node)
        try:
            values = self.facts.tensors.reaching(node, scope) if scope is not None else None
            return bool(values) and all(v is not None and self._needed(v) for v in values or ())
        finally:
            self._asked.discard(node)

    def _is_asked_for(self, node: ast.Name) -> bool:
        """`x.requires_grad_()` or `x.requires_grad = True` has run before it is read."""
        above = list(self.facts.scopes.ancestors(node))
        called = [(s, s.value.func) for s in self.facts.walk(ast.Expr) if isinstance(s.value, ast.Call)]
        given = [(s, t) for s in self.facts.walk(ast.Assign) for t in s.targets]
        for s, of in [*((s, f) for s, f in called if _asks(f, "_")), *((s, t) for s, t in given if _asks(t))]:
            same = isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == node.id
            if same and s.lineno < node.lineno and self.facts.tensors.governs(s, above):
                return True
        return False

    def _is_parameter(self, node: ast.Attribute) -> bool:
        """A parameter, and a tensor that was made to need a gradient."""
        values = self._values(node)
        return bool(values) and all(
            isinstance(v, ast.Call) and (self.facts.names.resolve(v.func) == "torch.nn.Parameter" or _asks_itself(v))
            for v in values
        )

    def _has_weights(self, func: ast.expr) -> bool:
        """A layer, or a module of this file with one, by its name or as an attribute of `self`."""
        if isinstance(func, ast.Name):
            scope = self.facts.scopes.scope_of(func).lookup(func.id)
            given = self.facts.devices.assigned(func.id, scope) if scope is not None else None
            values = list(given or ()) if scope is not None and func.id not in scope.params else []
        else:
            values = self._values(func) if isinstance(func, ast.Attribute) else []
        return bool(values) and all(self._makes_weights(v, set()) for v in values)

    def _values(self, node: ast.Attribute) -> list[ast.expr]:
        """What its class gives `self.name`."""
        holder = next((u for u in self.facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
        if holder is None or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return []
        given = self.facts.devices.attribute_values.get(node.attr, ())
        return [v for v in given if holder in self.facts.scopes.ancestors(v)]

    def _makes_weights(self, made: ast.AST, seen: set[ast.AST]) -> bool:
        for call in (n for n in walk(made, ast.Call)):
            full = self.facts.names.resolve(call.func) or ""
            kind = full.rpartition(".")[2]
            if full.startswith("torch.nn.") and (WEIGHTED.match(kind) or kind in KEPT_WEIGHTS):
                return True
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            of = next((c for c in self.facts.classes.modules if c.name == name), None)
            init = self.facts.classes.methods(of).get("__init__") if of is not None else None
            if init is not None and init not in seen and self._makes_weights(init, seen | {init}):
                return True
        return False


def _asks(node: ast.AST, end: str = "") -> bool:
    return isinstance(node, ast.Attribute) and node.attr == f"requires_grad{end}"


def _asks_itself(call: ast.Call) -> bool:
    """`x.requires_grad_()`, `torch.ones(1, requires_grad=True)`."""
    told = any(k.arg == "requires_grad" and getattr(k.value, "value", None) is True for k in call.keywords)
    return told or _asks(call.func, "_")


def _sets(s: ast.Assign) -> bool:
    return any(map(_asks, s.targets))


def _takes_away(call: ast.Call) -> bool:
    return _asks(call.func, "_") and any(getattr(v, "value", None) is False for v in given_to(call))
