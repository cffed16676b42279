"""Whether a place is the CPU and nothing else: as with `.cpu()`, what is brought there is wanted there.

So it is by a choice that does not ask for a card, beside the script's device: `h.to("cpu" if keep_there else device)`.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from .nodes import walk
from .spelled import spelled
from .types_elsewhere import reads_of_types

if TYPE_CHECKING:
    from .devices import Devices
    from .names import Names
    from .nodes import Nodes
    from .script import Facts

DEVICE_LITERAL = re.compile(r"(cuda|cpu|mps|xpu|hpu|xla|npu)(:\d+)?\Z")
ASKS_FOR_CARD = re.compile(
    r"cuda|gpu|device|card|accel|mps|xpu|npu|rank|(\b|no_|use_|force_)cpu\b|platform", re.IGNORECASE
)
NAMES_DEVICE = ("device", "cuda", "gpu", "mps", "xpu", "accelerat", ".to(")
# of torch.cuda, what places nothing, and does nothing without CUDA
KEEP_ORDER = {f"torch.cuda.{n}" for n in ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all")}
Choice = tuple[ast.expr, ast.expr | None]  # a value, and the condition that it is chosen by


def names_no_device(facts: Facts) -> bool:
    """Whether the text says nothing of devices, its code names the CPU alone, or what it names places nothing: it runs
    there on any machine.
    """
    if facts.others and any(True for _ in reads_of_types(facts)):
        return False
    from .idle_devices import places_nothing  # which asks this file what speaks of devices

    if not (speaks(facts.text.text) and speaks_in_code(facts)):
        return True
    return _names_host_alone(facts) or _keeps_order_alone(facts) or places_nothing(facts)


def speaks_in_code(facts: Facts) -> bool:
    """Whether more than comments and docstrings say it."""
    if any(map(speaks, facts.attributes)) or _names_it_otherwise(facts):
        return True
    if not all(_follows_tensor(facts, a) for a in facts.attributes.get("to", ())):
        return True
    named = {*(n.id for n in facts.walk(ast.Name)), *(k.arg or "" for k in facts.walk(ast.keyword))}
    named |= {f.name for f in facts.walk(ast.FunctionDef)} | {c.name for c in facts.walk(ast.ClassDef)}
    return any(map(speaks, named)) or any(speaks(n.module or "") for n in facts.walk(ast.ImportFrom))


def _follows_tensor(facts: Facts, to: ast.Attribute) -> bool:
    """The `t.to` of `t.to(torch.float64)`, and of `t.to(times)` of a name that is computed with: no device is."""
    call = facts.scopes.parents.get(to)
    if not isinstance(call, ast.Call) or call.func is not to or len(call.args) + len(call.keywords) != 1:
        return False
    other = call.args[0] if call.args else call.keywords[0].value
    if not isinstance(other, ast.Name):
        return (facts.names.resolve(other) or "").startswith("torch.")
    home = facts.scopes.scope_of(other).lookup(other.id)
    reads = facts.scopes.reads(other.id, home) if home is not None else ()
    return any(isinstance(facts.scopes.parents.get(r), ast.BinOp) for r in reads)


def _names_host_alone(facts: Facts) -> bool:
    """`device = torch.device("cpu")`, and no choice of it."""
    hosts = facts.devices.hosts
    if not hosts.names_host or hosts.names_others or _names_it_otherwise(facts):
        return False
    names = [n for n in facts.walk(ast.Name) if speaks(n.id) and isinstance(n.ctx, ast.Load)]
    parts = [a for a in facts.walk(ast.Attribute) if speaks(a.attr)]
    return all(facts.names.resolve(a) == "torch.device" for a in parts) and all(_is_given_host(facts, n) for n in names)


def _keeps_order_alone(facts: Facts) -> bool:
    """`torch.cuda.empty_cache()`, `if torch.cuda.is_available(): torch.cuda.manual_seed(1)`, which place nothing."""
    if "empty_cache" not in facts.attributes and "cuda.manual_seed" not in facts.text.text:
        return False
    if facts.devices.hosts.names_others or _names_it_otherwise(facts):
        return False
    if "to" in facts.attributes or any(speaks(n.id) for n in facts.walk(ast.Name)):
        return False
    parts = [a for a in facts.walk(ast.Attribute) if speaks(a.attr)]
    of_others = [n.module or "" for n in facts.walk(ast.ImportFrom)]
    return all(facts.names.resolve(a) == "torch.cuda" for a in parts) and not any(map(speaks, of_others))


def _names_it_otherwise(facts: Facts) -> bool:
    """Whether a text or a parameter speaks of devices."""
    texts = (c.value for c in facts.walk(ast.Constant) if not isinstance(facts.scopes.parents.get(c), ast.Expr))
    return any(isinstance(t, str) and speaks(t) for t in texts) or any(speaks(a.arg) for a in facts.walk(ast.arg))


def _keeps_order(names: Names, nodes: Nodes, cuda: ast.Attribute) -> bool:
    """Whether `torch.cuda` stands in a call that places nothing, or is asked for one."""
    full = names.resolve(up) if isinstance(up := nodes.parents.get(cuda), ast.Attribute) else None
    if full == "torch.cuda.is_available":
        branch = next((n for n in nodes.ancestors(cuda) if isinstance(n, ast.stmt)), None)
        if not isinstance(branch, ast.If) or branch.orelse or all(n is not cuda for n in walk(branch.test)):
            return False
        return all(_is_order(names, s) for s in branch.body)
    return full in KEEP_ORDER


def _is_order(names: Names, s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and names.resolve(s.value.func) in KEEP_ORDER


def speaks(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in NAMES_DEVICE)


def _is_given_host(facts: Facts, name: ast.Name) -> bool:
    """Whether a name is given nothing but the CPU."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None else None
    parts = [v.args[0] if isinstance(v, ast.Call) and len(v.args) == 1 else v for v in values or ()]
    return bool(parts) and all(isinstance(p, ast.Constant) and facts.devices.is_host(p) for p in parts)


