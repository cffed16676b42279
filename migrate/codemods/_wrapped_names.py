"""T9: what a script takes for the names of a wrapped model's parameters, which began with `module.`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.distribution import Distribution
from ..facts.script import Facts

NAMED = ("named_parameters", "named_modules", "named_buffers", "named_children", "state_dict")
OF_WRAPPED = re.compile(r"module(\.\w+)+\.?\Z")
LENGTHS = ("7", "len('module.')")
CUTS = re.compile(r"""["']module\.["']""")
LOADS = re.compile(r"\b(?!module\b|\w*(?:opt|sched|scaler))\w+\.load_state_dict\(", re.IGNORECASE)
OLD_KEYS = "nothing wraps the model: the keys of a file that was saved of the wrapped one begin with `module.`"
WHY = "nothing wraps the model, and the names of its parameters begin with no `module.`"


def wrapped_names(facts: Facts) -> Iterator[tuple[ast.expr, str]]:
    """`name.startswith("module.head")`, and `name[7:]` without a question for what it cuts."""
    if not any(name in facts.attributes for name in NAMED):
        return
    texts = []
    for c in facts.walk(ast.Constant) if "module." in facts.text.text else ():
        if isinstance(c.value, str) and not facts.in_formatted_string(c):
            texts.append(c)
    for c in texts:
        if OF_WRAPPED.match(str(c.value)) and not isinstance(facts.scopes.parents.get(c), ast.Expr):
            yield c, f"`{facts.short(c)}`: {WHY}"
    if any(c.value in ("module", "module.") and not _is_measured(facts, c) for c in texts):
        return  # it asks first
    for cut in facts.walk(ast.Subscript):
        if isinstance(cut.value, ast.Name) and isinstance(cut.ctx, ast.Load) and _cuts(cut.slice):
            yield cut, f"`{facts.short(cut)}`: {WHY}"


def loads_old_keys(facts: Facts, found: Distribution) -> ast.Call | None:
    """What loads a file that was saved of the wrapped model, unless the script cuts its keys; or the wrapper, where
    another file loads what this one gives it.
    """
    loads = found.states("load_state_dict") if "torch.load" in found.full.values() else []
    others = [o.text for o in facts.others]
    if not loads and "load_state_dict" not in facts.attributes:
        loads = found.wrapped if any("torch.load" in o and LOADS.search(o) for o in others) else []
        if (
            not loads and facts.wrapped and any(LOADS.search(o) for o in others)
        ):  # a function there wraps, another loads
            loads = [c for c, full in found.full.items() if full == "torch.load"]
    cut = any(CUTS.search(text) for text in (facts.text.text, *others))
    return next(iter(loads), None) if not cut else None


def _is_measured(facts: Facts, c: ast.Constant) -> bool:
    return ast.unparse(facts.scopes.parents.get(c) or c) == LENGTHS[1]


def _cuts(part: ast.expr) -> bool:
    """`7:`"""
    if not isinstance(part, ast.Slice) or part.lower is None:
        return False
    return part.upper is None and part.step is None and ast.unparse(part.lower) in LENGTHS
