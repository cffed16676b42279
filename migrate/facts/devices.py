"""What in a script stands for a device, and which calls only move things to one.

A value is a device when every way that it got its value is one: `torch.device(...)`, a literal such as "cuda:0",
a conditional of those, a name or a parameter that is only ever given those.
"""

from __future__ import annotations

import ast
import re

from .names import Names
from .scopes import Scope, Scopes

DEVICE_LITERAL = re.compile(r"(cuda|cpu|mps|xpu|hpu|xla|npu)(:\d+)?\Z")
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


class Devices:
    def __init__(self, tree: ast.Module, names: Names, scopes: Scopes) -> None:
        self.tree = tree
        self.names = names
        self.scopes = scopes
        self._known: dict[tuple[int, str], bool] = {}
        self._calls: dict[str, list[ast.Call]] | None = None

    # -- values -------------------------------------------------------------------------------------------------

    def is_device(self, node: ast.expr) -> bool:
        """Whether the expression can only be a device."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and DEVICE_LITERAL.match(node.value) is not None
        if isinstance(node, ast.Call):
            return self.names.resolve(node.func) in DEVICE_MAKERS
        if isinstance(node, ast.IfExp):
            return self.is_device(node.body) and self.is_device(node.orelse)
        if isinstance(node, ast.Name):
            return self._is_device_name(node)
        if isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            return isinstance(first, ast.Constant) and str(first.value).startswith("cuda:")
        return False

    def _is_device_name(self, node: ast.Name) -> bool:
        scope = self.scopes.scope_of(node).lookup(node.id)
        if scope is None:
            return False
        key = (id(scope), node.id)
        if key not in self._known:
            self._known[key] = False  # a name that is only ever given itself is nothing
            self._known[key] = self._all_values_are_devices(node.id, scope)
        return self._known[key]

    def _all_values_are_devices(self, name: str, scope: Scope) -> bool:
        values = self.assigned(name, scope)
        if values is None:
            return False
        if name in scope.params:
            given = self.given(scope, name)
            if given is None or (not given and name not in DEVICE_PARAMETERS):
                return False
            values = values + given
        elif not values:
            return False
        return all(self.is_device(v) for v in values)

    def assigned(self, name: str, scope: Scope) -> list[ast.expr] | None:
        """Every value that plain assignments give the name; None when something else binds it too."""
        values = []
        for store in scope.stores.get(name, ()):
            parent = self.scopes.parents.get(store)
            if isinstance(parent, ast.Assign) and store in parent.targets:
                values.append(parent.value)
            elif isinstance(parent, ast.AnnAssign) and parent.value is not None:
                values.append(parent.value)
            else:
                return None
        return values

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
        if scope.is_class or f.decorator_list:
            return [f]  # reached through instances or wrapped: nothing is known of its calls
        uses: list[ast.AST] = []
        for read in self.scopes.reads(f.name, scope):
            parent = self.scopes.parents.get(read)
            uses.append(parent if isinstance(parent, ast.Call) and parent.func is read else read)
        return uses

    # -- calls --------------------------------------------------------------------------------------------------

    def moved(self, call: ast.Call) -> ast.expr | None:
        """For `x.cuda(...)` and `x.to(device, ...)`, the x; None for any other call."""
        f = call.func
        if not isinstance(f, ast.Attribute) or self.names.resolve(f) is not None:
            return None
        if f.attr in ("cuda", "xpu", "mps"):
            return f.value if self._only_device_arguments(call) else None
        if f.attr == "to" and (call.args or call.keywords) and self.device_arguments(call):
            return f.value
        return None

    def device_arguments(self, call: ast.Call) -> list[ast.expr | ast.keyword]:
        """The arguments of a `.to(...)` that say where, not what: the device, and non_blocking with it."""
        found: list[ast.expr | ast.keyword] = []
        if call.args and self.is_device(call.args[0]):
            found.append(call.args[0])
        found += [k for k in call.keywords if k.arg == "device" and self.is_device(k.value)]
        if found:
            found += [k for k in call.keywords if k.arg == "non_blocking"]
        return found

    def _only_device_arguments(self, call: ast.Call) -> bool:
        return len(call.args) <= 2 and all(k.arg in ("device", "non_blocking") for k in call.keywords)


def default_of(f: ast.FunctionDef, name: str) -> ast.expr | None:
    a = f.args
    positional = [*a.posonlyargs, *a.args]
    for arg, default in zip(reversed(positional), reversed(a.defaults), strict=False):
        if arg.arg == name:
            return default
    for arg, kw_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if arg.arg == name:
            return kw_default
    return None


def argument(call: ast.Call, f: ast.FunctionDef, name: str) -> ast.expr | None:
    """The expression that a call passes for a parameter by position or keyword, None when it leaves the default."""
    positional = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
    if name in positional:
        i = positional.index(name)
        if i < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: i + 1]):
            return call.args[i]
    return next((k.value for k in call.keywords if k.arg == name), None)
