"""The device that the user types, on the command line, in a file of settings or the environment: the Trainer's too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .device_words import is_index
from .devices import AVAILABILITY
from .nodes import walk
from .option_holders import OPTIONS
from .options import options
from .script import Facts

CARD = re.compile(r"(cuda|mps|xpu|npu|hpu)\b")
CARDS = re.compile(r"((device|gpu)_?(id|idx|list)s?|gpus)\Z", re.IGNORECASE)


def typed_device(facts: Facts) -> str | None:
    """`torch.device(args.device)`: the user types the device, its kind is the accelerator."""
    for call in facts.called.get("torch.device", ()):
        if len(call.args) == 1 and not call.keywords:
            value = call.args[0]
            is_option = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name)
            if is_option or _looked_up(facts, value) or _where_it_can(facts, value):
                return _kind(facts, value, facts.text.get(call.func))
    for call in facts.walk(ast.Call):
        for where in facts.devices.device_arguments(call) if facts.devices.moved(call) is not None else ():
            value = where.value if isinstance(where, ast.keyword) else where
            if _looked_up(facts, value) or _places_elsewhere(facts, value) or _is_option(facts, value):
                return _kind(facts, value, f"{_name_of_torch(facts)}.device")
    option = next(_declared(facts), None)
    return None if option is None else _kind(facts, option, f"{_name_of_torch(facts)}.device")


def _declared(facts: Facts) -> Iterator[ast.Attribute]:
    """`args.device` of a parser's line that says a device where nothing is typed, and that functions hand on."""
    for o in options(facts):
        if o.given is None or not facts.devices.is_device(o.given):
            continue
        held = [a for a in facts.attributes.get(o.name, ()) if _is_held(facts, a.value)]
        if all(isinstance(a.ctx, ast.Load) for a in held):  # no `args.device = torch.device(...)`
            yield from held


def _is_held(facts: Facts, node: ast.expr) -> bool:
    """`args`, and no object with a `device` of its own."""
    name = node.id if isinstance(node, ast.Name) else "self"
    return name not in ("self", "cls", "c") and facts.devices.options.has(name)


def _kind(facts: Facts, value: ast.expr, device: str) -> str:
    """The source of the accelerator; one that is a card where nothing is typed is whatever the machine has."""
    kind = f"{device}({facts.text.get(value)}).type"
    declared = next((o for o in options(facts) if isinstance(value, ast.Attribute) and o.name == value.attr), None)
    card = declared is not None and isinstance(declared.default, str) and CARD.match(declared.default)
    return f'"cpu" if {kind} == "cpu" else "auto"' if card else kind


def _where_it_can(facts: Facts, node: ast.expr) -> bool:
    """`args.device if torch.cuda.is_available() else "cpu"`"""
    if not isinstance(node, ast.IfExp) or not isinstance(node.body, ast.Attribute):
        return False
    asks = isinstance(node.test, ast.Call) and facts.names.resolve(node.test.func) in AVAILABILITY
    of = node.body.value
    option = isinstance(of, ast.Name) and facts.devices.options.has(of.id) and of.id not in ("self", "cls", "c")
    return asks and option and not is_index(node.body) and getattr(node.orelse, "value", None) == "cpu"


def _is_option(facts: Facts, node: ast.expr) -> bool:
    """`args.device`, which nothing here gives a value."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or not facts.devices.is_device(node):
        return False
    if not facts.devices.options.has(node.value.id) or node.value.id in ("self", "cls", "c") or is_index(node):
        return False
    given = any(n.id == node.attr for n in facts.walk(ast.Name) if not isinstance(n.ctx, ast.Load))
    return not given and node.attr not in facts.devices.attribute_values


def _places_elsewhere(facts: Facts, node: ast.expr) -> bool:
    """`args.device`, by which another file may place what the network meets."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id == "self":
        return False
    if not facts.devices.options.has(node.value.id):
        return False
    read = re.compile(rf"\b(\w+)\.{node.attr}\b(?!\s*=[^=])")
    return any(OPTIONS.match(m[1]) and m[1] != "self" for other in facts.others for m in read.finditer(other.text))


def _name_of_torch(facts: Facts) -> str:
    """What the file calls torch: `import torch as t`."""
    names = (a.asname for i in facts.walk(ast.Import) for a in i.names if a.name == "torch" and a.asname)
    return "torch" if "torch" in facts.scopes.module.stores else next(names, "torch")


def _looked_up(facts: Facts, node: ast.expr) -> bool:
    """A device that stands in a file of settings, the command line or the environment, or is chosen from several."""
    if isinstance(node, ast.Subscript):
        if CARDS.search(ast.unparse(node.value)):  # args.gpu_ids[0]: where there is no card, no device has its number
            return False
        if any(_is(n, "self") for n in walk(node)):
            return False  # whose it is where the Trainer is made does not show
        if not isinstance(node.value, ast.Name):
            return not isinstance(node.value, (ast.List, ast.Tuple, ast.Dict)) or _asks_user(node)
        scope = facts.scopes.scope_of(node).lookup(node.value.id)
        written = facts.devices.assigned(node.value.id, scope) if scope is not None else None
        return bool(written) and not any(isinstance(w, (ast.Dict, ast.List, ast.Tuple)) for w in written or ())
    if isinstance(node, ast.BoolOp):
        return _asks_user(node)
    if isinstance(node, ast.IfExp):
        return _looked_up(facts, node.body) or _looked_up(facts, node.orelse)
    if isinstance(node, ast.Call):
        return (facts.names.resolve(node.func) or "") in ("os.environ.get", "os.getenv")
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        values = facts.devices.assigned(node.id, scope) if scope is not None and node.id not in scope.params else None
        return values is not None and len(values) == 1 and not _is(values[0], node.id) and _looked_up(facts, values[0])
    return False


def _asks_user(node: ast.expr) -> bool:
    """Whether an option is read in it."""
    return any(isinstance(n.ctx, ast.Load) for n in walk(node, ast.Attribute))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