class Hosts:
    def __init__(self, devices: Devices) -> None:
        self.devices, self.scopes = devices, devices.scopes
        self._chosen: dict[ast.expr, bool] = {}
        self._known: dict[ast.expr, bool] = {}

    def is_host(self, node: ast.expr) -> bool:
        """A name that is only ever given the CPU is the script's device where the script names no other."""
        if node not in self._known:
            self._known[node] = self.names_host and self._is_host(node)
        return self._known[node]

    def _is_host(self, node: ast.expr, within: tuple[str, ...] = ()) -> bool:
        """`within`: names whose values are being asked for; `device = torch.device(device)` says nothing new."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value.startswith("cpu")
        if isinstance(node, ast.Call) and not self._is_made(node):
            return False
        if isinstance(node, ast.Call) and node.args and self._is_host(node.args[0], within):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and self.names_others and spelled(node) not in within:
            own = (*within, spelled(node))
            others = [v for v in self._values(node) if not _reads(v, own[-1])]
            if others and all(not isinstance(v, ast.Name) and self._is_host(v, own) for v in others):
                return True
        named = spelled(node).rpartition(".")[2] if isinstance(node, (ast.Name, ast.Attribute)) else ""
        return not within and named.lower() not in ("device", "dev") and self._is_chosen(node)

    @cached_property
    def names_host(self) -> bool:
        """Whether the file names the CPU."""
        values = (n.value for n in self.devices.names.nodes.of(ast.Constant))
        return any(isinstance(v, str) and v.startswith("cpu") for v in values)

    @cached_property
    def names_others(self) -> bool:
        """Whether the file names a device that is not the CPU."""
        nodes = self.devices.names.nodes
        named = (n.value for n in nodes.of(ast.Constant) if isinstance(n.value, str))
        if any(not value.startswith("cpu") and DEVICE_LITERAL.match(value) for value in named):
            return True
        named_cuda = (n for n in nodes.of(ast.Attribute) if n.attr == "cuda")
        return not all(_keeps_order(self.devices.names, nodes, n) for n in named_cuda)

    def _is_made(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.devices.names.resolve(node.func) == "torch.device"

    def _values(self, node: ast.expr) -> list[ast.expr]:
        """What assignments give a name that is no parameter, or an attribute of self."""
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            return self.devices.attribute_values.get(node.attr, []) if own else []
        scope = self.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        known = scope is not None and node.id not in scope.params  # type: ignore[attr-defined]
        return (self.devices.assigned(node.id, scope) or []) if known else []  # type: ignore[attr-defined,arg-type]

    # -- by a choice -------------------------------------------------------------------------------------------

    def _is_chosen(self, node: ast.expr) -> bool:
        if node not in self._chosen:
            self._chosen[node] = False  # while it is found
            choices = self._choices(node)
            hosts = [c for c, _ in choices if self._is_host(c, (spelled(node),))]
            others = [c for c, _ in choices if c not in hosts]
            itself = any(_reads(c, spelled(node)) for c in others)
            tests = [test for _, test in choices if test is not None]
            asks = not tests or itself or any(map(self._asks_for_card, tests))
            fit = [isinstance(c, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)) for c in others]
            if isinstance(node, (ast.Name, ast.Attribute)):  # not one that says in one place what the device is
                fit = [isinstance(c, ast.Name) or spelled(c).startswith("self.") for c in others]
            self._chosen[node] = bool(hosts and others) and not asks and all(fit)
        return self._chosen[node]

    def _choices(self, node: ast.expr, test: ast.expr | None = None, depth: int = 0) -> list[Choice]:
        if self._is_made(node) and len(node.args) == 1:  # type: ignore[attr-defined]
            return self._choices(node.args[0], test, depth + 1)  # type: ignore[attr-defined]
        if isinstance(node, ast.IfExp):
            return [c for way in (node.body, node.orelse) for c in self._choices(way, node.test, depth + 1)]
        if depth == 0 and isinstance(node, (ast.Name, ast.Attribute)):
            return [c for v in self._values(node) for c in self._choices(v, self._condition(v), depth + 1)]
        return [(node, test)]

    def _condition(self, value: ast.expr) -> ast.expr | None:
        """What the statement that gives a name its value stands under."""
        up = self.scopes.parents.get(self.scopes.statement_of(value))
        return up.test if isinstance(up, ast.If) else None

    def _asks_for_card(self, test: ast.expr) -> bool:
        flag = test.operand if isinstance(test, ast.UnaryOp) else test
        if not isinstance(flag, (ast.Name, ast.Attribute, ast.Compare, ast.BoolOp)):
            return True  # what a call or the environment says may be about cards
        named = [v for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute)) for v in self._values(n)]
        return any(ASKS_FOR_CARD.search(spelled(part)) for part in (test, *named))


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, (ast.Name, ast.Attribute)) and spelled(n) == name for n in walk(value))
