"""Which classes of a file are modules, and which of those a Trainer runs."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

RUN_BY_TRAINER = {
    f"{package}.{name}"
    for package in (
        "pytorch_lightning",
        "lightning",
        "lightning.pytorch",
        "pytorch_lightning.core",
        "lightning.pytorch.core",
    )
    for name in ("LightningModule",)
} | {"ptmigrate.runtime.Module", "pytorch_lightning.core.lightning.LightningModule"}
# layers of torch.nn whose `weight` is always there
WEIGHTED = re.compile(r"(Linear|Conv(Transpose)?[123]d|Embedding|LayerNorm|Bilinear)\Z")
STEPS = ("training_step", "validation_step", "test_step", "predict_step")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def bases_of(c: ast.ClassDef) -> list[ast.expr]:
    """The bases of a class, without what generic ones are given: `Base` of `Base[int]`."""
    return [b.value if isinstance(b, ast.Subscript) else b for b in c.bases]


class Classes:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def modules(self) -> list[ast.ClassDef]:
        """Classes that are torch modules, through bases of this file too."""
        return [c for c in self.facts.walk(ast.ClassDef) if self._kind(c, 0)]

    @cached_property
    def run_by_trainer(self) -> list[ast.ClassDef]:
        """Classes whose steps a Trainer calls."""
        return [c for c in self.modules if self._kind(c, 0) == "trainer"]

    @cached_property
    def callbacks(self) -> list[ast.ClassDef]:
        """Classes whose hooks a Trainer calls with itself and the module."""
        names = {"Callback"} | {c.name for c in self.facts.walk(ast.ClassDef) if _ends(c.bases, {"Callback"})}
        return [c for c in self.facts.walk(ast.ClassDef) if _ends(c.bases, names)]

    def is_self(self, node: ast.expr) -> bool:
        """`self`, `super()`, or a name that is only ever given `self`; the first parameter of a method by any name."""
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "super"
        if not isinstance(node, ast.Name) or node.id == "self":
            return isinstance(node, ast.Name)
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        if scope is not None and node.id in scope.params:
            return self._is_first(scope.node, node.id)
        given = self.facts.devices.assigned(node.id, scope) if scope is not None else ()
        return bool(given) and all(isinstance(v, ast.Name) and v.id == "self" for v in given or ())

    def _is_first(self, f: ast.AST, name: str) -> bool:
        """The `this` of `def training_step(this, batch, batch_idx)`."""
        if not isinstance(f, Function) or self.holder(f) is None or name in self.facts.scopes.by_node[f].stores:
            return False
        marks = {d.id for d in f.decorator_list if isinstance(d, ast.Name)}
        first = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][:1]
        return first == [name] and not marks & {"staticmethod", "classmethod"}

    def _kind(self, c: ast.ClassDef, depth: int) -> str | None:
        for base in bases_of(c):
            full = self.facts.names.resolve(base)
            last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if full in RUN_BY_TRAINER or last == "LightningModule":
                return "trainer"
            if full is not None and full.startswith("torch.nn.") and not full.startswith("torch.nn.functional"):
                return "module"
            if isinstance(base, ast.Name) and depth < 5:
                local = next((d for d in self.facts.walk(ast.ClassDef) if d.name == base.id and d is not c), None)
                found = self._kind(local, depth + 1) if local is not None else None
                if found:
                    return found
        # a base of another file: what only a Trainer calls tells the kind
        if c.bases and {"training_step", "configure_optimizers"} <= set(self.methods(c)):
            return "trainer"
        return "trainer" if c.bases and depth == 0 and self._logs_in_steps(c) else None

    def _logs_in_steps(self, c: ast.ClassDef) -> bool:
        """`self.log("loss", loss)` in a class with steps; not what another library's Trainer is given: its model."""
        methods = self.methods(c)
        steps = [methods[name] for name in STEPS[:3] if name in methods]
        given = {a.arg for f in steps for a in f.args.args}
        trains = any(ast.unparse(b).endswith("Trainer") for b in c.bases)
        imported = any(self.facts.names.resolve(b) is not None for b in c.bases)
        if not steps or not imported or trains or "log" in methods or given & {"model", "inputs"}:
            return False
        calls = (n for n in walk(c, ast.Call) if isinstance(n.func, ast.Attribute))
        return any(_is_self(n.func, n.func.attr) and _logs(n, n.func.attr) for n in calls)  # type: ignore[attr-defined]

    def methods(self, c: ast.ClassDef) -> dict[str, Function]:
        return {s.name: s for s in c.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}

    def holder(self, f: ast.AST) -> ast.ClassDef | None:
        """The class that a function is a method of."""
        up = self.facts.scopes.parents.get(f)
        return up if isinstance(up, ast.ClassDef) else None

    def kin(self, c: ast.ClassDef) -> list[ast.ClassDef]:
        """The class, and those of this file that it derives from or that derive from it, or from the same."""
        found, pending = [c], [c]
        while pending:
            at = pending.pop()
            bases = {b.id for b in bases_of(at) if isinstance(b, ast.Name)}
            for d in self.facts.walk(ast.ClassDef):
                near = d.name in bases or any(isinstance(b, ast.Name) and b.id == at.name for b in bases_of(d))
                if near and d not in found:
                    found.append(d)
                    pending.append(d)
        return found

    def above(self, c: ast.ClassDef) -> list[ast.ClassDef]:
        """The class, and those of this file that it derives from, the nearest first."""
        found = [c]
        for at in found:
            bases = {b.id for b in bases_of(at) if isinstance(b, ast.Name)}
            found += [d for d in self.facts.walk(ast.ClassDef) if d.name in bases and d not in found]
        return found

    def method(self, c: ast.ClassDef, name: str) -> Function | None:
        """A method of a class, or of the nearest class of this file that it has it from."""
        return next((f for k in self.above(c) if (f := self.methods(k).get(name)) is not None), None)

    def layers(self, c: ast.ClassDef) -> dict[str, str]:
        """What `__init__` gives in any case of torch.nn: the class of each attribute."""
        init = self.methods(c).get("__init__")
        found: dict[str, str] = {}
        for s in init.body if init is not None else ():
            target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            if not (isinstance(target, ast.Attribute) and _is_self(target, target.attr)):
                continue
            full = self.facts.names.resolve(s.value.func) if isinstance(s.value, ast.Call) else None  # type: ignore[attr-defined]
            if full is not None and full.startswith("torch.nn.") and not full.startswith("torch.nn.functional."):
                found.setdefault(target.attr, full.rpartition(".")[2])
        return found

    def weight(self, c: ast.ClassDef | None) -> str | None:
        """The source of a parameter that every module of the class has: where that is, the module is."""
        for name, kind in self.layers(c).items() if c is not None else ():
            if kind == "Parameter":
                return f"self.{name}"
            if WEIGHTED.match(kind):
                return f"self.{name}.weight"
            if kind in ("LSTM", "GRU", "RNN"):
                return f"self.{name}.weight_ih_l0"
            if kind in ("LSTMCell", "GRUCell", "RNNCell"):
                return f"self.{name}.weight_ih"
        return None

    def callers(self, c: ast.ClassDef, name: str) -> set[str]:
        """The methods of a class that reach one of its methods: `self.name`, `super().name()`, `Base.name(self)`."""
        named = self.facts.attributes.get(name, ())
        asked: list[ast.AST] = [a for a in named if isinstance(a.ctx, ast.Load) and _is_self(a, name)]
        calls = self.facts.calls_of(name) if name != "forward" else self.facts.walk(ast.Call)
        asked += [call for call in calls if self._asks_above(call, name)]
        above = {up for n in asked for up in self.facts.scopes.ancestors(n)}
        return {method for method, f in self.methods(c).items() if f in above}

    def builds(self, c: ast.ClassDef, name: str) -> bool:
        """Whether a class's constructor runs a method, itself or through others."""
        seen, new = {name}, {name}
        while new:
            new = {caller for n in new for caller in self.callers(c, n)} - seen
            seen |= new
        return "__init__" in seen

    def sets_up(self, f: ast.AST) -> bool:
        """Whether it is the constructor of a class, or a method that gives nothing back and that it alone calls."""
        c, name = self.holder(f), getattr(f, "name", "")
        if c is None or name == "__init__":
            return c is not None
        asked = all(
            c in self.facts.scopes.ancestors(a) and _is_self(a, name) for a in self.facts.attributes.get(name, ())
        )
        silent = not any(n.value is not None for n in walk(f, ast.Return))
        return asked and silent and self.callers(c, name) == {"__init__"}

    def uses_of(self, f: ast.AST) -> list[ast.AST]:
        """The calls of a function, of a method those by `self` in its class, and names that are handed on as values."""
        c, name = self.holder(f), getattr(f, "name", "")
        if c is not None:
            own = [a for a in self.facts.attributes.get(name, ()) if _is_self(a, name)]
            return [self._used(a) for a in own if c in self.facts.scopes.ancestors(a)]
        if isinstance(f, ast.FunctionDef):
            return self.facts.devices.uses_of_function(f)
        name, scope = self.name_of(f), self.facts.scopes.scope_of(f)
        if not name or scope.is_class or len(scope.stores[name]) > 1:
            return [self._used(f)] if isinstance(f, ast.Lambda) else [f]  # (lambda x: x)(3)
        return [self._used(read) for read in self.facts.scopes.reads(name, scope)]

    def name_of(self, f: ast.AST) -> str:
        """What a function, or a lambda that is given a name, is called; nothing for any other lambda."""
        s = self.facts.scopes.parents.get(f)
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        return getattr(f, "name", "") or getattr(target, "id", "")

    def _used(self, read: ast.expr) -> ast.AST:
        up = self.facts.scopes.parents.get(read)
        return up if isinstance(up, ast.Call) and up.func is read else read

    def _asks_above(self, call: ast.Call, name: str) -> bool:
        func = call.func
        if name == "forward" and isinstance(func, ast.Name):
            return func.id == "self"
        if not (isinstance(func, ast.Attribute) and func.attr == name):
            return False
        if isinstance(func.value, ast.Call):
            return isinstance(func.value.func, ast.Name) and func.value.func.id == "super"
        named = isinstance(func.value, ast.Name) and any(c.name == func.value.id for c in self.modules)
        return named and bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == "self"


def _is_self(func: ast.expr, name: str) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and func.attr == name
        and isinstance(func.value, ast.Name)
        and func.value.id == "self"
    )


def _ends(bases: list[ast.expr], names: set[str]) -> bool:
    """Whether a base class goes by one of the names, of whatever package."""
    return any((b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "")) in names for b in bases)


def _logs(call: ast.Call, name: str) -> bool:
    return name == "log_dict" or (name == "log" and len(call.args) + len(call.keywords) > 1)
