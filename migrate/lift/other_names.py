"""Names that hold what a step changes: lists of parameters, one weight, an average that was made with the model.

    params = [p for p in net.parameters() if p.requires_grad]
    first = net[0]

What reads them below `backward()` sees gradients, and below `step()` other weights, though it does not name the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.tensor_methods import VIEW_METHODS, VIEWS
from .holders import OF_MODULES, module_attributes
from .nodes import local_function, returned

GROWS = {"append", "extend", "insert", "setdefault", "appendleft"}
OF_BUILTINS = {"add", "update"}  # of sets and dictionaries; meters have them, too
SETTINGS = {"lr", "initial_lr", "weight_decay", "momentum"}  # numbers of an optimizer's groups
# of a network, a tensor or a container: the same, a part of it, or what looks at it
PARTS = OF_MODULES | VIEWS | VIEW_METHODS
PARTS |= set("modules named_modules children named_children get_parameter get_submodule".split())
PARTS |= set("train eval items values keys get copy pop".split())
ASKS = {"device", "dtype", "shape", "ndim", "training", "requires_grad", "is_cuda"}
COPIES = set("item tolist numel nelement size dim clone sum mean norm std var abs max min any all type".split())
NUMBERS = set("len sum str repr print isinstance issubclass type int float bool hasattr id round any all".split())
COLLECTS = set("list tuple dict set zip filter map enumerate iter next reversed sorted getattr".split())
WRAPS = {"compile", "as_tensor", "asarray"} | VIEW_METHODS  # functions of torch that give no new tensor
Found = Iterator[ast.Name | ast.Attribute]


class Held:
    """Asks of names whether they may hold what one of the `changed` names stands for.

    `loop`: the one over the batches. What is computed in it is new; above it, what a method or a function of elsewhere
    gives may be anything of what it was given.
    """

    def __init__(self, facts: Facts, changed: set[str], loop: ast.AST, filled: Set[str] = frozenset()) -> None:
        """`filled`: attributes that hold what backward() leaves there."""
        self.facts, self.filled = facts, filled
        self.changed = changed
        self.modules = module_attributes(facts)
        self._inside = set(walk(loop))
        self._known: dict[object, bool] = {}
        self._open: set[ast.AST] = set()  # functions that are being looked into

    def holds(self, node: ast.AST) -> bool:
        """Whether a read of a name, or of an attribute of `self`, may give a part of it."""
        if isinstance(node, ast.Name):
            scope = self.facts.scopes.scope_of(node).lookup(node.id)
            if scope is None:
                return False
            return self._asked((scope, node.id), self._values(scope, node.id))
        if isinstance(node, ast.Attribute) and node.attr in self.filled:
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            stores = (a for a in self.facts.attributes.get(node.attr, ()) if isinstance(a.ctx, ast.Store))
            return self._asked(node.attr, (v for a in stores for v in _given(self.facts, a)))
        return False

    def _asked(self, key: object, values: Iterator[ast.expr]) -> bool:
        if key not in self._known:
            self._known[key] = False  # while it is looked for: what a name is made of itself holds nothing more
            self._known[key] = any(self._is_part(n) for v in values for n in self._held(v))
        return self._known[key]

    def _is_part(self, node: ast.Name | ast.Attribute) -> bool:
        base = node.id in self.changed if isinstance(node, ast.Name) else node.attr in self.modules
        return base or self.holds(node)

    def _values(self, scope: Scope, name: str) -> Iterator[ast.expr]:
        """What the name is given, is filled with, and what the calls of its function hand over."""
        parents = self.facts.scopes.parents
        inside = [s for s in scope.stores[name] if s in self._inside]  # `w *= 0.9` changes what it had from above
        again = all(not isinstance(parents.get(s), ast.AugAssign) for s in inside)
        stores = inside if inside and again else scope.stores[name]
        given = [v for s in stores for v in _given(self.facts, s)]
        yield from given
        grows = GROWS | OF_BUILTINS if any(map(_is_collection, given)) else GROWS
        for read in self.facts.scopes.reads(name, scope):
            up = parents.get(read)
            if isinstance(up, ast.Attribute) and up.attr in grows and isinstance(call := parents.get(up), ast.Call):
                yield from given_to(call) if call.func is up else ()
            elif isinstance(up, ast.Subscript) and up.value is read and isinstance(up.ctx, ast.Store):
                yield from _given(self.facts, up)
        if name in scope.params:
            yield from self.facts.devices.given(scope, name) or ()

    def _held(self, value: ast.AST | None) -> Found:
        """The names and attributes of `self` of which a value may hold a part, and not a number or a copy."""
        if isinstance(value, ast.Name):
            yield value
        elif isinstance(value, ast.Attribute):
            if isinstance(value.value, ast.Name) and value.value.id == "self":
                yield value
            elif value.attr not in ASKS:
                yield from self._held(value.value)
        elif isinstance(value, ast.Call):
            yield from self._of_call(value)
        elif isinstance(value, ast.Subscript):
            number = isinstance(value.slice, ast.Constant) and value.slice.value in SETTINGS
            yield from () if number else self._held(value.value)
        elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            parts = list(self._held(value.value if isinstance(value, ast.DictComp) else value.elt))
            yield from parts
            own = {n.id for g in value.generators for n in walk(g.target, ast.Name)}
            if any(isinstance(n, ast.Name) and n.id in own for n in parts):
                for g in value.generators:
                    yield from self._held(g.iter)
        elif isinstance(value, ast.Lambda):
            yield from (n for n in walk(value.body, ast.Name))
        elif isinstance(value, (ast.BinOp, ast.UnaryOp)) and value in self._inside:
            return
        elif not isinstance(value, ast.Compare | ast.JoinedStr | ast.Constant | None):
            for part in ast.iter_child_nodes(value):
                yield from self._held(part) if isinstance(part, ast.expr) else ()

    def _of_call(self, call: ast.Call) -> Found:
        f, full = call.func, self.facts.names.resolve(call.func)
        name = f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""
        if (full is None and name in (NUMBERS if isinstance(f, ast.Name) else COPIES)) or _is_new(full or ""):
            return
        inner = local_function(self.facts, f) if isinstance(f, ast.Name) else None
        if inner is not None:
            if inner not in self._open:  # one that calls itself gives what its other returns do
                self._open.add(inner)
                for value in returned(inner):
                    yield from self._held(value)
                self._open.discard(inner)
        elif call not in self._inside or name in (COLLECTS if isinstance(f, ast.Name) else PARTS):
            if isinstance(f, ast.Attribute) and full is None:
                yield from self._held(f.value)
            for given in given_to(call):
                yield from self._held(given)


def _is_collection(value: ast.expr) -> bool:
    called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    return isinstance(value, (ast.Dict, ast.Set)) or called in ("dict", "set", "OrderedDict", "defaultdict")


def _is_new(full: str) -> bool:
    """Whether a function gives a tensor of its own: `torch.norm`, but `torch.nn.DataParallel` and `torch.compile`."""
    module, _, last = full.rpartition(".")
    computes = module in ("torch", "torch.nn.functional", "torch.linalg", "numpy", "math") and last not in WRAPS
    return full == "copy.deepcopy" or (computes and last.islower())


def _given(facts: Facts, store: ast.AST) -> Iterator[ast.expr]:
    """What a target gets: all of the value where it is one of several that do not show."""
    node, up = store, facts.scopes.parents.get(store)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        node, up = up, facts.scopes.parents.get(up)
    if isinstance(up, (ast.For, ast.AsyncFor)):
        yield up.iter
    elif isinstance(up, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and up.value is not None:
        shown = (
            facts.devices.elements(node, store, up.value)
            if isinstance(node, ast.Tuple) and store in node.elts
            else None
        )
        yield from [up.value] if shown is None else shown
