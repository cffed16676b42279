"""Which expressions only ask, so that they may be left out, and which calls do more than give a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from .names import Names
from .nodes import walk

if TYPE_CHECKING:
    from .devices import Devices
    from .script import Facts

ASKS = re.compile(r"(is_|get_|has)")
BUILTINS = {"isinstance", "hasattr", "getattr", "len", "int", "float", "bool", "str", "min", "max", "type"}
# builtins and methods that change nothing either
PLAIN = BUILTINS | set("list tuple set dict range zip enumerate sorted sum any all abs round repr".split())
LOOKS = set(
    "split rsplit partition rpartition strip lstrip rstrip startswith endswith lower upper replace format join isdigit "
    "isnumeric get keys values items count index find".split()
)
ASKED = (
    "torch.device", "torch.accelerator.", "torch.distributed.", "torch.version.", "torch_xla.core.xla_model.xla_device",
    "os.environ.get", "os.getenv", "os.path.", "platform.",
)  # fmt: skip
SEEDS = re.compile(r"seed|rng")
OF_CARDS = ("torch.cuda.", "torch.backends.", "torch.mps.", "torch.xpu.")
SHOWS = {"print", "info", "debug", "warning", "warn"}
CHANGES = ast.Await | ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal | ast.Delete


def only_asks(names: Names, node: ast.AST) -> bool:
    """No call in it but of torch's own questions and builtins without effect."""
    for n in walk(node):
        if isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(n, ast.Call):
            if isinstance(n.func, ast.Name) and n.func.id in BUILTINS:
                continue
            full = names.resolve(n.func) or ""
            last = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            if not full.startswith(("torch.distributed.", "torch.cuda.", "torch.device", "os.environ", "os.getenv")):
                if not ASKS.match(last):
                    return False
            elif full.startswith("torch.distributed.") and not ASKS.match(last):
                return False
    return True


def asks_alone(facts: Facts, node: ast.AST) -> bool:
    """The same, where a function of the script's own, `is_distributed()`, does no more than its name says."""
    return only_asks(facts.names, node) and not facts.devices.effects.has(node)


def does_more(facts: Facts, node: ast.AST) -> bool:
    """Whether leaving an expression out would be missed: `options.pop("dist", False)`, a function that counts."""
    for n in walk(node):
        if isinstance(n, CHANGES | ast.NamedExpr):
            return True
        method = n.func if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else None
        if method is None or method.attr in LOOKS or ASKS.match(method.attr):
            continue
        if facts.names.resolve(method) is None and facts.devices.found_there(method) is None:
            return True
    return facts.devices.effects.has(node)


class Effects:
    """What calls of the script's own functions do besides giving a value: they seed, print, write, set an attribute."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self._asked: set[ast.FunctionDef] = set()

    def has(self, node: ast.AST, gone: Collection[ast.AST] = (), shown: bool = True) -> bool:
        """Whether an expression does more than ask; `gone`: what goes anyway, `shown`: whether prints count."""
        return any(self._of_own(n, gone, shown) for n in walk(node, ast.Call))

    def _of_own(self, call: ast.Call, gone: Collection[ast.AST], shown: bool) -> bool:
        f = self.devices.function_of(call)
        if f is not None:
            return self._of_function(f, gone, shown)
        there = self.devices.found_there(call.func)
        own = there[2] if there is not None else None
        if there is None or not isinstance(own, ast.FunctionDef):
            return there is not None
        return there[1].devices.effects._of_function(own, (), shown)

    def _of_function(self, f: ast.FunctionDef, gone: Collection[ast.AST], shown: bool) -> bool:
        """Whether a function changes what is there outside of it; that it may raise is no effect."""
        if f in self._asked:
            return False  # one that calls itself: what else it does decides
        self._asked.add(f)
        try:
            own = (n for s in f.body for n in walk(s) if n not in gone)
            return bool(f.decorator_list) or any(self._changes(n, gone, shown) for n in own)
        finally:
            self._asked.discard(f)

    def _changes(self, n: ast.AST, gone: Collection[ast.AST], shown: bool) -> bool:
        if isinstance(n, (ast.Attribute, ast.Subscript)):
            return not isinstance(n.ctx, ast.Load)
        if not isinstance(n, ast.Call):
            return isinstance(n, CHANGES)
        last = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
        if self._is_plain(n.func, last) or (last in SHOWS and not shown):
            return False
        own = self.devices.function_of(n) or self.devices.found_there(n.func)
        return own is None or self._of_own(n, gone, shown)

    def _is_plain(self, func: ast.expr, last: str) -> bool:
        full = self.devices.names.resolve(func)
        if full is not None:
            return full.startswith(ASKED) or (full.startswith(OF_CARDS) and not SEEDS.search(last))
        if isinstance(func, ast.Name):
            return last in PLAIN or last.endswith(("Error", "Exception"))
        return last in LOOKS
