"""`--checkpoint NAME`: the modules that an attribute is given, each to be wrapped; what cannot be wrapped is told.

FairScale's wrapper gives the module back with another forward, so it has to be around what is called: the parts of a
ModuleList, wherever they are put into it, and not the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts

LISTS = {"torch.nn.ModuleList", "torch.nn.ModuleDict"}
FILLS = {"append": 0, "extend": 0, "insert": 1, "update": 0}
NO_MODULES = {
    f"torch.{name}" for name in ("nn.Parameter", "nn.Buffer", "nn.ParameterList", "nn.ParameterDict", "Tensor")
}
NAMED = ("add_module", "register_module")


class NotWrapped(Exception):
    """Why what an attribute is given cannot be wrapped."""


def is_wrapper(full: str | None) -> bool:
    return full is not None and full.startswith("fairscale.nn.") and full.endswith(".checkpoint_wrapper")


class AskedModule:
    """An attribute of a class, by its name."""

    def __init__(self, facts: Facts, c: ast.ClassDef, name: str) -> None:
        self.facts, self.c, self.name = facts, c, name

    def given(self) -> list[ast.expr]:
        """What the attribute is given, in the order of the text; of several one after another the last one."""
        found = [value for n in walk(self.c) for value in self._values(n)]
        found.sort(key=lambda v: (v.lineno, v.col_offset))
        again = [i for i, v in enumerate(found) if any(self._is(n) for n in walk(v))]
        return found[again[-1] :] if again else found

    def parts(self, value: ast.expr) -> Iterator[ast.expr]:
        """The modules of a value that are to be wrapped."""
        if isinstance(value, ast.Constant) and value.value is None:
            return
        if isinstance(value, ast.IfExp):
            yield from self.parts(value.body)
            yield from self.parts(value.orelse)
            return
        if isinstance(value, ast.Call):
            full = self.facts.names.resolve(value.func) or ""
            if is_wrapper(full) or full.endswith(".checkpoint_wrapper"):
                return
            if full in LISTS:
                yield from self._of_list(value)
                yield from self._filled()
                return
            if (full.startswith("torch.") and not full.rpartition(".")[2][:1].isupper()) or full in NO_MODULES:
                raise NotWrapped("it is no module")
            yield value
        elif isinstance(value, ast.Name):
            yield from self._named(value)
        elif isinstance(value, (ast.Attribute, ast.Subscript)):
            yield value
        else:
            raise NotWrapped("what it is does not show")

    def is_run(self) -> bool:
        """Whether the module is called as a whole, or handed on; not only its layers, one after another."""
        uses = [n for n in walk(self.c) if self._is(n) and isinstance(n.ctx, ast.Load)]  # type: ignore[attr-defined]
        ups = [self.facts.scopes.parents.get(n) for n in uses]
        parts = (ast.For, ast.comprehension, ast.Subscript)
        return not uses or not all(isinstance(u, parts) for u in ups)

    def _is(self, n: ast.AST) -> bool:
        own = isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
        return own and n.attr == self.name  # type: ignore[attr-defined]

    def _values(self, n: ast.AST) -> Iterator[ast.expr]:
        """What a node gives the attribute."""
        if isinstance(n, ast.Assign):
            for t in n.targets:
                if self._is(t):
                    yield n.value
                elif isinstance(t, ast.Tuple) and isinstance(n.value, ast.Tuple) and len(t.elts) == len(n.value.elts):
                    yield from (v for part, v in zip(t.elts, n.value.elts, strict=True) if self._is(part))
        elif isinstance(n, ast.Call) and self._names_it(n):
            yield n.args[-1]

    def _names_it(self, call: ast.Call) -> bool:
        """`self.add_module("block", ...)`, `setattr(self, "block", ...)`"""
        func = call.func
        adds = isinstance(func, ast.Attribute) and func.attr in NAMED and ast.unparse(func.value) == "self"
        sets = isinstance(func, ast.Name) and func.id == "setattr" and len(call.args) == 3
        named = call.args[-2] if (adds or sets) and len(call.args) > 1 else None
        return isinstance(named, ast.Constant) and named.value == self.name

    # -- lists of modules ----------------------------------------------------------------------------------------

    def _of_list(self, made: ast.Call) -> Iterator[ast.expr]:
        for listed in made.args:
            if isinstance(listed, ast.Name):
                yield from self._of_variable(listed)
            else:
                yield from self._elements(listed)

    def _elements(self, listed: ast.expr) -> Iterator[ast.expr]:
        if isinstance(listed, (ast.List, ast.Tuple)):
            several = [e for e in listed.elts if not isinstance(e, ast.Starred)]
            if len(several) < len(listed.elts):
                raise NotWrapped("its parts do not show")
        elif isinstance(listed, (ast.ListComp, ast.GeneratorExp)):
            several = [listed.elt]
        elif isinstance(listed, ast.Dict):
            several = list(listed.values)
        elif isinstance(listed, ast.Call) and ast.unparse(listed.func) == "dict" and not listed.args:
            several = [k.value for k in listed.keywords]
        else:
            raise NotWrapped("its parts do not show")
        for e in several:
            yield from self.parts(e)

    def _of_variable(self, name: ast.Name) -> Iterator[ast.expr]:
        """`layers` of `layers = []`, `layers.append(...)`, `nn.ModuleList(layers)`."""
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        given = self.facts.devices.assigned(name.id, scope) if scope is not None else None
        if not given or len(given) != 1 or given[0] is None:
            raise NotWrapped("its parts do not show")
        yield from self._elements(given[0])
        reads = [self.facts.scopes.parents.get(n) for n in self.facts.scopes.reads(name.id, scope)]  # type: ignore[arg-type]
        yield from self._put_in(a for a in reads if isinstance(a, ast.Attribute))

    def _filled(self) -> Iterator[ast.expr]:
        """`self.blocks.append(...)`, `self.blocks += [...]`, `self.blocks["a"] = ...`"""
        ups = [self.facts.scopes.parents.get(n) for n in walk(self.c) if self._is(n)]
        yield from self._put_in(u for u in ups if isinstance(u, ast.Attribute))
        for u in ups:
            if isinstance(u, ast.AugAssign):
                yield from self._elements(u.value)
            up = self.facts.scopes.parents.get(u) if isinstance(u, ast.Subscript) else None
            if isinstance(up, ast.Assign) and u in up.targets:
                yield from self.parts(up.value)

    def _put_in(self, methods: Iterator[ast.Attribute]) -> Iterator[ast.expr]:
        for a in methods:
            call = self.facts.scopes.parents.get(a)
            if isinstance(call, ast.Call) and call.func is a and a.attr in FILLS and len(call.args) > FILLS[a.attr]:
                value = call.args[FILLS[a.attr]]
                yield from self._elements(value) if a.attr in ("extend", "update") else self.parts(value)

    def _named(self, name: ast.Name) -> Iterator[ast.expr]:
        """A variable, or a parameter that is always given."""
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        if scope is None or isinstance(scope.node, ast.ClassDef):
            raise NotWrapped("what it is does not show")
        if name.id in scope.params:
            defaults = [*scope.node.args.defaults, *scope.node.args.kw_defaults]  # type: ignore[union-attr]
            if any(isinstance(d, ast.Constant) and d.value is None for d in defaults):
                raise NotWrapped("it may be None")
        given = self.facts.devices.assigned(name.id, scope) or []
        wrapped = [v for v in given if isinstance(v, ast.Call) and is_wrapper(self.facts.names.resolve(v.func))]
        if not wrapped:
            yield name
