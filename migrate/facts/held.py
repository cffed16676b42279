"""What the runtime does not place, though it is no tensor that the script makes: what data sets and buffers hold.

`dataset[0]`, `memory.sample(32)`, `tokenizer(texts, return_tensors="pt")`, what another library reads: on the CPU as it
comes. What a loop goes through is the runtime's, a data set too.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .arguments import given_to
from .arrays import LIBRARIES
from .from_pictures import is_from_picture
from .loops import LOADER_NAME
from .nodes import walk
from .sizes import is_size
from .tensor_methods import METHODS, OTHERS, VIEWS

if TYPE_CHECKING:
    from .script import Facts

DATA = ("torch.utils.data.", "torchvision.datasets.", "torch_geometric.datasets.")
DATA_NAME = re.compile(
    r"(^|_)((data|train|training|valid|validation|val|test|eval|dev)_?sets?|ds)(_\w+)?$", re.IGNORECASE
)
DATA_CLASS = re.compile(r"[dD]ata_?[sS]et|Subset")
HOLDER_NAME = re.compile(r"(^|_)(memory|replay|buffer|storage|rollouts?|envs?|tokenizer|processor)\d*$", re.IGNORECASE)
DRAWS = re.compile(r"(^|_)(sample|draw|get|pop|fetch|reset|step|encode|pad|batch|last)(_|$)")
KEEPS = {"list", "dict", "collections.deque", "collections.defaultdict", "collections.OrderedDict"}


def is_data_set(facts: Facts, c: ast.ClassDef | None, depth: int = 0) -> bool:
    """A data set of torch's, or of torchvision's, or one that derives from such a class of the file, or is one by its
    methods: https://docs.pytorch.org/docs/stable/data.html#map-style-datasets
    """
    if c is None or depth > 5:
        return False
    if not c.bases and {"__getitem__", "__len__"} <= facts.classes.methods(c).keys():
        return True
    named = ((facts.names.resolve(b) or "").startswith(DATA) for b in c.bases)
    return any(named) or any(is_data_set(facts, class_named(facts, b), depth + 1) for b in c.bases)


def class_named(facts: Facts, func: ast.expr) -> ast.ClassDef | None:
    """The class of this file that a call makes an instance of."""
    name = func.id if isinstance(func, ast.Name) else ""
    return next((c for c in facts.walk(ast.ClassDef) if c.name == name), None)


def is_held(facts: Facts, node: ast.expr) -> bool:
    """`dataset[0]`, `test_data.targets`, `rollouts.rewards`, `self.memory[i]` of a list that an object keeps."""
    if isinstance(node, ast.Subscript):
        return is_data(facts, node.value) or _is_kept_list(facts, node.value) or _lists_batches(facts, node.value)
    if not isinstance(node, ast.Attribute):
        return False
    part = bool(HOLDER_NAME.search(_last(node.value))) and node.attr not in VIEWS
    return part or is_data(facts, node.value) or _is_kept_list(facts, node)


def is_read(facts: Facts, call: ast.Call) -> bool:
    """`cv2.imread(path)`, `tokenizer(texts, return_tensors="pt")`, `map(torch.from_numpy, arrays)`."""
    if (facts.names.resolve(call.func) or "").partition(".")[0] in LIBRARIES:
        return True
    if is_tokenized(call) or is_from_picture(facts, call):
        return True
    mapped = isinstance(call.func, ast.Name) and call.func.id == "map" and bool(call.args)
    return mapped and (facts.names.resolve(call.args[0]) or "").startswith("torch.")


def is_tokenized(call: ast.Call) -> bool:
    """`tokenizer.encode(text, return_tensors="pt")`"""
    return any(k.arg == "return_tensors" for k in call.keywords)


def gives_held(facts: Facts, method: ast.Attribute) -> bool:
    """`memory.sample(32)`, `dataset.__getitem__(0)`: what an object gives of its own; what a loop draws of a loader
    the runtime places.
    """
    if method.attr == "__getitem__":
        return is_data(facts, method.value)
    named = _last(method.value)
    if LOADER_NAME.search(named):
        return method.attr not in ("next", "__next__", "__iter__")
    return bool(HOLDER_NAME.search(named) and DRAWS.search(method.attr))


def gave_held(facts: Facts, node: ast.expr) -> bool:
    """The state of `state, reward, done = env.step(action)`, where all that gives the name is such a draw."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id in scope.params:
        return False
    values = facts.devices.unpacked(node.id, scope) or []
    draws = [v.func for v in values if isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute)]
    return len(draws) == len(values) > 0 and all(gives_held(facts, method) for method in draws)


