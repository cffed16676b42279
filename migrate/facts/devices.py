"""What in a script stands for a device, and which calls only move things to one.

A value is a device when every way that it got its value is one: `torch.device(...)`, a literal such as "cuda:0",
a conditional of those, a name or a parameter that is only ever given those.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import argument, default_of, entry
from .device_words import first_of, formats_device, is_index, is_none, starts_device
from .effects import Effects
from .hosts import DEVICE_LITERAL, Hosts
from .names import Names
from .nodes import LOOPS, walk
from .option_holders import OptionHolders
from .own_movers import MOVERS, OwnMovers, is_super
from .scopes import Scope, Scopes

if TYPE_CHECKING:
    from .other_files import Found

DEVICE_MAKERS = {
    "torch.device",
    "torch.accelerator.current_accelerator",
    "torch.cuda.current_device",
    "torch_xla.core.xla_model.xla_device",
}
AVAILABILITY = {
    "torch.cuda.is_available",
    "torch.accelerator.is_available",
    "torch.backends.mps.is_available",
    "torch.mps.is_available",
    "torch.xpu.is_available",
    "torch.cuda.device_count",
}
# `.to(x)` with a bare parameter of one of these names is a device even where no call shows what it is given
DEVICE_PARAMETERS = {"device", "dev", "cuda_device", "gpu_device"}
DEVICE_ATTRIBUTES = DEVICE_PARAMETERS | {"DEVICE"}
# names of a device in another file of the script
IMPORTED = {"device", "DEVICE"}
LIBRARIES = {"torch", "torchvision", "numpy", "jax", "tensorflow", "cupy", "accelerate", "pycuda", "usb"}
# an object keeps options under these: `self.args.device`; `self.params` are a module's
KEPT = re.compile(r"_?(args?|opts?|options|flags|cfgs?|conf|config|hparams|settings)\Z", re.IGNORECASE)

# what switches gradients on or off around a function, which stays the function that it is
SWITCHES = {f"torch.{of}{n}" for of in ("", "autograd.") for n in ("no_grad", "inference_mode", "enable_grad")}


class Devices:
    def __init__(
        self,
        tree: ast.Module,
        names: Names,
        scopes: Scopes,
        found_there: Callable[[ast.expr], Found | None],
        asked_for_cpu: Callable[[ast.expr], bool],
    ) -> None:
        self.tree = tree
        self.names = names
        self.scopes = scopes
        self.found_there = found_there  # what another file defines under a name
        self.asked_for_cpu = asked_for_cpu  # of a parameter that says where, by callers
        self._known: dict[tuple[int, str], bool] = {}
        self._asked: set[int] = set()
        self._returning: set[str] = set()
        self.hosts = Hosts(self)
        self.effects = Effects(self)
        self.options = OptionHolders(names, scopes)
        self.own_movers = OwnMovers(tree, names, scopes, self.assigned)

    # -- values -------------------------------------------------------------------------------------------------

    def is_device(self, node: ast.expr) -> bool:
        """Whether the expression can only be a device."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and DEVICE_LITERAL.match(node.value) is not None
        if isinstance(node, ast.Call):
            made = self.names.resolve(node.func) in DEVICE_MAKERS or formats_device(node)
            return made or self._returns_device(node) or self._is_device_got(node)
        if isinstance(node, ast.IfExp):
            return self.is_device(node.body) and self.is_device(node.orelse)
        if isinstance(node, ast.BoolOp):
            return all(self.is_device(v) for v in node.values)
        if isinstance(node, ast.Name):
            return self._is_device_name(node)
        if isinstance(node, ast.Attribute):
            return self._is_device_attribute(node)
        if isinstance(node, ast.Subscript):
            return self._is_device_entry(node)
        if isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            return isinstance(first, ast.Constant) and str(first.value).startswith("cuda:")
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):  # "cuda:%d" % i, "cuda:" + str(i)
            return starts_device(node.left)
        return False

    def _is_device_name(self, node: ast.Name) -> bool:
        if self._is_imported(node):
            return True
        scope = self.scopes.scope_of(node).lookup(node.id)
        if scope is None:
            return False
        key = (id(scope), node.id)
        if key not in self._known:
            self._known[key] = False  # a name that is only ever given itself is nothing
            self._known[key] = self._all_values_are_devices(node.id, scope)
        return self._known[key]

    def _all_values_are_devices(self, name: str, scope: Scope) -> bool:
        values = self.unpacked(name, scope)
        if values is None:
            return False
        values = [v for v in values if not is_none(v)]
        if name in scope.params:
            given = self.given(scope, name)
            if name in DEVICE_PARAMETERS:
                return all(self._may_be_device(v) for v in [*values, *(given or ())])
            if not given:
                return False
            values = values + given
        if name in DEVICE_PARAMETERS:  # `device = rank`, `device = get_device()`
            return bool(values) and all(self._may_be_device(v) for v in values)
        return bool(values) and all(self.is_device(v) for v in values)

    def _may_be_device(self, node: ast.expr) -> bool:
        """Not for what shows that it is something else: a dtype, a number with a point, a tensor made here."""
        if isinstance(node, ast.Constant):
            return node.value is None or type(node.value) is int or self.is_device(node)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            return all(self._may_be_device(p) for p in parts)
        if isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda, ast.ListComp, ast.DictComp)):
            return False
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            target = node.func if isinstance(node, ast.Call) else node
            full = self.names.resolve(target)
            return full is None or not full.startswith("torch.") or self.is_device(node)
        return True

    def _returns_device(self, call: ast.Call) -> bool:
        """`get_device()`, a function of this file, or of another, whose every return is a device."""
        f = self.function_of(call)
        if f is not None:
            return self.returns_device(f)
        there = self.found_there(call.func)
        return there is not None and isinstance(there[2], ast.FunctionDef) and there[1].devices.returns_device(there[2])

    def returns_device(self, f: ast.FunctionDef) -> bool:
        """Whether every return of a function is a device."""
        if f.name in self._returning:
            return False
        self._returning.add(f.name)
        try:
            found = [n.value for n in walk(f, ast.Return)]
            return bool(found) and all(v is not None and self.is_device(v) for v in found)
        finally:
            self._returning.discard(f.name)

    def _is_device_attribute(self, node: ast.Attribute) -> bool:
        """`args.device`, `self.device`: an option or an attribute that is only ever given devices."""
        if self._is_imported(node):
            return True
        if self.names.resolve(node):
            return False
        if not self._holds_options(node.value):
            return self._is_kept_device(node)
        values = self.attribute_values.get(node.attr)
        if values is None:
            return node.attr in DEVICE_ATTRIBUTES
        if id(node) in self._asked:
            return False
        self._asked.add(id(node))
        try:
            return all(
                self.is_device(v) or is_none(v) or (node.attr in DEVICE_ATTRIBUTES and self._may_be_device(v))
                for v in values
            )
        finally:
            self._asked.discard(id(node))

    def _is_kept_device(self, node: ast.Attribute) -> bool:
        """`self.manager.device`, of a class of this file that has it as a property or an attribute."""
        c = self.own_movers.class_of(node.value)
        if c is None or id(node) in self._asked:
            return False
        self._asked.add(id(node))
        try:
            own = next((s for s in c.body if isinstance(s, ast.FunctionDef) and s.name == node.attr), None)
            if own is not None:
                is_property = [ast.unparse(d) for d in own.decorator_list] in (["property"], ["cached_property"])
                return is_property and self.returns_device(own)
            stores = [a for a in walk(c, ast.Attribute) if a.attr == node.attr]
            made = [self.scopes.parents.get(a) for a in stores if not isinstance(a.ctx, ast.Load)]
            return bool(made) and all(isinstance(s, ast.Assign) and self.is_device(s.value) for s in made)
        finally:
            self._asked.discard(id(node))

    def _is_imported(self, node: ast.Name | ast.Attribute) -> bool:
        """`from config import DEVICE`, `settings.device` of an imported module: what a script's own file names so."""
        package, _, name = (self.names.resolve(node) or "").rpartition(".")
        return name in IMPORTED and bool(package) and package.partition(".")[0] not in LIBRARIES

    def _holds_options(self, node: ast.expr) -> bool:
        """`args`, `self`, and what options hold in their parts: `cfg.training`, `config["train"]`, `self.args`."""
        if isinstance(node, ast.Name):
            return self.options.has(node.id)
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and KEPT.match(node.attr):
                return True
            node = node.value
        return isinstance(node, ast.Name) and node.id not in ("self", "cls", "c") and self._holds_options(node)

    def _is_device_entry(self, node: ast.Subscript) -> bool:
        """`config["device"]`: an entry of a dictionary that is written down here, or of what holds the options."""
        return self._is_entry(node.value, node.slice)

    def _is_device_got(self, call: ast.Call) -> bool:
        """`config.get("device", "cpu")`, `getattr(args, "device", None)`, beside which nothing else is given."""
        f, args = call.func, call.args
        if not args or not all(is_none(a) or self.is_device(a) for a in args[2 if isinstance(f, ast.Name) else 1 :]):
            return False
        if isinstance(f, ast.Attribute):
            return f.attr == "get" and self._is_entry(f.value, args[0])
        key = getattr(args[1], "value", None) if isinstance(f, ast.Name) and f.id == "getattr" and args[1:] else None
        return key in DEVICE_ATTRIBUTES and self._holds_options(args[0])

    def _is_entry(self, holder: ast.expr, place: ast.expr) -> bool:
        key = getattr(place, "value", None)
        if not isinstance(key, str):
            return False
        if not isinstance(holder, ast.Name):
            return key in DEVICE_ATTRIBUTES and self._holds_options(holder)
        scope = self.scopes.scope_of(holder).lookup(holder.id)
        written = self.assigned(holder.id, scope) if scope is not None and holder.id not in scope.params else None
        entries = [entry(w, key) for w in written or ()]
        if not entries or None in entries:
            return key in DEVICE_ATTRIBUTES and self.options.has(holder.id)
        fits = self._may_be_device if key in DEVICE_ATTRIBUTES else self.is_device
        return all(fits(e) for e in entries if e is not None)

    @cached_property
    def attribute_values(self) -> dict[str, list[ast.expr]]:
        """What the file gives attributes of each name, by assignment: `self.net, self.x = net, x` too."""
        found: dict[str, list[ast.expr]] = {}
        nodes = self.names.nodes
        pairs = [(t, node.value) for node in nodes.of(ast.Assign) for t in node.targets]
        pairs += [(node.target, node.value) for node in nodes.of(ast.AnnAssign) if node.value is not None]
        for target, value in pairs:
            if isinstance(target, ast.Attribute):
                found.setdefault(target.attr, []).append(value)
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                parts = (*target.elts, *value.elts)
                if len(target.elts) == len(value.elts) and not any(isinstance(e, ast.Starred) for e in parts):
                    pairs += zip(target.elts, value.elts, strict=True)
        return found

    def assigned(self, name: str, scope: Scope) -> list[ast.expr] | None:
        """Every value that plain assignments give the name; None when something else binds it too."""
        values: list[ast.expr] = []
        for store in scope.stores.get(name, ()):
            if isinstance(store, ast.alias) and self._gives_way(name, scope):
                continue
            parent = self.scopes.parents.get(store)
            plain = isinstance(parent, ast.AnnAssign) or (isinstance(parent, ast.Assign) and store in parent.targets)
            plain = plain or self._is_asked(parent)
            if not plain or parent.value is None:  # type: ignore[union-attr]
                return None
            values.append(parent.value)  # type: ignore[union-attr]
        return values

    def _gives_way(self, name: str, scope: Scope) -> bool:
        """Whether a name is the object that its import was read for: `import model`, `model = model.Net()`."""
        given = [s for s in scope.stores[name] if not isinstance(s, ast.alias)]
        s = self.scopes.parents.get(given[0]) if len(given) == 1 else None
        made = s.value.func if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) else None
        while isinstance(made, ast.Attribute):
            made = made.value
        in_loop = s is None or any(isinstance(up, LOOPS) for up in self.scopes.ancestors(s))
        return isinstance(made, ast.Name) and made.id == name and not in_loop

    def _is_asked(self, node: ast.AST | None) -> bool:
        """`(device := get_device())` of a condition; one that is handed on keeps what it is handed to."""
        up = self.scopes.parents.get(node) if isinstance(node, ast.NamedExpr) else None
        return up is not None and not isinstance(up, (ast.Call, ast.keyword))

    def unpacked(self, name: str, scope: Scope) -> list[ast.expr] | None:
        """What assignments give the name, `rank, device = setup()` too; None when something else binds it."""
        values: list[ast.expr] = []
        for store in scope.stores.get(name, ()):
            s = target = self.scopes.parents.get(store)
            if isinstance(target, ast.Tuple):
                s = self.scopes.parents.get(target)
            if not isinstance(s, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or s.value is None:
                return None
            if isinstance(s, ast.NamedExpr) and not self._is_asked(s):
                return None
            values += self._element(target, store, s.value) if isinstance(target, ast.Tuple) else [s.value]
        return values

    def _element(self, target: ast.Tuple, store: ast.AST, value: ast.expr) -> list[ast.expr]:
        """What unpacking gives one of the targets; the value itself where it does not show its elements."""
        return self.elements(target, store, value) or [value]

    def elements(self, target: ast.Tuple, store: ast.AST, value: ast.expr) -> list[ast.expr] | None:
        """What unpacking a tuple, or what a function of this file gives, gives one of the targets, where it shows."""
        made = [value] if isinstance(value, ast.Tuple) else self.returned(value)
        shown = [m.elts for m in made if isinstance(m, ast.Tuple) and len(m.elts) == len(target.elts)]
        starred = any(isinstance(e, ast.Starred) for elts in (target.elts, *shown) for e in elts)
        if not shown or len(shown) < len(made) or starred:
            return None
        place = [e is store for e in target.elts].index(True)
        return [elts[place] for elts in shown]

    def returned(self, call: ast.expr) -> list[ast.expr]:
        """What a function of this file gives, where each of its returns gives something."""
        f = self.function_of(call)
        found = [n.value for n in walk(f, ast.Return)] if f is not None else []
        return [v for v in found if v is not None] if None not in found else []

    def function_of(self, call: ast.expr) -> ast.FunctionDef | None:
        """The function of this file that is called."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        home = self.scopes.scope_of(call.func).lookup(call.func.id)
        stores = home.stores.get(call.func.id, []) if home is not None else []
        return stores[0] if len(stores) == 1 and isinstance(stores[0], ast.FunctionDef) else None

    def given(self, scope: Scope, name: str) -> list[ast.expr] | None:
        """What callers in this file pass for a parameter (its default too); None when the function escapes."""
        f = scope.node
        if not isinstance(f, ast.FunctionDef):
            return None
        values = []
        default = default_of(f, name)
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            values.append(default)
        for use in self.uses_of_function(f):
            if not isinstance(use, ast.Call):
                return None
            value = argument(use, f, name)
            if value is not None:
                values.append(value)
        return values

    def uses_of_function(self, f: ast.FunctionDef) -> list[ast.AST]:
        """The calls of a plain function, and the bare names where it is handed on as a value."""
        scope = self.scopes.scope_of(f)
        if scope.is_class or not all(self._switches_gradients(d) for d in f.decorator_list):
            return [f]  # reached through instances or wrapped: nothing is known of its calls
        uses: list[ast.AST] = []
        for read in self.scopes.reads(f.name, scope):
            parent = self.scopes.parents.get(read)
            uses.append(parent if isinstance(parent, ast.Call) and parent.func is read else read)
        return uses

    def _switches_gradients(self, decorator: ast.expr) -> bool:
        """`@torch.no_grad()`: the function gets what its calls give it, and gives back what it returns."""
        return self.names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator) in SWITCHES

    # -- calls --------------------------------------------------------------------------------------------------

    def moved(self, call: ast.Call) -> ast.expr | None:
        """For `x.cuda(...)` and `x.to(device, ...)`, the x; None for any other call."""
        f = call.func
        if not isinstance(f, ast.Attribute) or f.attr not in MOVERS:
            return None
        if self.names.resolve(f) is not None or is_super(f.value):
            return None
        if self.own_movers.has(f) or self.own_movers.holds(call):
            return None
        if any(self.effects.has(a, shown=False) for a in (*call.args, *call.keywords)):
            return None  # `.to(setup(seed))` does more
        if f.attr in ("cuda", "xpu", "mps"):
            return f.value if self._only_device_arguments(call) else None
        where = [w.value if isinstance(w, ast.keyword) else w for w in self.device_arguments(call)]
        if where and not self.is_host(where[0]) and not self.asked_for_cpu(where[0]):
            return f.value
        return None

    def is_host(self, node: ast.expr) -> bool:
        """Whether the expression is the CPU, by a choice of the script's own too, and what is brought there wanted."""
        return self.hosts.is_host(node)

    def is_text(self, node: ast.expr) -> bool:
        """Whether a device may be given as a text or a number: "cuda:0", a rank, a name that is given those."""
        return bool(self.texts(node)) or any(is_index(v) for v in self._made_of(node, 0))

    def texts(self, node: ast.expr) -> list[str]:
        """The texts that a device may be; empty where it is none."""
        made = self._made_of(node, 0)
        return [str(v.value) for v in made if isinstance(v, ast.Constant) and isinstance(v.value, str)] + [
            ast.unparse(v) for v in made if isinstance(v, ast.JoinedStr)
        ]

    def _made_of(self, node: ast.expr, depth: int) -> list[ast.expr]:
        """What an expression may be, through choices and names."""
        if isinstance(node, ast.IfExp):
            return [*self._made_of(node.body, depth), *self._made_of(node.orelse, depth)]
        if isinstance(node, ast.Name) and depth < 6:
            scope = self.scopes.scope_of(node).lookup(node.id)
            values = (self.assigned(node.id, scope) or []) if scope is not None else []
            if scope is not None and node.id in scope.params:
                values = values + (self.given(scope, node.id) or [])
            return [m for v in values for m in self._made_of(v, depth + 1)]
        return [node]

    def device_arguments(self, call: ast.Call) -> list[ast.expr | ast.keyword]:
        """The arguments of a `.to(...)` that say where, not what: the device, and non_blocking with it."""
        found: list[ast.expr | ast.keyword] = []
        if call.args and self.says_where(call.args[0]):
            found.append(call.args[0])
        found += [k for k in call.keywords if k.arg == "device" and self.says_where(k.value)]
        if found:
            found += [k for k in call.keywords if k.arg == "non_blocking"]
        return found

    def says_where(self, node: ast.expr) -> bool:
        """Whether an argument of a call that places something is a device, or the number of one."""
        if isinstance(node, ast.IfExp):  # rank if args.gpu else "cpu"
            return self.says_where(node.body) and self.says_where(node.orelse)
        return self.is_device(node) or self.is_number(node)

    def is_number(self, node: ast.expr) -> bool:
        """A device's number by its name, which nothing shows to be a dtype or a tensor: `rank = torch.half`."""
        if not is_index(node):
            return False
        scope = self.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        if scope is None or not isinstance(node, ast.Name):
            return True
        values = [*(self.assigned(node.id, scope) or ()), *(self.given(scope, node.id) or ())]
        return all(is_index(v) or (self._may_be_device(v) and self._may_be_device(first_of(v))) for v in values)

    def _only_device_arguments(self, call: ast.Call) -> bool:
        return len(call.args) <= 2 and all(k.arg in ("device", "non_blocking") for k in call.keywords)
