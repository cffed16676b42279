"""Models that a script wraps by hand: by what names they go, and where their own module is asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from .gone_through import drawn_from
from .nodes import walk
from .own_wrapped import OwnWrapped
from .script import Facts

WRAPPERS = {
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.DistributedDataParallelCPU",
    "apex.parallel.DistributedDataParallel",
}
CONVERTERS = {"torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model"}
OF_DICTIONARIES = ("items", "values")
MOVES = ("cuda", "to", "cpu", "float", "double", "half", "train", "eval")  # a model's methods that return it


class WrappedModels:
    """`wrapped` are the calls that wrap one, `full` what every call of the file calls."""

    facts: Facts
    wrapped: list[ast.Call]
    full: dict[ast.Call, str | None]

    @cached_property
    def wrapped_names(self) -> set[str]:
        """Names and attributes that hold a wrapped model, parameters that get one too; `f()` where f returns one."""
        found: set[str] = set(self.facts.wrapped)
        for c in self.wrapped:
            statement = next(up for up in self.facts.scopes.ancestors(c) if isinstance(up, ast.stmt))
            found |= self._holders(statement, c)
        for f in self.facts.walk(ast.FunctionDef) if self.facts.given_wrapped else ():
            params = self.facts.scopes.by_node[f].params
            found |= {name for name in params if (f.name, _place(f, name)) in self.facts.given_wrapped}
        return self.grown(found)

    def grown(self, found: set[str]) -> set[str]:
        """Names of models, and those that they go by where they are handed on."""
        found = set(found)
        passed_on: list[ast.Assign | ast.Return] = [
            *(s for s in self.facts.walk(ast.Assign) if isinstance(s.value, ast.Call)),
            *(s for s in self.facts.walk(ast.Return) if s.value is not None),
        ]
        loops: list[ast.For | ast.comprehension] = []
        loops += [*self.facts.walk(ast.For), *self.facts.walk(ast.comprehension)] if found else []
        grew = True
        while grew:
            grew = False
            for s in passed_on:
                if last_name(s.value) in found and not self._holders(s) <= found:
                    found |= self._holders(s)
                    grew = True
            for around in loops:
                drawn = self._drawn(around, found)
                grew = grew or not drawn <= found
                found |= drawn
            for f in self.facts.walk(ast.FunctionDef):
                for name in self.facts.scopes.by_node[f].params:
                    given = self.facts.devices.given(self.facts.scopes.by_node[f], name) or []
                    if name not in found and any(last_name(v) in found for v in given):
                        found.add(name)
                        grew = True
        found.discard("")
        return found

    def _holders(self, s: ast.stmt, wrapped: ast.Call | None = None) -> set[str]:
        """The names of what holds the value of a statement; of a pair those that get `wrapped`, where that shows."""
        if isinstance(s, ast.Assign):
            targets = list(s.targets)
            for t in [t for t in targets if isinstance(t, (ast.Tuple, ast.List)) and wrapped is not None]:
                parts = s.value.elts if isinstance(s.value, (ast.Tuple, ast.List)) else []
                alike = len(parts) == len(t.elts)
                targets += [e for e, v in zip(t.elts, parts, strict=True) if wrapped in walk(v)] if alike else t.elts
            return {last_name(t) for t in targets} - {""}
        if isinstance(s, ast.Return):
            function = next((f for f in self.facts.scopes.ancestors(s) if isinstance(f, ast.FunctionDef)), None)
            return {f"{function.name}()"} if function is not None else set()
        return set()

    def _drawn(self, around: ast.For | ast.comprehension, found: set[str]) -> set[str]:
        """The names that a loop gives the elements of a list or a dictionary of wrapped models."""
        names = set()
        for n in walk(around.target, ast.Name):
            over = drawn_from(self.facts, around, n)
            if (
                isinstance(over, ast.Call)
                and isinstance(over.func, ast.Attribute)
                and over.func.attr in OF_DICTIONARIES
            ):
                key = over.func.attr == "items" and n is getattr(around.target, "elts", [None])[0]
                over = None if key else over.func.value
            if last_name(over) in found:
                names.add(n.id)
        return names

    def module_attributes(self) -> Iterator[ast.Attribute]:
        """`model.module` where model was wrapped."""
        inside: set[ast.AST] = set()
        for choice, field in self.unwrapping_choices():
            inside.update(walk(getattr(choice, _other(field))), walk(choice.test))
        for a in self.facts.attributes.get("module", ()):
            of_wrapped = isinstance(a.ctx, ast.Load) and last_name(a.value) in self.wrapped_names
            if of_wrapped and a not in inside and not self._is_own(a):
                yield a

    def own_modules(self) -> Iterator[ast.expr]:
        """`model.module` that may be the model's own, though the script may mean the model: it wraps one always."""
        if not self._own.wraps_always:
            return
        for a in self.facts.attributes.get("module", ()):
            if last_name(a.value) in self.wrapped_names and self._is_own(a):
                yield a
        for call in self.facts.walk(ast.Call):
            if self._own.is_asked(call, "getattr", 3) and last_name(call.args[0]) in self.wrapped_names:
                yield call

    @cached_property
    def _own(self) -> OwnWrapped:
        return OwnWrapped(self.facts, self.wrapped)

    def _is_own(self, a: ast.Attribute) -> bool:
        if self._own.is_above(a) or self._own.is_of_bare(a, WRAPPERS):
            return True
        asked = self._own.asked_of(a)
        return asked is not None and self._own.may_answer(asked, last_name(a.value))

    def states(self, method: str) -> list[ast.Call]:
        """Calls of `state_dict` or `load_state_dict` of what is wrapped: the keys begin with `module.` there."""
        wrapped = self.wrapped_names
        return [
            c
            for c in self.full
            if isinstance(c.func, ast.Attribute) and c.func.attr == method and last_name(c.func.value) in wrapped
        ]

    def asks_if_wrapped(self, test: ast.expr) -> bool:
        """`isinstance(model, DataParallel)`, which nothing is any more."""
        if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"):
            return False
        kinds = test.args[1].elts if isinstance(test.args[-1], ast.Tuple) else test.args[1:]  # type: ignore[attr-defined]
        known = bool(kinds) and all(self.facts.names.resolve(k) in WRAPPERS for k in kinds)
        return known and last_name(test.args[0]) in self.wrapped_names

    def unwrapping_choices(self) -> Iterator[tuple[ast.IfExp, str]]:
        """`model.module if hasattr(model, "module") else model`, and the branch without `.module`."""
        if not self.wrapped_names:
            return
        for choice in self.facts.walk(ast.IfExp):
            for field in ("body", "orelse"):
                plain, other = getattr(choice, field), getattr(choice, _other(field))
                if not any(n.attr == "module" for n in walk(other, ast.Attribute)):
                    continue
                if self._own.may_answer(choice.test, _last_of(plain)):
                    continue
                text = ast.unparse(plain)
                if ast.unparse(other).replace(".module", "", 1) == text and _last_of(plain) in self.wrapped_names:
                    yield choice, field


def last_name(node: ast.AST | None) -> str:
    """The name of a model: its last attribute, through the methods that give it back; `f()` of what f gives."""
    if isinstance(node, ast.Call):
        moved = isinstance(node.func, ast.Attribute) and node.func.attr in MOVES and node.func.value
        return last_name(moved) if moved else f"{last_name(node.func)}()"
    if isinstance(node, ast.Subscript):  # nets[0]
        return last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _place(f: ast.FunctionDef, name: str) -> int:
    names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    return names.index(name) if name in names else -1


def _last_of(node: ast.AST) -> str:
    """The name that an expression such as `model.state_dict()` starts with, or its last attribute before a call."""
    while isinstance(node, ast.Call):
        node = node.func
        if isinstance(node, ast.Attribute):
            node = node.value
    return last_name(node)


def _other(field: str) -> str:
    return "orelse" if field == "body" else "body"
