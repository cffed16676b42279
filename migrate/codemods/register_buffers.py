"""T3: a tensor that a module keeps becomes a buffer, so that it moves with the module.

A buffer is in the state dict: a checkpoint from before does not have its key.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.nodes import children, walk
from ..facts.placed import LIKE, MAKES_TENSORS
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .place_like_inputs import TAKES_DEVICE
from .rewrites import set_keyword, unwrap

CHAIN = set(
    "float double half long int byte bool view reshape unsqueeze squeeze t expand repeat transpose permute".split()
)
CHAIN |= {
    "clone",
    "contiguous",
    "exp",
    "log",
    "sqrt",
    "cos",
    "sin",
    "pow",
    "type",
    "detach",
    "flatten",
    "masked_fill",
    "normal_",
    "uniform_",
    "fill_",
}
COMPUTES = {
    f"torch.{n}" for n in ("cat", "stack", "sin", "cos", "exp", "log", "sqrt", "tril", "triu", "pow", "meshgrid")
}


Given = ast.Assign | ast.AnnAssign


class RegisterBuffers(Codemod):
    code = "PTM105"
    name = "register-buffers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        self._asked: set[ast.AST] = set()
        for c in facts.classes.modules:
            init = facts.classes.methods(c).get("__init__")
            if init is not None:
                yield from self._class(facts, c, init)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _class(self, facts: Facts, c: ast.ClassDef, init: ast.AST) -> Iterator[Change]:
        given: dict[str, list[Given | None]] = {}
        for n in walk(c):
            if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and _is_self(n):
                up = facts.scopes.parents.get(n)
                if isinstance(up, ast.AugAssign):
                    continue  # a tensor stays one
                plain = isinstance(up, ast.Assign) and len(up.targets) == 1 and up.targets[0] is n
                plain = plain or (isinstance(up, ast.AnnAssign) and up.value is not None)
                given.setdefault(n.attr, []).append(up if plain else None)  # type: ignore[arg-type]
        known = set(facts.classes.methods(c)) | {
            t.id for s in c.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)
        }
        for s in _own_statements(init):
            if isinstance(s, ast.AnnAssign) and s.value is not None and _is_self(s.target):
                yield from self._assignment(facts, s, given, known, self._super_line(init))
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and _is_self(s.targets[0]):
                yield from self._assignment(facts, s, given, known, self._super_line(init))

    def _assignment(
        self, facts: Facts, s: Given, given: dict[str, list[Given | None]], known: set[str], after: int
    ) -> Iterator[Change]:
        target = s.target if isinstance(s, ast.AnnAssign) else s.targets[0]
        assert isinstance(target, ast.Attribute) and s.value is not None
        name = target.attr
        moved = facts.devices.moved(s.value) if isinstance(s.value, ast.Call) else None
        if not self._is_tensor(facts, s.value if moved is None else moved):
            if isinstance(s.value, ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.DictComp) and self._holds(
                facts, s.value
            ):
                self._tell(
                    facts, s, f"`self.{name}` holds tensors that do not move with the module: register each as a buffer"
                )
            return
        others = [a for a in given[name] if a is not s]
        fits = all(a is not None and a.value is not None and self._keeps_tensor(facts, a.value, name) for a in others)
        if not fits or name in known or s.lineno < after or name.startswith("__"):
            self._tell(
                facts, s, f"`self.{name}` is a tensor that does not move with the module, and is given other values too"
            )
            return
        for later in others:
            if later is not None and isinstance(later.value, ast.Call):
                yield from self._later(facts, later.value, name)
        says = f'`self.register_buffer("{name}", ...)`: it moves with the module; a new key in the state dict'
        yield Change(s, self.edit(facts, s, says), _registered(name))
        if moved is not None and len(s.value.args) + len(s.value.keywords) <= 1:  # type: ignore[attr-defined]
            says = f"`{facts.short(s.value)}`: a buffer is placed with its module"
            parts = (*s.value.args, *s.value.keywords)  # type: ignore[attr-defined]
            yield Change(s.value, self.edit(facts, s.value, says), unwrap, parts)

    def _later(self, facts: Facts, call: ast.Call, name: str) -> Iterator[Change]:
        """`self.total = torch.zeros(3)` in another method: where the buffer is."""
        says_where = any(k.arg in ("device", "out", "generator", None) for k in call.keywords)
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        if facts.names.resolve(call.func) in TAKES_DEVICE and not says_where and not starred:
            says = f"`{facts.short(call)}` is made where the buffer is: `device=self.{name}.device`"
            yield Change(call, self.edit(facts, call, says), set_keyword("device", f"self.{name}.device"))

    def _tell(self, facts: Facts, s: ast.stmt, says: str) -> None:
        line, column, _, _ = facts.text.key(s)
        self.left.append(Note(line, column + 1, self.code, says))

    def _super_line(self, init: ast.AST) -> int:
        """Buffers can be registered after `super().__init__()` only."""
        lines = [
            n.lineno
            for n in walk(init)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "__init__"
        ]
        return min(lines, default=10**9)

    def _is_tensor(self, facts: Facts, value: ast.expr) -> bool:
        if not isinstance(value, ast.Call):
            return False
        full = facts.names.resolve(value.func)
        if full is None and self._returns_tensor(facts, value):
            return True
        if full is None:
            return (
                isinstance(value.func, ast.Attribute)
                and value.func.attr in CHAIN
                and self._is_tensor(facts, value.func.value)
            )
        if any(k.arg in ("requires_grad", "out") for k in value.keywords) or full == "torch.load":
            return False
        if full in COMPUTES and full != "torch.meshgrid":
            first = value.args[0] if value.args else None
            parts = first.elts if isinstance(first, ast.Tuple | ast.List) else [first]
            return bool(parts) and all(p is not None and self._is_tensor(facts, p) for p in parts)
        return full in MAKES_TENSORS or full in LIKE

    def _returns_tensor(self, facts: Facts, call: ast.Call) -> bool:
        """`self._make_positions(n)`: a method or function of the file whose every result is a tensor."""
        f: ast.AST | None = None
        if _is_self(call.func):
            holder = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
            f = facts.classes.methods(holder).get(call.func.attr) if holder is not None else None  # type: ignore[attr-defined]
        elif isinstance(call.func, ast.Name):
            home = facts.scopes.scope_of(call.func).lookup(call.func.id)
            made = home.stores.get(call.func.id, []) if home is not None else []
            f = made[0] if len(made) == 1 else None
        if not isinstance(f, ast.FunctionDef) or f in self._asked:
            return False
        self._asked.add(f)
        try:
            found = [n.value for n in ast.walk(f) if isinstance(n, ast.Return)]
            return bool(found) and all(v is not None and self._gives_tensor(facts, v) for v in found)
        finally:
            self._asked.discard(f)

    def _gives_tensor(self, facts: Facts, value: ast.expr) -> bool:
        if not isinstance(value, ast.Name):
            return self._is_tensor(facts, value)
        scope = facts.scopes.scope_of(value).lookup(value.id)
        if scope is None or value.id in scope.params:
            return False
        given = facts.devices.assigned(value.id, scope) or []
        own = [v for v in given if not any(isinstance(n, ast.Name) and n.id == value.id for n in ast.walk(v))]
        return bool(own) and all(self._is_tensor(facts, v) for v in own)

    def _keeps_tensor(self, facts: Facts, value: ast.expr, name: str) -> bool:
        """A later value that a buffer takes: None, a tensor made here, or one computed from itself."""
        if isinstance(value, ast.Constant):
            return value.value is None
        if isinstance(value, ast.BinOp):
            return any(isinstance(n, ast.Attribute) and n.attr == name and _is_self(n) for n in walk(value))
        if isinstance(value, ast.Call) and facts.devices.moved(value) is not None:
            return True
        return self._is_tensor(facts, value)

    def _holds(self, facts: Facts, value: ast.expr) -> bool:
        return any(
            isinstance(n, ast.Call) and facts.names.resolve(n.func) in MAKES_TENSORS and not _in_call(facts, n, value)
            for n in walk(value)
        )


def _in_call(facts: Facts, node: ast.AST, top: ast.AST) -> bool:
    """Whether another call takes it: `[nn.Parameter(torch.zeros(3))]`."""
    for up in facts.scopes.ancestors(node):
        if up is top:
            return False
        if isinstance(up, ast.Call):
            return True
    return False


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _own_statements(function: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function at any depth, not those of functions in it."""
    for child in children(function):
        if isinstance(child, ast.stmt) and not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield child
            yield from _own_statements(child)


def _registered(name: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        value = updated.value
        call = cst.Call(
            cst.Attribute(cst.Name("self"), cst.Name("register_buffer")),
            [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(value)],
        )
        return cst.Expr(call, semicolon=updated.semicolon)

    return rewrite
