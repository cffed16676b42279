"""Whether the mean of a value is one over the samples of the batch: the shares' means, weighed, are then the whole's.

Each sample has to have as much in it, and no operation on the way may have mixed samples.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from ..facts.batch_operations import PICKS
from ..facts.batch_values import Flow, Value
from ..facts.nodes import walk
from ..facts.script import Facts


class Means:
    """Asked of expressions of a step, or of a function that it calls. `given`: what statements give a name a value."""

    def __init__(
        self, facts: Facts, body: list[ast.stmt], given: dict[str, list[ast.stmt]], follow: Callable[[], Flow]
    ) -> None:
        self.facts, self.body, self.given, self.follow = facts, body, given, follow

    @cached_property
    def flow(self) -> Flow:
        return self.follow()

    def is_of_samples(self, e: ast.expr) -> bool:
        value, mixes = self.value(e)
        return value.kind != "reduced" and not value.holds and not mixes and self._is_even(e)

    def is_of_places(self, e: ast.expr) -> bool:
        """Whether a value is of samples by their place in the batch, `out[:3]`, which have another place in a share."""
        return any(self._takes_places(n) for n in self._trail(e))

    def is_one_number(self, e: ast.expr) -> bool:
        value, mixes = self.value(e)
        return value.kind == "reduced" and not mixes

    def is_reduced(self, e: ast.expr) -> bool:
        """Whether nothing of single samples is left in a value: a loss, the mean of each column."""
        return self.value(e)[0].kind == "reduced"

    def is_per_sample(self, e: ast.expr) -> bool:
        value = self.value(e)[0]
        return value.is_per_sample() and not value.holds

    def value(self, e: ast.expr) -> tuple[Value, bool]:
        """What an expression is of the batch, and whether it mixes samples itself."""
        ups = {e, *self.facts.scopes.ancestors(e)}
        at = next((s for s in self.body if s in ups), None)
        return self.facts.mixing.value(e, self.flow.after.get(at, {}) if at is not None else {})

    def _is_even(self, e: ast.expr) -> bool:
        """Whether nothing on the way picks some samples, or mixes them."""
        mixes = set(self.flow.mixes)
        return not any(n in mixes or self._picks(n) for n in self._trail(e))

    def _trail(self, e: ast.AST) -> Iterator[ast.AST]:
        """The nodes that a value is computed by, through the names of the step."""
        stack, seen = [e], set()
        while stack:
            for n in walk(stack.pop()):
                yield n
                if isinstance(n, ast.Name) and n.id not in seen:
                    seen.add(n.id)
                    stack += [s for s in self.given.get(n.id, []) if not isinstance(s, ast.Expr)]

    def _takes_places(self, n: ast.AST) -> bool:
        if not isinstance(n, ast.Subscript) or not isinstance(n.ctx, ast.Load):
            return False
        value = self.value(n.value)[0]
        if value.kind != "batch" or value.holds or value.views != 1:
            return False
        parts = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
        own = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is None)][: value.dim + 1]
        if len(own) <= value.dim or any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in own):
            return False
        at = own[-1]
        at = at.operand if isinstance(at, ast.UnaryOp) else at
        if isinstance(at, ast.Slice):
            return any(x is not None for x in (at.lower, at.upper, at.step))
        return isinstance(at, ast.Constant) and type(at.value) is int

    def _picks(self, n: ast.AST) -> bool:
        if isinstance(n, ast.Call):
            last = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            return last in PICKS or (last == "where" and len(n.args) == 1)
        if not isinstance(n, ast.Subscript) or not isinstance(n.ctx, ast.Load):
            return False
        if isinstance(n.value, ast.Call) and self.facts.names.resolve(n.value.func) is None:
            root = n.value.func
            while isinstance(root, ast.Attribute):
                root = root.value
            # one of several outputs, or a sample: nothing here shows which
            return isinstance(n.value.func, ast.Name) or (isinstance(root, ast.Name) and root.id == "self")
        parts = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
        if not all(isinstance(p, (ast.Constant, ast.Slice)) for p in parts):
            return True
        first = parts[0]  # of a slice of the samples a share has another part
        return isinstance(first, ast.Slice) and any(x is not None for x in (first.lower, first.upper, first.step))
