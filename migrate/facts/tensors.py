"""Which expressions are tensors that the script makes itself, from numbers: nobody but the script moves those.

What shows it is where a value comes from: a function of torch that makes tensors, and what is computed from such a one.
What comes in as a parameter, from a loader or from a module is none of them.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import argument_at, entry, given_to
from .back_from_cpu import goes_to_cpu
from .filled_lists import Filled
from .held import is_tokenized
from .kept_made import KeptMade
from .loops import MODEL_NAME
from .nodes import walk
from .placed import LIKE, MAKES_TENSORS
from .several import ALWAYS_SEVERAL, taken_apart
from .tensor_methods import FUNCTIONS, METHODS, ONE_WITHOUT_ARGUMENTS, VIEWS

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

MAKES = MAKES_TENSORS - {"torch.load"}
MAKES |= {f"torch.{n}_window" for n in ("hann", "hamming", "blackman", "bartlett", "kaiser")}
MAKES |= {"torch.tril_indices", "torch.triu_indices", "torch.combinations", "torch.cartesian_prod"}
MAKES |= {"torch.fft.fftfreq", "torch.fft.rfftfreq"}
OF_TENSORS = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
PADS = ("torch.nn.utils.rnn.pad_sequence",)
# where their values are
SPARSE = {f"torch.sparse.{kind}Tensor" for kind in ("Float", "Double", "Half", "Long", "Int")}
SPARSE |= {f"torch.sparse_{kind}_tensor" for kind in ("coo", "csr", "csc", "bsr", "bsc", "compressed")}


class Tensors:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._asked: set[object] = set()
        self._cuts = 0  # how often a value was asked for while it was being found
        self._known: dict[tuple[ast.AST, bool, int], bool] = {}
        self.filled = Filled(facts)
        self._kept_made = KeptMade(facts)
        self._known_filled: dict[tuple[Scope, str], bool] = {}

    def made(self, node: ast.AST | None) -> bool:
        """Whether an expression is a tensor made here, or is computed from one; `torch.load` counts to these."""
        return self._is(node, False)

    def is_tensor(self, node: ast.AST | None) -> bool:
        """Whether an expression is one tensor without a history: what a buffer can hold."""
        return self._is(node, True)

    def _is(self, node: ast.AST | None, kept: bool) -> bool:
        if not isinstance(node, (ast.Call, ast.Name, ast.Attribute)):
            return self._shows(node, kept)
        key, cuts = (node, kept, len(self.facts.buffers)), self._cuts
        if key not in self._known:
            found = self._shows(node, kept)
            if self._cuts != cuts:
                return found  # which may be another when it is asked by itself
            self._known[key] = found
        return self._known[key]

    @cached_property
    def _optimized(self) -> list[ast.expr]:
        """What an optimizer is given by itself."""
        names = [full for full in self.facts.called if full.startswith("torch.optim.")]
        made = [c for full in names for c in self.facts.called[full] if c.args]
        return [e for c in made for n in walk(c.args[0]) if isinstance(n, (ast.List, ast.Tuple)) for e in n.elts]

    def is_optimized(self, node: ast.AST) -> bool:
        """Whether what a statement makes in its last call is an optimizer's: `x = img.to(device).requires_grad_()`."""
        up = self.facts.scopes.parents.get(node)
        while isinstance(up, (ast.Attribute, ast.Call)):
            up = self.facts.scopes.parents.get(up)
        targets = up.targets if isinstance(up, ast.Assign) else ()
        names = {t.id for t in targets if isinstance(t, ast.Name)}
        return bool(names) and any(isinstance(e, ast.Name) and e.id in names for e in self._optimized)

    @cached_property
    def learned(self) -> set[str]:
        """The names and attributes of what is to have gradients: `x.requires_grad = True`, `x.requires_grad_()`, and
        what an optimizer is given by itself: `Adam([self.delta])`.
        """
        told: list[ast.expr | None] = list(self._optimized)
        for a in (a for m in ("requires_grad", "requires_grad_") for a in self.facts.attributes.get(m, ())):
            up = self.facts.scopes.parents.get(a)
            if isinstance(up, ast.Call) and up.func is a:
                value = argument_at(up, "requires_grad", 0)
                told.append(a.value if value is None or not _is_false(value) else None)
            elif isinstance(up, ast.Assign) and not _is_false(up.value):
                told.append(a.value)
        own = [t for t in told if not isinstance(t, ast.Attribute) or not isinstance(t.value, ast.Attribute)]
        return {
            t.attr if isinstance(t, ast.Attribute) else t.id for t in own if isinstance(t, (ast.Attribute, ast.Name))
        }

    def _again(self, key: object) -> bool:
        again = key in self._asked
        self._cuts += again
        return again

    def _shows(self, node: ast.AST | None, kept: bool) -> bool:
        if isinstance(node, ast.Call):
            return self._call(node, kept)
        if isinstance(node, ast.BinOp):
            return self._is(node.left, kept) or self._is(node.right, kept)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._is(node.operand, kept)
        if isinstance(node, ast.Compare):
            asks = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
            return not asks and any(self._is(n, kept) for n in (node.left, *node.comparators))
        if isinstance(node, ast.Subscript):
            of = taken_apart(self.facts, node.value)  # x.chunk(2)[0], x.max(1)[0]
            return self._is(of or node.value, kept) or (not kept and self._kept_made.under_key(node))
        if isinstance(node, ast.IfExp):
            sides = [e for e in (node.body, node.orelse) if kept or not _is_none(e)]
            return bool(sides) and all(self._is(e, kept) for e in sides)
        if isinstance(node, ast.NamedExpr):
            return self._is(node.value, kept)
        if isinstance(node, ast.Name):
            return self._name(node, kept)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, kept)
        return False

    def _call(self, call: ast.Call, kept: bool) -> bool:
        if any(k.arg == "out" or self._asks_for_gradients(k) for k in call.keywords):
            return False
        full = self.facts.names.resolve(call.func)
        if full is not None:
            return self._function(call, full, kept)
        f = call.func
        if not kept and (is_tokenized(call) or self._is_brought_to_cpu(call)):
            return True
        result = self._results(call, kept)
        if result is not None:
            return bool(result) and all(self._is(r, kept) for r in result)
        if not isinstance(f, ast.Attribute):
            return False
        one = f.attr in METHODS or (f.attr in ONE_WITHOUT_ARGUMENTS and not call.args and not call.keywords)
        return one and self._is(f.value, kept)

    def _is_brought_to_cpu(self, call: ast.Call) -> bool:
        """`x.cpu()` of what is no module: nobody but the script moves it back."""
        if not goes_to_cpu(self.facts, call):
            return False
        of = call.func.value  # type: ignore[attr-defined]
        if isinstance(of, ast.Name):
            scope = self.facts.scopes.scope_of(of).lookup(of.id)
            return scope is None or not self.facts.placed.used_as_module(of.id, scope)
        return not (isinstance(of, ast.Attribute) and MODEL_NAME.search(of.attr))

    def is_leaf(self, node: ast.AST | None) -> bool:
        """`torch.randn(3, requires_grad=True)`, which an optimizer may change."""
        made = isinstance(node, ast.Call) and self.facts.names.resolve(node.func) in MAKES
        return made and any(map(self._asks_for_gradients, node.keywords))  # type: ignore[union-attr]

    def _asks_for_gradients(self, k: ast.keyword) -> bool:
        """`requires_grad=True`, by itself or in a dictionary that is written down: `**where`."""
        if k.arg == "requires_grad":
            return not _is_false(k.value)
        if k.arg is not None or not isinstance(k.value, ast.Name):
            return False
        home = self.facts.scopes.scope_of(k.value).lookup(k.value.id)
        written = (self.facts.devices.assigned(k.value.id, home) or []) if home is not None else []
        asked = [entry(w, "requires_grad") for w in written]
        return any(a is not None and not _is_false(a) for a in asked)

    def _function(self, call: ast.Call, full: str, kept: bool) -> bool:
        if full in MAKES or (kept and full.endswith("Tensor") and full.replace("torch.cuda.", "torch.") in MAKES):
            return True
        if full == "torch.autograd.Variable" and len(call.args) == 1:
            return self._is(call.args[0], kept)  # a tensor is its own Variable
        if full == "torch.load":
            return not kept
        if kept and full in LIKE:
            return True
        if full in SPARSE:  # no buffer: DDP broadcasts dense ones alone
            return not kept and any(self._is(a, kept) for a in given_to(call))
        *package, name = full.split(".")
        if package == ["torch", "nn", "init"]:  # nn.init.xavier_uniform_(torch.empty(3, 4)) gives that
            return bool(call.args) and self._is(call.args[0], kept)
        one = name in FUNCTIONS or full in LIKE or name in ("max", "min") or package == ["torch", "special"]
        if not (one and ".".join(package) in OF_TENSORS) and full not in PADS:
            return False
        if name in ("max", "min") and (len(call.args) != 1 or call.keywords):
            return False
        values: list[ast.expr] = []
        for a in given_to(call):
            if isinstance(a, ast.Call) and getattr(a.func, "id", "") in ("tuple", "list") and len(a.args) == 1:
                a = a.args[0]
            part = a.elt if isinstance(a, (ast.ListComp, ast.GeneratorExp)) else a
            values += a.elts if isinstance(a, (ast.Tuple, ast.List)) else [part]
        return any(self._is(of if (of := self._of_several(v)) is not None else v, kept) for v in values)

    def _of_several(self, value: ast.expr) -> ast.expr | None:
        """What `torch.stack(torch.meshgrid(rows, columns))` is of, by a name, too; None for any other value."""
        value = value.value if isinstance(value, ast.Starred) else value
        if isinstance(value, ast.Name):
            home = self.facts.scopes.scope_of(value).lookup(value.id)
            made = (self.facts.devices.assigned(value.id, home) or []) if home is not None else []
            value = made[0] if len(made) == 1 else value
        package = (self.facts.names.resolve(value.func) or "") if isinstance(value, ast.Call) else ""
        name = package.rpartition(".")[2] or getattr(getattr(value, "func", None), "attr", "")
        return taken_apart(self.facts, value) if name in ALWAYS_SEVERAL else None

    def _results(self, call: ast.Call, kept: bool) -> list[ast.expr] | None:
        """What a method or function of the file gives back; None where it is not one, or does not show."""
        f: ast.AST | None = None
        if _is_self(call.func):
            holder = next((u for u in self.facts.scopes.ancestors(call) if isinstance(u, ast.ClassDef)), None)
            f = self.facts.classes.methods(holder).get(call.func.attr) if holder is not None else None  # type: ignore[attr-defined]
        elif isinstance(call.func, ast.Name):
            home = self.facts.scopes.scope_of(call.func).lookup(call.func.id)
            made = home.stores.get(call.func.id, []) if home is not None else []
            f = made[0] if len(made) == 1 else None
            bound = self.facts.scopes.parents.get(f) if isinstance(f, ast.Name) else None
            f = bound.value if isinstance(bound, ast.Assign) and isinstance(bound.value, ast.Lambda) else f
        if isinstance(f, ast.Lambda):
            return [f.body]
        if not isinstance(f, ast.FunctionDef) or self._again(f) or walk(f, ast.Yield):
            return None
        self._asked.add(f)
        try:
            own = self.facts.scopes.by_node[f]
            returns = [n for n in walk(f, ast.Return) if self.facts.scopes.scope_of(n) is own]
            if not returns or not all(r.value is not None for r in returns):
                return None
            given = [r.value for r in returns if r.value is not None]
            # or nothing, for which its callers look; a buffer is never nothing
            known = given if kept else [v for v in given if not _is_none(v)] or given
            return known if all(self._is(v, False) for v in known) else None
        finally:
            self._asked.discard(f)

    def _name(self, node: ast.Name, kept: bool) -> bool:
        generator = self.facts.scopes.generator_of(node)
        if generator is not None:
            held = self._kept_made.drawn(generator, _bound(generator.target, node.id)) if not kept else None
            if held is not None:
                return self._is(held, kept)
            rows = getattr(generator.iter, "elts", [generator.iter])
            single = isinstance(generator.target, ast.Name)
            return single and bool(rows) and all(self._is(r, kept) for r in rows)
        scope = self.facts.scopes.scope_of(node).lookup(node.id)
        if scope is None:
            return False
        key = (node, kept)
        if self._again(key):
            return True  # computed from itself: what it began as decides
        if kept and node.id in self.learned:
            return False
        values = self.reaching(node, scope)
        self._asked.add(key)
        try:
            if not kept and self._is_filled(node.id, scope):
                return True
            return bool(values) and all(v is not None and self._is(v, kept) for v in values or ())
        finally:
            self._asked.discard(key)

    def _is_filled(self, name: str, scope: Scope) -> bool:
        """Whether a name is of a list or a dictionary that is filled with tensors made here."""
        held = self.filled.held(name, scope)
        key, cuts, asked = (scope, name), self._cuts, self._asked
        if held is None or key in self._known_filled:
            return held is not None and self._known_filled[key]
        around = {k for k in asked if isinstance(k, tuple) and k[0].__class__ is scope.__class__}
        if self._again(key) or len(around) > 3:
            self._cuts += 1
            return False  # one that holds what is taken of itself says nothing
        self._asked = {*around, key}  # a value that is asked for again here is not computed from itself
        try:
            found = any(self._is(e, False) for e in held.elements)
            found = found and (held.in_part or all(self._is(e, False) for e in held.elements))
        finally:
            self._asked = asked
        if self._cuts == cuts:
            self._known_filled[key] = found
        return found

    def reaching(self, node: ast.Name, scope: Scope) -> list[ast.expr | None] | None:
        """The values that a name may have where it is read; None among them for what does not show."""
        parents = self.facts.scopes.parents
        stores = [s for s in scope.stores.get(node.id, ()) if not isinstance(parents.get(s), ast.AugAssign)]
        if not stores:
            return None
        above = list(self.facts.scopes.ancestors(node))
        here = next((u for u in above if isinstance(u, ast.stmt)), None)
        around = [u for u in above if isinstance(u, (ast.For, ast.While, ast.AsyncFor))]
        last: ast.stmt | None = None
        for s in stores:
            statement = self.facts.scopes.statement_of(s)
            before = statement is not here and statement.lineno <= node.lineno
            if before and isinstance(statement, (ast.Assign, ast.AnnAssign)) and self.governs(statement, above):
                last = statement if last is None or statement.lineno >= last.lineno else last
        if last is None and node.id in scope.params:
            return None
        found: list[ast.expr | None] = []
        sure = self._above(last)
        for s in stores:
            statement = self.facts.scopes.statement_of(s)
            holders = self._above(statement) if around else set()
            again = any(loop in holders and loop not in sure for loop in around)
            between = last is None or (statement is not here and last.lineno <= statement.lineno <= node.lineno)
            if again or between:
                found.append(self._value(s))
        if last is None and all(v is not None and _reads(v, node.id) for v in found):
            return None  # nothing shows what it began as
        return found

    def _above(self, node: ast.AST | None) -> set[ast.AST]:
        """A node and what holds it."""
        return set() if node is None else {node, *self.facts.scopes.ancestors(node)}

    def governs(self, statement: ast.stmt, above: list[ast.AST]) -> bool:
        """Whether a statement has run wherever what is below these nodes runs."""
        return any(s in above for s in self.facts.scopes.block_of(statement))

    def _value(self, store: ast.AST) -> ast.expr | None:
        up = self.facts.scopes.parents.get(store)
        if isinstance(up, ast.Assign) and store in up.targets:
            return up.value
        if isinstance(up, (ast.AnnAssign, ast.NamedExpr)):
            return up.value
        loop = (
            up if isinstance(up, ast.For) else self.facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else None
        )
        if isinstance(loop, (ast.For, ast.AsyncFor)):
            return self._kept_made.drawn(loop, store)
        outer = self.facts.scopes.parents.get(up) if isinstance(up, ast.Tuple) else None
        if isinstance(outer, ast.Assign) and isinstance(outer.value, ast.Attribute) and up in outer.targets:
            return outer.value  # first, second = self.pair
        if isinstance(outer, ast.Assign) and up in outer.targets and (of := taken_apart(self.facts, outer.value)):
            return of  # x, y = torch.meshgrid(rows, columns)
        if isinstance(outer, ast.Assign) and isinstance(outer.value, ast.Tuple) and up in outer.targets:
            assert isinstance(up, ast.Tuple)
            pairs = zip(up.elts, outer.value.elts, strict=False)
            return next((v for t, v in pairs if t is store), None) if len(up.elts) == len(outer.value.elts) else None
        return None

    def _attribute(self, node: ast.Attribute, kept: bool) -> bool:
        if node.attr in VIEWS and not _is_self(node):
            return self._is(node.value, kept)
        if node.attr in ("values", "indices") and (of := taken_apart(self.facts, node.value)) is not None:
            return self._is(of, kept)  # x.sort().values
        holder = next((u for u in self.facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)
        if not _is_self(node) or holder is None:
            return not kept and self._of_class(node)
        holder = self._giver(holder, node.attr)
        key = (holder, node.attr, kept)
        if self._again(key):
            return False
        self._asked.add(key)
        try:
            if node.attr in self.registered(holder) or (holder, node.attr) in self.facts.buffers:
                return kept  # the module moves it
            values = self.facts.devices.attribute_values.get(node.attr, ())
            own = [v for v in values if holder in self.facts.scopes.ancestors(v)]
            own = [v for v in own if not (isinstance(v, ast.Constant) and v.value is None)]
            moved = [v for v in own if not any(n.attr == node.attr for n in walk(v, ast.Attribute))]
            if not kept and any(self._makes(v) for v in own if v not in moved):
                return True  # self.x = torch.from_numpy(self.x): of the array that it was
            if not kept and (
                self._kept_made.in_attribute(holder, node.attr, own) or (not own and self._of_class(node))
            ):
                return True
            return bool(moved) and all(self._is(v, kept) for v in moved)
        finally:
            self._asked.discard(key)

    def _giver(self, holder: ast.ClassDef, name: str) -> ast.ClassDef:
        """The class of this file that gives an attribute its value: that which reads it, or the nearest above it."""
        values = self.facts.devices.attribute_values.get(name, ())
        for c in self.facts.classes.above(holder):
            known = (c, name) in self.facts.buffers or name in self.registered(c)
            if known or any(c in self.facts.scopes.ancestors(v) for v in values):
                return c
        return holder

    def keeps_made(self, loop: ast.For | ast.AsyncFor | ast.comprehension, store: ast.AST) -> bool:
        """Whether a loop goes through tensors made here that an attribute holds."""
        held = self._kept_made.drawn(loop, store)
        return held is not None and self.made(held)

    def _of_class(self, node: ast.Attribute) -> bool:
        """`Net.COLORS`, `self.COLORS`, which the body of a class gives a tensor, or several."""
        given = self._kept_made.of_class(node)
        return any(self._is(v, False) for v in given) or self._kept_made.written(given)

    def _makes(self, value: ast.expr) -> bool:
        """`torch.from_numpy(x).float()`: a tensor, whatever it is made of."""
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in METHODS:
            value = value.func.value
        return isinstance(value, ast.Call) and self.facts.names.resolve(value.func) in MAKES

    def registered(self, holder: ast.ClassDef) -> set[object]:
        """The names of the buffers that a class registers."""
        scopes = self.facts.scopes
        made = [a for a in self.facts.attributes.get("register_buffer", ()) if _is_self(a)]
        calls = [c for a in made if isinstance(c := scopes.parents[a], ast.Call) and c.func is a and c.args]
        return {c.args[0].value for c in calls if isinstance(c.args[0], ast.Constant) and holder in scopes.ancestors(c)}


def _bound(target: ast.expr, name: str) -> ast.AST:
    """The name in a target that binds it."""
    return next((n for n in walk(target, ast.Name) if n.id == name), target)


def _reads(value: ast.expr, name: str) -> bool:
    return any(n.id == name for n in walk(value, ast.Name))


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