def gives_of_sizes(call: ast.Call, method: ast.Attribute) -> bool:
    """`diffusion.sample_timesteps(x.shape[0])`, made of sizes alone; what is of self may be a module that is called."""
    of_self = isinstance(method.value, ast.Name) and method.value.id == "self"
    named = method.attr in METHODS | OTHERS or method.attr.startswith("new_") or method.attr.endswith("_")
    if of_self or named or not any(map(is_size, call.args)):
        return False
    return all(isinstance(a, ast.Constant) or is_size(a) for a in given_to(call))


def given_back(facts: Facts, method: ast.Attribute) -> list[ast.expr]:
    """What a method of a class of this file that is no module gives; nothing where that does not show."""
    c = facts.devices.own_movers.class_of(method.value)
    if c is None or not is_plain(facts, c):
        return []
    f = facts.classes.methods(c).get(method.attr)
    own = facts.scopes.by_node[f] if f is not None else None
    found = [n.value for n in walk(f, ast.Return) if facts.scopes.scope_of(n) is own] if f else []
    parts = [p for v in found for p in (v.elts if isinstance(v, ast.Tuple) else [v])]
    return [] if None in parts else [p for p in parts if p is not None]


def is_data(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is a data set: by what made it, or by its name where that does not show."""
    if isinstance(node, ast.Subscript):  # data_sets["train"]
        return is_data(facts, node.value, depth + 1)
    values = _values(facts, node) if depth < 5 else []
    if not values:
        return bool(DATA_NAME.search(_last(node)))
    return all(
        _makes_data(facts, v, _last(node)) if isinstance(v, ast.Call) else is_data(facts, v, depth + 1) for v in values
    )


def _makes_data(facts: Facts, call: ast.Call, name: str) -> bool:
    full = facts.names.resolve(call.func)
    if full == "torch.utils.data.DataLoader":
        return False
    c = class_named(facts, call.func)
    if c is not None or (full or "").startswith(DATA):
        return c is None or is_data_set(facts, c)
    called = _last(call.func)
    if DATA_CLASS.search(called) and called[:1].isupper():
        return True
    return bool(DATA_NAME.search(name)) and not LOADER_NAME.search(called)


def _is_kept_list(facts: Facts, node: ast.expr) -> bool:
    """`self.memory`, `agent.memory`, to which the class of a plain object gives a list or a dictionary that it fills
    later.
    """
    if not isinstance(node, ast.Attribute):
        return False
    c = facts.devices.own_movers.class_of(node.value)
    if c is None or not is_plain(facts, c):
        return False
    values = facts.devices.attribute_values.get(node.attr, [])
    return bool(values) and all(_is_empty(facts, v) for v in values)


def _lists_batches(facts: Facts, node: ast.expr) -> bool:
    """`batches = list(loader)`, `list(enumerate(target))`: as the loader gave them, before a loop draws one."""
    values = _values(facts, node)
    return bool(values) and all(_is_list_of_batches(facts, v) for v in values)


def _is_list_of_batches(facts: Facts, value: ast.expr) -> bool:
    if not (isinstance(value, ast.Call) and _last(value.func) in ("list", "tuple") and len(value.args) == 1):
        return False
    over = value.args[0]
    counted = isinstance(over, ast.Call) and _last(over.func) == "enumerate"
    return counted or facts.loops.is_loader(over)


def _is_empty(facts: Facts, value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Dict)):
        return not (value.elts if isinstance(value, ast.List) else value.keys)
    made = facts.names.resolve(value.func) or _last(value.func) if isinstance(value, ast.Call) else ""
    return made in KEEPS


def is_plain(facts: Facts, c: ast.ClassDef, depth: int = 0) -> bool:
    """Whether nothing but classes of this file stand above a class: it is no module."""
    if depth > 5:
        return False
    above = [(_last(b), class_named(facts, b)) for b in c.bases]
    return all(name == "object" or (d is not None and is_plain(facts, d, depth + 1)) for name, d in above)


def _values(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What assignments give a name or an attribute, a pair of them too; nothing where something else binds it."""
    if isinstance(node, ast.Attribute):
        return facts.devices.attribute_values.get(node.attr, []) if _last(node.value) == "self" else []
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id in scope.params:
        return []
    return facts.devices.unpacked(node.id, scope) or []


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
