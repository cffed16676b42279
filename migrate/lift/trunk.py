"""What stands where the loop was: the Trainer, its fit, and what is read from the Module afterwards."""

from __future__ import annotations

import ast
from itertools import takewhile

from ..facts.choice import known_in
from ..facts.nodes import walk
from ..facts.runtime_names import imported_as
from .chunks import Variable, bound_before
from .computed import computed
from .epochs import epoch_afterwards, max_epochs
from .reads import stored, sure_of
from .recipe import CannotLift
from .rewriting import Rewriter

ON_CPU = '"cpu"'  # the Trainer's accelerator where a script names no device and works on tensors of its own


class Trunk:
    """`rewriter`: of the recipe; `name`: of the class; `accelerator`: the source of the Trainer's argument, if any;
    `comes_back`: whether the script works with the network on the CPU afterwards.
    """

    def __init__(self, rewriter: Rewriter, name: str, accelerator: str | None, comes_back: bool = False) -> None:
        self.rewriter, self.name, self.accelerator, self.comes_back = rewriter, name, accelerator, comes_back
        self.facts, self.recipe, self.variables = rewriter.facts, rewriter.recipe, rewriter.variables
        self.scope = rewriter.binder.trunk_scope

    def lines(self) -> list[str]:
        r = self.recipe
        names = [n for n in self.variables.constructor if n not in self.rewriter.configured.handled]
        made = f"{self.name}({', '.join(names)})"
        own = self._free("trainer")
        lines = [f"{own} = {imported_as(self.facts, 'Trainer')}({', '.join(self._options())})"]
        computed = self._computed()
        if self.variables.results or computed:
            module = self._free("module")
            lines += [f"{module} = {made}", f"{own}.fit({', '.join([module, *self._loaders()])})"]
            lines += [f"{n} = {n}.to({module}.device)" for n in computed]
            for n in self.variables.results:
                lines += self._result_lines(module, Variable("", n))
        else:
            lines.append(f"{own}.fit({', '.join([made, *self._loaders()])})")
        if self.variables.epoch_read_after and not self.rewriter.epoch_seen:
            lines.append(f"{r.epoch} = {epoch_afterwards(self.facts, r).replace('trainer.', own + '.', 1)}")
        return lines

    def _computed(self) -> list[str]:
        """What a network computed above the loop, where it was on the CPU still, and what stands below reads."""
        if self.accelerator == ON_CPU or self.comes_back:
            return []
        names = sorted(self.variables.after - set(self.variables.results))
        return [n for n in names if computed(self.facts, n, self.scope, self.recipe.epoch_loop)]

    def _options(self) -> list[str]:
        """The Trainer's arguments."""
        r = self.recipe
        options = [f"max_epochs={max_epochs(self.facts, r)}"]
        if r.optimization.clip is not None:
            options.append(f"gradient_clip_val={self._here(r.optimization.clip)}")
            if r.optimization.clip_algorithm != "norm":
                options.append(f'gradient_clip_algorithm="{r.optimization.clip_algorithm}"')
        if self.accelerator is not None and known_in(self.accelerator, self.scope, self.facts):
            options.append(f"accelerator={self.accelerator}")
        if self.comes_back:
            options.append("back_on_cpu=True")
        if self.facts.precision is not None:
            if not known_in(self.facts.precision, self.scope, self.facts):
                raise CannotLift(r.epoch_loop, "what decides the precision is not known where the Trainer is made")
            options.append(f"precision={self.facts.precision}")
        norms = self.facts.sync_batchnorm
        if norms is not None and known_in(norms, self.scope, self.facts):
            # asked for or not, one process's batches that are divided are measured whole: that is its None
            options.append(f"sync_batchnorm={norms if norms == 'True' else f'{norms} or None'}")
        if r.reloads:
            options.append("reload_dataloaders_every_n_epochs=1")
        return options

    def _loaders(self) -> list[str]:
        r = self.recipe
        loaders = [] if r.reloads else [self._here(r.train.loader)]
        if r.evaluate is not None:
            evaluated = self._here(r.evaluate.loader)
            loaders.append(f"val_dataloaders={evaluated}" if r.reloads else evaluated)
        return loaders

    def _result_lines(self, module: str, var: Variable) -> list[str]:
        """`best = module.best`; what an earlier training of a loop around has found stays where this one finds none."""
        if self._surely_set(var.name) or not self._is_repeated():
            return [f"{var.name} = {self._result(module, var)}"]
        attribute = self.variables.attributes[var]
        given = self._result(module, var).replace(f'getattr({module}, "{attribute}", None)', f"{module}.{attribute}")
        return [f'if hasattr({module}, "{attribute}"):', f"{self.facts.indentation}{var.name} = {given}"]

    def _is_repeated(self) -> bool:
        ups = takewhile(lambda up: up is not self.scope.node, self.facts.scopes.ancestors(self.recipe.epoch_loop))
        return any(isinstance(up, (ast.For, ast.While)) for up in ups)

    def _result(self, module: str, var: Variable) -> str:
        value = f"{module}.{self.variables.attributes[var]}"
        if not self._surely_set(var.name):  # it has no value after the loop where no epoch gave it one
            value = f'getattr({module}, "{self.variables.attributes[var]}", None)'
        how = self.rewriter.lasting.brought.get(var, "all_reduce")
        op = ', "max"' if var == self.rewriter.lasting.number else ""
        return f"{module}.{how}({value}{op})" if self.rewriter.is_in_part(var) else value

    def _surely_set(self, name: str) -> bool:
        """Whether an epoch gives the name a value under no condition, or something above the loop does."""
        r = self.recipe
        if name in self.variables.constructor or bound_before(self.rewriter.binder, r, name):
            return True
        passes = [p for p in (r.train, r.evaluate) if p is not None]
        given = {n.id for p in passes if p.result is not None for n in walk(p.result, ast.Name)}
        given |= {n.id for p in passes for n in walk(p.loop.target, ast.Name)}
        given |= {p.index for p in passes if p.index is not None}
        return name in given or any(name in _stored_surely(c.statements) for c in self.rewriter.chunks)

    def _free(self, name: str) -> str:
        """A name that nothing has here."""
        s, first, number = self.scope, name, 1
        while any(name in taken for taken in (s.stores, s.params, s.loads, self.facts.scopes.module.stores)):
            number += 1
            name = f"{first}_{number}"
        return name

    def _here(self, node: ast.expr) -> str:
        """An expression of a function as it reads here, through the arguments of the call."""
        text = self.facts.text.get(node)
        start, _ = self.facts.text.span(node)
        names = list(walk(node, ast.Name))
        for n in sorted(names, key=lambda n: (-n.lineno, -n.col_offset)):
            var = self.rewriter.binder.variable(n)
            a, b = self.facts.text.span(n)
            if isinstance(var, Variable) and var.owner:
                raise CannotLift(n, f"`{n.id}` is known only inside the training pass")
            new = var.name if isinstance(var, Variable) else n.id
            new = self.facts.text.get(var) if isinstance(var, ast.expr) else new
            text = text[: a - start] + new + text[b - start :]
        return text


def _stored_surely(statements: list[ast.stmt]) -> set[str]:
    """What statements give a value under no condition; those below a way out of the loop are come by too."""
    found: set[str] = set()
    for s in statements:
        found |= sure_of(s) or set()
        if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
            found.add(s.name)
        elif isinstance(s, (ast.For, ast.While, ast.Try)):
            found |= stored([s])
    return found
