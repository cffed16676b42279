"""Where the length of the training loader stands for the steps of an epoch: a process may have fewer of them.

`total / len(loader)` is the mean over the steps. Processes that take a batch of their own each have N times fewer steps
than the loader has batches, and what they add up of their means has as many terms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from ..facts.nodes import walk
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable
from .counters import Counters
from .nodes import walk_here
from .recipe import Recipe
from .shown import keeps

NUMBER = "self.trainer.num_training_batches"
AS_LARGE = ("float", "int", "max", "min")


class Lengths:
    """`found`: the expressions that are this process's number of steps. `brought`: means that the step shows."""

    def __init__(
        self,
        facts: Facts,
        recipe: Recipe,
        binder: Binder,
        chunks: list[Chunk],
        counters: Counters,
        brought: dict[ast.AST, str],
    ) -> None:
        self.facts, self.recipe, self.binder, self.chunks = facts, recipe, binder, chunks
        self.counters, self.brought = counters, brought
        self.loader = self._key(recipe.train.loader)
        self.found = {e for e in self._lengths() if self._is_of_steps(e)} if recipe.whole is None else set()
        self.unread = {n for e in self.found for n in walk(e)} - self.found

    def of_the_trainer(self, moved: list[ast.stmt]) -> set[str]:
        """What the constructor need not get: names for such a number alone, and the training loader's, where nothing
        but the training reads it.
        """
        return self._names_of_numbers(moved) | self._name_of_loader(moved)

    def _names_of_numbers(self, moved: list[ast.stmt]) -> set[str]:
        """`steps` of `steps = len(loader)`, of which every read is the Trainer's number now."""
        given = {
            v for n in self.found if isinstance(n, ast.Name) and isinstance(v := self.binder.variable(n), Variable)
        }
        statements = [*moved, *(s for c in self.chunks for s in c.statements)]
        returns = [p.returns for c in self.chunks if (p := c.passing) is not None and p.returns is not None]
        names = (n for s in (*statements, *returns) for n in walk(s, ast.Name) if n not in self.found)
        others = {self.binder.variable(n) for n in names}
        return {v.name for v in given if not v.owner and v not in others}

    def _name_of_loader(self, moved: list[ast.stmt]) -> set[str]:
        var, e = self.loader, self.recipe.evaluate
        if self.recipe.reloads or not isinstance(var, Variable) or var.owner:
            return set()
        nodes: list[ast.AST] = [*self.recipe.before, *self.recipe.between, *self.recipe.after, *moved]
        if e is not None:
            nodes += [*e.before, *e.body, *e.after, *([e.returns] if e.returns is not None else [])]
        names = (n for s in nodes for n in walk(s, ast.Name) if n not in self.unread)
        return set() if any(self.binder.variable(n) == var for n in names) else {var.name}

    def _key(self, e: ast.expr) -> object:
        """What tells one loader from another: `loader`, or `loaders["train"]`."""
        value = self.binder.variable(e) if isinstance(e, ast.Name) else e
        return ast.dump(value) if isinstance(value, ast.expr) else value

    def _lengths(self) -> Iterator[ast.expr]:
        """`len(loader)`, and the names that are given nothing else."""
        for call in self.facts.walk(ast.Call):
            named = isinstance(call.func, ast.Name) and call.func.id == "len" and len(call.args) == 1
            if not named or self.loader is None or self._key(call.args[0]) != self.loader:
                continue
            if self.facts.scopes.scope_of(call).lookup("len") is not None:
                continue
            yield call
            s = self.facts.scopes.parents.get(call)
            target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            var = self.binder.variable(target) if isinstance(target, ast.Name) else None
            home = self.facts.scopes.scope_of(call).lookup(target.id) if isinstance(target, ast.Name) else None
            if isinstance(var, Variable) and home is not None and len(home.stores.get(var.name, [])) == 1:
                names = (n for n in self.facts.walk(ast.Name) if isinstance(n.ctx, ast.Load))
                yield from (n for n in names if self.binder.variable(n) == var)

    def _is_of_steps(self, e: ast.expr) -> bool:
        ups = [e, *self.facts.scopes.ancestors(e)]
        chunk = next((self._chunk_of[up] for up in ups if up in self._chunk_of), None)
        if chunk is None or (chunk.hook == "train_dataloader"):
            return False
        in_step = chunk.hook == "training_step"
        for side, up in pairwise(ups):
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult):
                return False  # of all samples, or of all epochs
            if isinstance(up, ast.BinOp) and isinstance(up.op, (ast.FloorDiv, ast.Div)) and up.left is side:
                return False  # a part of an epoch, of which a process with few steps would have none
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is side:
                return in_step or self._adds_means(up.left)
            if isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Div):
                return in_step or self._adds_means(up.target)
            as_large = isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id in AS_LARGE
            if not as_large and not isinstance(up, ast.BinOp):
                # what the step compares with its index
                return in_step and not isinstance(up, (ast.Assign, ast.Attribute, ast.Call))
        return False

    @cached_property
    def _chunk_of(self) -> dict[ast.AST, Chunk]:
        found: dict[ast.AST, Chunk] = {s: c for c in self.chunks for s in c.statements}
        for c in self.chunks:
            if c.passing is not None and c.statements is c.passing.after and c.passing.returns is not None:
                found[c.passing.returns] = c
        return found

    @cached_property
    def _means(self) -> set[object]:
        """What the training step adds means over its samples to, one a step."""
        train = self.recipe.train
        found: set[object] = {v for v, c in self.counters if c.passing is train and (c.by_share or c.weighed)}
        for n in (n for s in train.body for n in walk_here(s)):
            if isinstance(n, ast.Call) and keeps(n) and isinstance(n.func, ast.Attribute):
                of_means = any(self.brought.get(x) == "mean" for a in n.args for x in walk(a))
                root = n.func.value
                while isinstance(root, (ast.Subscript, ast.Attribute)):
                    root = root.value
                if of_means and isinstance(root, ast.Name):
                    found.add(self.binder.variable(root))
        if train.result is not None and train.returns is not None:
            several = isinstance(train.result, ast.Tuple) and isinstance(train.returns, ast.Tuple)
            targets = train.result.elts if several else [train.result]  # type: ignore[attr-defined]
            values = train.returns.elts if several else [train.returns]  # type: ignore[attr-defined]
            for target, value in zip(targets, values, strict=False):
                if isinstance(value, ast.Name) and self.binder.variable(value) in found:
                    found |= {self.binder.variable(target)} if isinstance(target, ast.Name) else set()
        return found - {None}

    def _adds_means(self, e: ast.expr) -> bool:
        return any(self.binder.variable(n) in self._means or self._is_of_one(n) for n in walk(e, ast.Name))

    def _is_of_one(self, name: ast.Name) -> bool:
        """The v of `{k: v / len(loader) for k, v in means.items()}`."""
        for up in self.facts.scopes.ancestors(name):
            for g in getattr(up, "generators", ()):
                if any(t.id == name.id for t in walk(g.target, ast.Name)):
                    return self._adds_means(g.iter)
            if isinstance(up, ast.stmt):
                break
        return False
