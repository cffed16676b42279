"""T9: what a script takes for the names of a wrapped model's parameters, which began with `module.`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.distribution import Distribution
from ..facts.held_wrapped import HeldWrapped
from ..facts.script import Facts

NAMED = ("named_parameters", "named_modules", "named_buffers", "named_children", "state_dict", "load_state_dict")
OF_WRAPPED = re.compile(r"module(\.\w+)+\.?\Z")
PUT = re.compile(r"module\.(%s|\{\w*\})?\Z")
LENGTHS = ("7", "len('module.')")
CUTS = re.compile(r"""["']module\.["']""")
STATES = re.compile(r"(?<!optimizer)(?<!optim)(?<!scheduler)(?<!scaler)\.(load_)?state_dict\(")
LOADS = re.compile(r"\b(?!module\b|\w*(?:opt|sched|scaler))\w+\.load_state_dict\(", re.IGNORECASE)
HELD_KEYS = "nothing wraps a part of it: the keys of a file that was saved before have `module.` within"
OLD_KEYS = "nothing wraps the model: the keys of a file that was saved of the wrapped one begin with `module.`"
HELD = "nothing wraps that part, and the names of its parameters have no `module.`"
WHY = "nothing wraps the model, and the names of its parameters begin with no `module.`"


def names_that_go(facts: Facts, found: Distribution, wrapper: ast.AST) -> str:
    """What is to be said of the keys of states, where the script has any."""
    held = HeldWrapped(found)
    if wrapper in held.held:
        others = any(STATES.search(o.text) for o in facts.others)
        if others or any(True for name in NAMED[-2:] for _ in held.states(name)):
            return "; the keys of the state that it is a part of have no `module.` now"
    return "; the keys of its state begin with no `module.` now" if found.states("state_dict") else ""


def wrapped_names(facts: Facts, found: Distribution) -> Iterator[tuple[ast.expr, str]]:
    """`name.startswith("module.head")`, `"module." + name`, and `name[7:]` without a question for what it cuts."""
    if not any(name in facts.attributes for name in NAMED):
        return
    for put in _put_before(facts) if "module." in facts.text.text else ():
        yield put, f"`{facts.short(put)}`: {WHY}"
    texts = []
    for c in facts.walk(ast.Constant) if "module." in facts.text.text else ():
        if isinstance(c.value, str) and not facts.is_fixed(c):
            texts.append(c)
    keys = HeldWrapped(found).keys() if texts else None
    for c in texts:
        if OF_WRAPPED.match(str(c.value)) and not isinstance(facts.scopes.parents.get(c), ast.Expr):
            yield c, f"`{facts.short(c)}`: {WHY}"
        elif keys is not None and keys.match(str(c.value)):
            yield c, f"`{facts.short(c)}`: {HELD}"
    if any(c.value in ("module", "module.") and not _is_measured(facts, c) for c in texts):
        return  # it asks first
    for cut in facts.walk(ast.Subscript):
        if isinstance(cut.value, ast.Name) and isinstance(cut.ctx, ast.Load) and _cuts(cut.slice):
            yield cut, f"`{facts.short(cut)}`: {WHY}"


def loads_old_keys(facts: Facts, found: Distribution) -> tuple[ast.Call, str] | None:
    """What loads a file that was saved of the wrapped model, unless the script cuts its keys, and what to say of it; or
    the wrapper, where another file loads what this one gives it.
    """
    if _saves_without(facts, found):
        return None
    reads = "torch.load" in found.full.values()
    loads = found.states("load_state_dict") if reads else []
    held = HeldWrapped(found)
    within = list(held.states("load_state_dict")) if reads and not loads else []
    others = [o.text for o in facts.others]
    if not loads and not within and "load_state_dict" not in facts.attributes:
        there = any("torch.load" in o and LOADS.search(o) for o in others)
        loads = [c for c in found.wrapped if c not in held.held] if there else []
        within = list(held.held) if there and not loads else []
        if (
            not there and facts.wrapped and any(LOADS.search(o) for o in others)
        ):  # a function there wraps, another loads
            loads = [c for c, full in found.full.items() if full == "torch.load"]
    shown = next(iter([*((c, OLD_KEYS) for c in loads), *((c, HELD_KEYS) for c in within)]), None)
    cut = shown is not None and any(CUTS.search(text) for text in (facts.text.text, *others))
    return None if cut else shown


def _saves_without(facts: Facts, found: Distribution) -> bool:
    """Whether the states that the script saves are those of `model.module` alone, whose keys are the plain ones."""
    saved = [c.func.value for c in facts.calls_of("state_dict") if isinstance(c.func, ast.Attribute)]
    within = [m for m in saved if isinstance(m, ast.Attribute) and m.attr == "module"]
    return bool(within) and not found.states("state_dict") and not any(STATES.search(o.text) for o in facts.others)


def _put_before(facts: Facts) -> Iterator[ast.expr]:
    """`"module." + name` and its like, for a key."""
    for node in [*facts.walk(ast.BinOp), *facts.walk(ast.JoinedStr), *facts.walk(ast.Call)]:
        first: ast.AST | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
            first = node.left
        elif isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            first = node.func.value
        begins = isinstance(first, ast.Constant) and PUT.match(str(first.value))
        if begins and not _is_shown(facts, node) and not facts.is_fixed(node):
            yield node


def _is_shown(facts: Facts, node: ast.expr) -> bool:
    """`print(f"module.{name}")`, `import_module("module." + name)`; not `state.pop("module." + name)`."""
    up = facts.scopes.parents.get(node)
    return isinstance(up, ast.Expr) or (
        isinstance(up, ast.Call) and getattr(up.func, "attr", "") not in ("get", "pop", "setdefault")
    )


def _is_measured(facts: Facts, c: ast.Constant) -> bool:
    return ast.unparse(facts.scopes.parents.get(c) or c) == LENGTHS[1]


def _cuts(part: ast.expr) -> bool:
    """`7:`"""
    if not isinstance(part, ast.Slice) or part.lower is None:
        return False
    return part.upper is None and part.step is None and ast.unparse(part.lower) in LENGTHS
