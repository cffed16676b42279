"""Methods of a script's own classes that are called as those which move tensors: `def to(self, currency)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from .arguments import argument, default_of, is_static
from .loops import MODEL_NAME
from .names import Names
from .nodes import walk, walk_own
from .own_batches import OwnBatches
from .scopes import Scope, Scopes

MOVERS = ("cuda", "xpu", "mps", "to")
OF_NETWORKS = ("parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "children", "zero_grad")
DEEP = 4  # names of names
# methods whose own work is to move what they get, or themselves
PLACING = (*MOVERS, "_apply", "transfer_batch_to_device")


class OwnMovers:
    """`assigned`: the values that plain assignments give a name of a scope."""

    def __init__(
        self,
        tree: ast.Module,
        names: Names,
        scopes: Scopes,
        assigned: Callable[[str, Scope], list[ast.expr] | None],
    ) -> None:
        self.tree, self.names, self.scopes, self.assigned = tree, names, scopes, assigned

    def holds(self, call: ast.Call) -> bool:
        """In a class's own `def to(self, device):`, which whoever places its objects calls, or a Trainer's hook; and in
        a function of this file that those have move for them.
        """
        return any(up in self._placing for up in self.scopes.ancestors(call) if isinstance(up, ast.FunctionDef))

    @cached_property
    def _placing(self) -> set[ast.FunctionDef]:
        functions = [f for f in self.scopes.by_node if isinstance(f, ast.FunctionDef)]
        methods = [f for f in functions if f.name in PLACING]
        found = [f for f in methods if isinstance(self.scopes.parents.get(f), ast.ClassDef)]
        for f in found:  # it grows
            read = {n.id for n in walk(f, ast.Name)}
            read |= {n.attr for n in walk(f, ast.Attribute) if getattr(n.value, "id", "") == "self"}
            found += [g for g in functions if g.name in read and g not in found and self._is_near(g, f)]
        return set(found)

    def _is_near(self, g: ast.FunctionDef, f: ast.FunctionDef) -> bool:
        """Whether one function may mean the other by its name: one of the file, or a method of the same class."""
        holder = self.scopes.parents.get(g)
        return isinstance(holder, ast.Module) or holder is self.scopes.parents.get(f)

    def has(self, f: ast.Attribute) -> bool:
        """Whether the receiver may be of a class of this file that is no module and has such a method of its own."""
        if not any(f.attr in own for own in self.movers.values()):
            return False
        if self.batches.has(f.value, f.attr):
            return True
        kinds = self.kinds(f.value)
        if not kinds and isinstance(f.value, ast.Call) and self._has_before(f.value):
            return True
        if not kinds and isinstance(self.scopes.parents.get(self.scopes.parents[f]), ast.Expr):
            return not self._may_be_module(f.value, 0)  # of a tensor alone, `x.cuda()` would be in vain
        return any(f.attr in self.movers.get(kind, ()) for kind in kinds)

    def _may_be_module(self, node: ast.expr, depth: int) -> bool:
        """Whether what an import gives, or a module's name, shows that an expression is nothing of this file's."""
        last = node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))
        if MODEL_NAME.search(last) or self.names.resolve(node) is not None or depth >= DEEP or self._works(node):
            return True
        if isinstance(node, ast.Call):
            if (self.names.resolve(node.func) or "").startswith("copy."):
                return any(self._may_be_module(a, depth + 1) for a in node.args)
            made = self.class_of(node)
            return made not in self.movers if made is not None else self._may_be_module(node.func, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._may_be_module(node.value, depth + 1)
        return any(self._may_be_module(v, depth + 1) for v in self._values(node, depth))

    def _works(self, node: ast.expr) -> bool:
        """Whether a name is called, or asked for what a network has: `student(x)`, `student.parameters()`."""
        home = self.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        for read in self.scopes.reads(node.id, home) if home is not None and isinstance(node, ast.Name) else ():
            up = self.scopes.parents.get(read)
            if isinstance(up, ast.Attribute) and up.attr in OF_NETWORKS:
                return True
            if isinstance(up, ast.Call) and up.func is read:
                return True
        return False

    def kinds(self, node: ast.expr, depth: int = 0) -> set[ast.ClassDef]:
        """The classes of this file of which an expression may be an object, by what callers give parameters, too."""
        made = self.class_of(node)
        if made is not None or depth >= DEEP:
            return {made} if made is not None else set()
        own = self._class_of_name(node)  # its own static method, or one of its class
        return (
            {own}
            if own is not None
            else {kind for value in self._values(node, depth) for kind in self.kinds(value, depth + 1)}
        )

    def _values(self, node: ast.expr, depth: int) -> list[ast.expr]:
        """What an expression may be, as far as it shows: by its names, its choices, what methods give."""
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            return [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        if isinstance(node, ast.NamedExpr):
            return [node.value]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holders = self.kinds(node.func.value, depth + 1)
            methods = [s for c in holders for s in c.body if getattr(s, "name", "") == node.func.attr]
            own = [n for f in methods if isinstance(f, ast.FunctionDef) for n in walk_own(f.body)]
            return [n.value for n in own if isinstance(n, ast.Return) and n.value is not None]
        if isinstance(node, ast.Name) and (home := self.scopes.scope_of(node).lookup(node.id)) is not None:
            return [*(self.assigned(node.id, home) or ()), *self._given(home, node.id)]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            holder = next((up for up in self.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
            kept = (n for n in walk(holder, ast.Attribute) if n.attr == node.attr) if holder else ()
            given = [self.scopes.parents.get(n) for n in kept if not isinstance(n.ctx, ast.Load)]
            return [s.value for s in given if isinstance(s, ast.Assign)]
        return []

    def _given(self, home: Scope, name: str) -> list[ast.expr]:
        """What callers of this file give a parameter, as far as they show: of a method those by its name."""
        f = home.node
        if not isinstance(f, ast.FunctionDef) or name not in home.params:
            return []
        holder = self.scopes.parents.get(f)
        bound = isinstance(holder, ast.ClassDef) and not is_static(f)
        called = holder.name if isinstance(holder, ast.ClassDef) and f.name == "__init__" else f.name
        calls = self.names.nodes.calls.get(called, ())
        given = [argument(call, f, name, bound) for call in calls]
        return [v for v in (*given, default_of(f, name)) if v is not None]

    def _has_before(self, call: ast.Call) -> bool:
        """`Money(1).to("eur").to("usd")`: what such a method gives is nothing that this can place."""
        return isinstance(call.func, ast.Attribute) and call.func.attr in MOVERS and self.has(call.func)

    @cached_property
    def batches(self) -> OwnBatches:
        return OwnBatches(self.names, self.scopes, self.assigned, self.class_of, self._given_by)

    @cached_property
    def movers(self) -> dict[ast.ClassDef, set[str]]:
        found = {}
        for c in self.scopes.by_node:
            if isinstance(c, ast.ClassDef):
                above = self.above(c)
                own = {s.name for d in above for s in d.body if isinstance(s, ast.FunctionDef)} & {*MOVERS}
                if own:
                    found[c] = own
        return found

    def above(self, c: ast.ClassDef) -> list[ast.ClassDef]:
        """A class and those of this file that it derives from; none where one is another library's, as modules are."""
        above: list[ast.ClassDef] = []
        while c not in above:
            if len(c.bases) > 1 or any(self.names.resolve(b) for b in c.bases):
                return []
            above.append(c)
            base = self._class_of_name(c.bases[0]) if c.bases else None
            if base is None:
                break
            c = base
        return above

    def _class_of_name(self, node: ast.expr) -> ast.ClassDef | None:
        """The class of this file that nothing else shares a name with."""
        home = self.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        if home is None or not isinstance(node, ast.Name) or node.id in home.params:
            return None
        stores = home.stores.get(node.id, [])
        return stores[0] if len(stores) == 1 and isinstance(stores[0], ast.ClassDef) else None

    def class_of(self, node: ast.expr, depth: int = 0) -> ast.ClassDef | None:
        """The class of this file that an expression makes an instance of, as far as it shows."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            home = self.scopes.scope_of(node.func).lookup(node.func.id)
            made = home.stores.get(node.func.id, []) if home is not None else []
            if len(made) == 1 and isinstance(made[0], ast.FunctionDef) and depth < 4:
                return self._given_by(made[0], depth)
            return made[0] if len(made) == 1 and isinstance(made[0], ast.ClassDef) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and depth < 4:
            holder = self.class_of(node.func.value, depth + 1)
            return holder if holder is not None and self._gives_itself(holder, node.func.attr) else None
        if isinstance(node, ast.Subscript) and depth < 4:
            return self._of_elements(node.value, depth + 1)
        if isinstance(node, ast.Name) and depth < 4:
            if (generator := self.scopes.generator_of(node)) is not None:
                return self._of_elements(generator.iter, depth + 1) if generator.target.__class__ is ast.Name else None
            home = self.scopes.scope_of(node).lookup(node.id)
            if home is None:
                return None
            loops = [self.scopes.parents.get(store) for store in home.stores.get(node.id, ())]
            if len(loops) == 1 and isinstance(loops[0], ast.For) and node.id not in home.params:
                return self._of_elements(loops[0].iter, depth + 1)
            if node.id == "self" and node.id in home.params:
                up = self.scopes.parents.get(home.node)
                return up if isinstance(up, ast.ClassDef) else None
            said = home.params[node.id].annotation if node.id in home.params else None
            if said is not None:
                return self._class_named(said)
            kinds = {self.class_of(v, depth + 1) for v in self.assigned(node.id, home) or []}
            return kinds.pop() if len(kinds) == 1 else None
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and depth < 4:
            holder = next((up for up in self.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
            stores = (n for n in walk(holder, ast.Attribute) if n.attr == node.attr) if holder else ()
            given = [self.scopes.parents.get(n) for n in stores if not isinstance(n.ctx, ast.Load)]
            kinds = {self.class_of(s.value, depth + 1) if isinstance(s, ast.Assign) else None for s in given}
            return kinds.pop() if len(kinds) == 1 else None
        return None

    def _given_by(self, f: ast.FunctionDef, depth: int) -> ast.ClassDef | None:
        """The class of all that a function returns."""
        kinds = {self.class_of(n.value, depth + 1) for n in walk_own(f.body) if isinstance(n, ast.Return) and n.value}
        return kinds.pop() if len(kinds) == 1 else None

    def _of_elements(self, node: ast.expr, depth: int) -> ast.ClassDef | None:
        """The class of all that a list or a dictionary holds, as it is written out."""
        if isinstance(node, ast.Name) and depth < 4:
            home = self.scopes.scope_of(node).lookup(node.id)
            held = {self._of_elements(v, depth + 1) for v in (self.assigned(node.id, home) or () if home else ())}
            return held.pop() if len(held) == 1 else None
        parts: list[ast.expr] = []
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.values
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            parts = [node.elt]
        elif isinstance(node, ast.DictComp):
            parts = [node.value]
        kinds = {self.class_of(part, depth + 1) for part in parts}
        return kinds.pop() if len(kinds) == 1 else None

    def _gives_itself(self, c: ast.ClassDef, method: str) -> bool:
        """`Robot().to(3)`, where `to` returns self."""
        functions = (s for d in self.above(c) or [c] for s in d.body if isinstance(s, ast.FunctionDef))
        own = next((f for f in functions if f.name == method), None)
        given = [n.value for n in walk_own(own.body) if isinstance(n, ast.Return)] if own is not None else []
        return bool(given) and all(isinstance(v, ast.Name) and v.id == "self" for v in given)

    def _class_named(self, said: ast.expr) -> ast.ClassDef | None:
        """The class of this file that an annotation names."""
        name = said.value if isinstance(said, ast.Constant) else getattr(said, "id", None)
        return next((c for c in self.movers if c.name == name), None)


def is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
