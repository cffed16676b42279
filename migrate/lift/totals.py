"""Where the sums of the ranks are brought together: once after the batches, or in every method that reads them.

A sum that begins at zero in every epoch is whole once its batches are over, and is an ordinary value from then on. One
that goes on from epoch to epoch stays each rank's own part, and whatever reads it asks for the sum over ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import takewhile

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, Variables
from .recipe import CannotLift, DataPass, Recipe
from .zeros import changed, is_zeroed, is_zeros, zeroed


class Where(Enum):
    """LOCAL: a name of the statements after the batches. ONCE: the attribute itself, from then on. READ: a name of
    each method that reads it.
    """

    LOCAL = 1
    ONCE = 2
    READ = 3


class Totals:
    """Decides it for the sums of one pass. Raises CannotLift for a sum that does not begin at zero."""

    def __init__(
        self, facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], variables: Variables, passing: DataPass
    ) -> None:
        self.facts, self.recipe, self.binder, self.passing = facts, recipe, binder, passing
        self.results, self.chunks = variables.results, chunks
        at = next(i for i, c in enumerate(chunks) if c.statements is passing.body)
        self.earlier = [s for c in chunks[:at] if not c.hook.endswith("_step") for s in c.statements]
        beyond = [c for c in chunks if c.statements is not passing.body and c.statements is not passing.after]
        self.beyond = [s for c in beyond for s in c.statements]

    def where(self, var: Variable, added: ast.AST) -> Where:
        """`added`: a place where the step adds to the variable."""
        begins = self._begins(var)
        if begins is None:
            self._check_goes_on(var, added)
            return Where.READ
        if not begins:
            raise CannotLift(added, f"`{var.name}` does not begin at zero")
        elsewhere = any(isinstance(n.ctx, ast.Load) for s in self.beyond for n in self._mentions(s, var))
        results = var.owner == "" and var.name in self.results
        return Where.ONCE if elsewhere or results else Where.LOCAL

    def _begins(self, var: Variable) -> bool | None:
        """Whether every epoch begins it at zero; None where it goes on from the epoch before."""
        begins: bool | None = None
        for s in self.earlier:
            zero = zeroed(self.facts, s)
            if zero is not None and self.binder.variable(zero) == var:
                begins = True
                continue
            if not any(self._is_changed(n) for n in self._mentions(s, var)):
                continue
            given = [value for name, value in _given(s) if self.binder.variable(name) == var]
            if given:
                begins = is_zeros(self.facts, self._through(given[-1]))
            elif begins is not None:
                begins = False
        return begins

    def _check_goes_on(self, var: Variable, added: ast.AST) -> None:
        """Raise unless it is zero before the loop, and only ever set to zero again."""
        stores = self._stores_outside(var.name)
        if var.owner or not stores or not all(map(self._is_set_to_zero, stores)):
            raise CannotLift(added, f"`{var.name}` is not shown to begin at zero")
        outer = self._loop_around()
        if outer is not None and not any(outer in self.facts.scopes.ancestors(s) for s in stores):
            raise CannotLift(added, f"`{var.name}` goes on from one training to the next")
        for c in self.chunks:
            self._check_method(c, var)

    def _check_method(self, chunk: Chunk, var: Variable) -> None:
        """A method beside the step reads the sum first thing: what it sets to zero may not be read there again."""
        names = [n for s in chunk.statements for n in self._mentions(s, var)]
        if chunk.statements is self.passing.body or not names:
            return
        stores = [n for n in names if self._is_changed(n)]
        reads = [n for n in names if n not in stores]
        if reads and chunk.hook.endswith("_step"):
            raise CannotLift(reads[0], f"`{var.name}` goes on from epoch to epoch, and another step reads it")
        if not all(map(self._is_set_to_zero, stores)):
            raise CannotLift(stores[0], f"`{var.name}` goes on from epoch to epoch, and is changed in between")
        if reads and stores and max(map(_place, reads)) > min(map(_place, stores)):
            raise CannotLift(reads[-1], f"`{var.name}` is read after it has begun again")

    def _stores_outside(self, name: str) -> list[ast.AST]:
        """Where the name gets the value that it has when the epochs begin."""
        trunk, loop = self.binder.trunk_scope, self.recipe.epoch_loop
        if name not in trunk.stores:
            return self.facts.scopes.module.stores.get(name, [])
        ups = [list(self.facts.scopes.ancestors(n)) for n in trunk.stores[name]]
        stores = [n for n, up in zip(trunk.stores[name], ups, strict=True) if loop not in up]
        again = self._loop_around() is not None
        return stores if again else [n for n in stores if n.lineno < loop.lineno]  # type: ignore[attr-defined]

    def _loop_around(self) -> ast.AST | None:
        """The loop around the epochs, over folds or stages, if there is one."""
        trunk, ups = self.binder.trunk_scope, self.facts.scopes.ancestors(self.recipe.epoch_loop)
        around = takewhile(lambda up: up is not trunk.node, ups)
        return next((up for up in around if isinstance(up, (ast.For, ast.While))), None)

    def _through(self, value: ast.expr) -> ast.expr:
        """What the call gives, where it is a parameter."""
        given = self.binder.variable(value) if isinstance(value, ast.Name) else None
        return given if isinstance(given, ast.expr) else value

    def _is_set_to_zero(self, store: ast.AST) -> bool:
        holder = self.facts.scopes.statement_of(store)
        if zeroed(self.facts, holder) is store:
            return True
        return any(name is store and is_zeros(self.facts, value) for name, value in _given(holder))

    def _is_changed(self, n: ast.Name) -> bool:
        return not isinstance(n.ctx, ast.Load) or is_zeroed(self.facts, n) or changed(self.facts, n)

    def _mentions(self, s: ast.AST, var: Variable) -> Iterator[ast.Name]:
        return (n for n in walk(s, ast.Name) if self.binder.variable(n) == var)


def _place(n: ast.Name) -> tuple[int, int]:
    return n.lineno, n.col_offset


def _given(s: ast.stmt) -> Iterable[tuple[ast.Name, ast.expr]]:
    """The names that an assignment gives values, with those."""
    if not isinstance(s, ast.Assign):
        return
    for target in s.targets:
        if isinstance(target, ast.Name):
            yield target, s.value
            continue
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(s.value, (ast.Tuple, ast.List)):
            continue
        if len(target.elts) == len(s.value.elts):
            yield from ((t, v) for t, v in zip(target.elts, s.value.elts, strict=True) if isinstance(t, ast.Name))
