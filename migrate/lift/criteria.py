"""What computes a loss when it is called: a loss of torch as it was made, or a function or a class of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..codemods.unread_attributes import calls_of_class
from ..facts.arguments import argument, default_of
from ..facts.handed_back import handed_back
from ..facts.nodes import walk
from ..facts.other_files import OtherFile, found_there
from ..facts.scopes import Scope
from ..facts.script import Facts
from .loss_parts import of_each
from .nodes import local_function

MOVED = ("to", "cuda", "cpu", "float", "double", "half")
LOSS = re.compile(r"torch\.nn\.(.*\.)?\w+Loss(2d)?")
FUNCTIONS = "torch.nn.functional."
OF_TORCH = re.compile(r"torch\.nn\.functional\.(\w+_loss|\w*cross_entropy\w*|kl_div)")
HOLDERS = ("torch.nn.ModuleDict", "torch.nn.ModuleList", "collections.OrderedDict", "dict", "list", "tuple")
UNKNOWN = object()
Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Called:
    """A loss of torch (`made`: how, None where the call itself says all), or a `function`.

    `bound`: its first parameter is the object, which `maker` made.
    """

    made: ast.Call | None = None
    function: Body | None = None
    bound: bool = False
    maker: ast.Call | None = None
    there: Facts | None = None  # those of another file, which has it
    file: str = ""  # and its name


def is_loss_of_torch(full: str | None) -> bool:
    return full is not None and OF_TORCH.fullmatch(full) is not None


class Criteria:
    """Asked in a step, or `within` what it calls, where the parameters of that may be known."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.holder: ast.ClassDef | None = None
        self.maker: ast.Call | None = None
        self.constants: Mapping[str, ast.expr] = {}
        self._open: set[ast.expr] = set()  # what is being looked into: `[move(v) for v in x]` may be given v again

    def within(self, what: Called, constants: Mapping[str, ast.expr]) -> Criteria:
        inner = Criteria(self.facts)
        inner.constants = constants
        inner.holder = self.facts.classes.holder(what.function) if what.function is not None and what.bound else None
        inner.maker = what.maker
        if inner.holder is not None and inner.maker is None:
            made = calls_of_class(self.facts, inner.holder) or []
            inner.maker = made[0] if len(made) == 1 else None
        return inner

    # -- what is called ----------------------------------------------------------------------------------------

    def called(self, func: ast.expr, depth: int = 0) -> list[Called]:
        """All that an expression may be when it is called; empty where that does not show."""
        if depth > 8:
            return []
        if isinstance(func, ast.Name):
            f = local_function(self.facts, func)
            if f is not None:
                return [Called(function=f)]
            found = [c for v in self._values(func) for c in self._made(v, depth + 1)]
            return found or self._by_functions(func, depth) or self.elsewhere(func)
        if isinstance(func, ast.Attribute):
            return self._of_attribute(func, depth)
        if isinstance(func, ast.Subscript):
            held = self._held(func)
            if any(self._is_of_another_object(v) for v in held):
                return []
            return [c for v in held for c in self._made(v, depth + 1)]
        return self._made(func, depth + 1)

    def _is_of_another_object(self, value: ast.expr) -> bool:
        """`{"kd": box.kept}`, which is not followed further; `{"mse": F.mse_loss}` and `self.kept` are."""
        known = isinstance(value, ast.Attribute) and self.facts.names.resolve(value) is not None
        return isinstance(value, ast.Attribute) and not known and not self.facts.classes.is_self(value.value)

    def _made(self, value: ast.expr, depth: int) -> list[Called]:
        """What `nn.MSELoss()`, `Own()`, `partial(F.mse_loss)`, `F.mse_loss`, a lambda give when called."""
        full = self.facts.names.resolve(value if not isinstance(value, ast.Call) else value.func) or ""
        if isinstance(value, ast.Lambda):
            return [Called(function=value)]
        if is_loss_of_torch(full) and not isinstance(value, ast.Call):
            return [Called()]
        if isinstance(value, ast.IfExp):
            return [*self._made(value.body, depth + 1), *self._made(value.orelse, depth + 1)]
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            return self.called(value, depth + 1)
        if not isinstance(value, ast.Call):
            return []
        told = any(k.arg == "reduction" and isinstance(k.value, ast.Constant) for k in value.keywords)
        if LOSS.fullmatch(full) or full == "functools.partial" or told:
            return [Called(made=value)]
        if isinstance(value.func, ast.Attribute) and value.func.attr in MOVED:
            return self._made(value.func.value, depth + 1)
        own = [c for c in self.facts.walk(ast.ClassDef) if isinstance(value.func, ast.Name) and c.name == value.func.id]
        runs = "forward" if own and own[0] in self.facts.classes.modules else "__call__"
        forward = self.facts.classes.methods(own[0]).get(runs) if len(own) == 1 else None
        if forward is not None:
            return [Called(function=forward, bound=True, maker=value)]
        return self._by_functions(value, depth) or self.elsewhere(value)

    def _by_functions(self, e: ast.expr, depth: int) -> list[Called]:
        """`criterion = build(args)`, `net, criterion = build()`: what the functions hand back."""
        found: list[Called] = []
        for home, made, file, f in handed_back(self.facts, e) if depth < 8 else ():
            if f is not None:
                there = None if home is self.facts else home
                found.append(Called(function=f, there=there, file=_name(file)))
            elif home is self.facts:
                found += self._made(made, depth + 2)
            else:
                given = Criteria(home)._made(made, depth + 2)
                found += [c if c.there is not None else replace(c, there=home, file=_name(file)) for c in given]
        return found

    def elsewhere(self, e: ast.expr) -> list[Called]:
        """A function or a loss of another file: `total`, `losses.total`, `Sum()`."""
        found = found_there(self.facts, e.func if isinstance(e, ast.Call) else e) if self.facts.others else None
        if found is None:
            return []
        file, there, own = found
        if isinstance(own, ast.FunctionDef):
            return [] if isinstance(e, ast.Call) else [Called(function=own, there=there, file=file.stem)]
        f = there.classes.methods(own).get("forward" if own in there.classes.modules else "__call__")
        if not isinstance(e, ast.Call) or f is None:
            return []
        return [Called(function=f, bound=True, maker=e, there=there, file=file.stem)]

    def _values(self, name: ast.Name) -> list[ast.expr]:
        for up in self.facts.scopes.ancestors(name) if name in self.facts.scopes.hidden else ():
            for g in getattr(up, "generators", ()):
                if any(n.id == name.id for n in walk(g.target, ast.Name)):
                    held = of_each(g.target, name.id, g.iter)
                    return self._all_held(held) if held is not None else []
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        if scope is None:
            return []
        values = self.facts.devices.assigned(name.id, scope) or self._in_pairs(name.id, scope)
        if name.id in scope.params:
            given = self.facts.devices.given(scope, name.id) or self._given_to_class(scope.node, name.id)
            values = [*values, *given]
        return values

    def _in_pairs(self, name: str, scope: Scope) -> list[ast.expr]:
        """`net, criterion = Net(), nn.MSELoss()`: what stands in the name's place; empty where that does not show."""
        values: list[ast.expr] = []
        for store in scope.stores.get(name, ()):
            up = self.facts.scopes.parents.get(store)
            s = self.facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else up
            if isinstance(s, (ast.For, ast.comprehension)) and (held := of_each(s.target, name, s.iter)) is not None:
                values += self._all_held(held)
                continue
            if isinstance(s, ast.Assign) and isinstance(up, ast.Tuple) and isinstance(s.value, ast.Tuple):
                values += self.facts.devices.elements(up, store, s.value) or ()
            elif isinstance(s, ast.Assign) and s is up:
                values.append(s.value)
            else:
                return []
        return values

    def _given_to_class(self, f: ast.AST, name: str) -> list[ast.expr]:
        """What the constructor `f` of a class is given for a parameter."""
        c = self.facts.classes.holder(f)
        if c is None or not isinstance(f, ast.FunctionDef) or f.name != "__init__":
            return []
        calls = calls_of_class(self.facts, c) or ()
        return [v for call in calls if (v := argument(call, f, name, True)) is not None]

    def _of_attribute(self, a: ast.Attribute, depth: int) -> list[Called]:
        """`self.criterion`: what any class of the file sets it to; `self.loss`, `model.loss`: its method."""
        classes = [self.holder] if self.holder is not None else self.facts.walk(ast.ClassDef)
        methods = [m for c in classes if (m := self.facts.classes.methods(c).get(a.attr)) is not None]
        found = [Called(function=m, bound=not _is_static(m)) for m in methods]
        found += [c for v in self._stored(a) for c in self._made(v, depth + 1)]
        return found or list(self._of_another(a))

    def _of_another(self, a: ast.Attribute) -> Iterator[Called]:
        """`model.loss`, the method of a class of another file that makes the object."""
        stored = self._stored(a.value) if isinstance(a.value, ast.Attribute) else ()
        for made in self._values(a.value) if isinstance(a.value, ast.Name) else stored:
            while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in MOVED:
                made = made.func.value
            found = found_there(self.facts, made.func) if isinstance(made, ast.Call) and self.facts.others else None
            own = found[2] if found is not None else None
            if found is None or not isinstance(made, ast.Call) or not isinstance(own, ast.ClassDef):
                continue
            if (f := found[1].classes.methods(own).get(a.attr)) is not None and not _is_static(f):
                yield Called(function=f, bound=True, maker=made, there=found[1], file=found[0].stem)

    def _stored(self, a: ast.Attribute) -> Iterator[ast.expr]:
        for n in self.facts.stores_of(a.attr):
            up = self.facts.scopes.parents.get(n)
            pairs = self.facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else None
            if isinstance(up, (ast.Assign, ast.AnnAssign)) and up.value is not None:
                yield up.value
            elif isinstance(pairs, ast.Assign) and isinstance(pairs.value, ast.Tuple):
                yield from pairs.value.elts[up.elts.index(n) :][:1]  # type: ignore[union-attr]

    def _holders(self, e: ast.expr) -> Iterator[ast.expr]:
        """What is written out of a dictionary or a list, in `nn.ModuleDict({...})` too, by whatever names."""
        if e in self._open:
            return
        self._open.add(e)
        named = [e]
        if isinstance(e, (ast.Name, ast.Attribute)):
            named = [*(self._values(e) if isinstance(e, ast.Name) else self._stored(e))]
        for h in named:
            if isinstance(h, ast.Name):
                yield from self._holders(h)
                continue
            full = self.facts.names.resolve(h.func) if isinstance(h, ast.Call) else None
            holds = full in HOLDERS or (isinstance(h, ast.Call) and full is None and ast.unparse(h.func) in HOLDERS)
            if isinstance(h, ast.Call) and holds and not h.args:
                keys: list[ast.expr | None] = [ast.Constant(k.arg) if k.arg else None for k in h.keywords]
                h = ast.Dict(keys, [k.value for k in h.keywords])
            elif isinstance(h, ast.Call) and holds and len(h.args) == 1:
                h = h.args[0]
            if not (isinstance(h, ast.Dict) and None in h.keys):  # `{**more}`: not all of it is written out
                yield h
        self._open.discard(e)

    def _all_held(self, e: ast.expr) -> list[ast.expr]:
        return [
            v
            for h in self._holders(e)
            for v in (h.values if isinstance(h, ast.Dict) else h.elts if isinstance(h, (ast.List, ast.Tuple)) else ())
        ]

    def _held(self, e: ast.Subscript) -> list[ast.expr]:
        """`losses["a"]` of a dictionary or a list that is written out."""
        found: list[ast.expr] = []
        for h in self._holders(e.value):
            if isinstance(h, ast.Dict):
                pairs = zip(h.keys, h.values, strict=True)
                named = [v for k, v in pairs if k is not None and ast.unparse(k) == ast.unparse(e.slice)]
                found += named or h.values
            elif isinstance(h, (ast.List, ast.Tuple)):
                found += h.elts
        return found

    # -- what is known -----------------------------------------------------------------------------------------

    def constant(self, e: ast.expr | None) -> Any:
        """The value of an expression that is written out here, or where the object was made; else UNKNOWN."""
        if isinstance(e, ast.Constant):
            return e.value
        if isinstance(e, ast.Name):
            if e.id in self.constants:
                return self.constant(self.constants[e.id])
            made = self.facts.devices.assigned(e.id, home) if (home := self._home(e)) is not None else None
            return made[0].value if made and len(made) == 1 and isinstance(made[0], ast.Constant) else self._given(e.id)
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name) and e.value.id == "self" and self.holder:
            stores = list(self._stored(e))
            return self._of_constructor(stores[0]) if len(stores) == 1 else UNKNOWN
        return UNKNOWN

    def _home(self, name: ast.Name) -> Any:
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        return scope if scope is not None and name.id not in scope.params else None

    def _of_constructor(self, e: ast.expr) -> Any:
        return self._given(e.id) if isinstance(e, ast.Name) else e.value if isinstance(e, ast.Constant) else UNKNOWN

    def _given(self, name: str) -> Any:
        """What the constructor of the class was given for a parameter."""
        init = self.facts.classes.methods(self.holder).get("__init__") if self.holder is not None else None
        if not isinstance(init, ast.FunctionDef) or self.maker is None:
            return UNKNOWN
        value = argument(self.maker, init, name, True)
        value = default_of(init, name) if value is None else value
        return value.value if isinstance(value, ast.Constant) else UNKNOWN

    def returned(self, f: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
        """What a function may return, branches aside that what is known rules out."""
        found: list[ast.expr] = []
        self._collect(f.body, found)
        return found

    def _collect(self, block: list[ast.stmt], found: list[ast.expr]) -> bool:
        """Whether a block returns in any case."""
        for s in block:
            if isinstance(s, ast.Return):
                found += [s.value] if s.value is not None else []
                return True
            if isinstance(s, ast.Raise):
                return True
            if isinstance(s, ast.If):
                truth = self._truth(s.test)
                ends = [self._collect(b, found) for b, t in ((s.body, True), (s.orelse, False)) if truth in (t, None)]
                if all(ends):
                    return True
            elif isinstance(s, ast.With):
                if self._collect(s.body, found):
                    return True
            elif isinstance(s, (ast.For, ast.While, ast.Try)):
                self._collect(s.body, found)
        return False

    def _truth(self, test: ast.expr) -> bool | None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self._truth(test.operand)
            return None if truth is None else not truth
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = self.constant(test.left), self.constant(test.comparators[0])
            if left is UNKNOWN or right is UNKNOWN:
                return None
            if isinstance(test.ops[0], (ast.Eq, ast.Is)):
                return bool(left == right)
            return bool(left != right) if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) else None
        value = self.constant(test)
        return None if value is UNKNOWN else bool(value)


def _name(file: OtherFile | None) -> str:
    return file.stem if file is not None else ""


def _is_static(f: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in f.decorator_list)
