"""Samplers that give each process its part of the data: of the script, of its project's other files, of packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import argument_at
from .nodes import walk
from .other_files import found_there
from .samplers import RANKS, WORLDS, is_of_one, own_samplers
from .world import PLAIN

if TYPE_CHECKING:
    from .script import Facts

# of packages: `DistributedSamplerWrapper`, `OrderedDistributedSampler`
OF_PACKAGES = re.compile(r"dist(ributed)?\w*sampler|^RASampler$|^RepeatAugSampler$", re.IGNORECASE)


def dividing(facts: Facts) -> Iterator[tuple[ast.Call, str]]:
    """The calls, with their names, of samplers other than torch's own that give each process its part."""
    own = {c.name: c for c in facts.walk(ast.ClassDef)}
    for call in facts.walk(ast.Call) if "ampler" in facts.text.text else ():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in own:
            divides = isinstance(call.func, ast.Name) and _divides(facts, facts, own[name], call)
        elif (found := class_there(facts, call)) is not None:
            divides = _divides(facts, found[0], found[1], call)
        else:
            divides = OF_PACKAGES.search(name) is not None and name[:1].isupper()
            full = facts.names.resolve(call.func)
            full = full or ("" if name != "DistributedSampler" else "torch.utils.data.")  # a parameter
            divides = divides and not full.startswith("torch.utils.data.")
        if divides and not is_of_one(call):
            yield call, name


def class_there(facts: Facts, call: ast.Call) -> tuple[Facts, ast.ClassDef] | None:
    """The class of a sampler that stands in another file of the project, and the facts of that."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    may_be = any(name in o.names and "Sampler" in o.text for o in facts.others)
    found = found_there(facts, call.func) if may_be else None
    return (found[1], found[2]) if found is not None and isinstance(found[2], ast.ClassDef) else None


def _divides(facts: Facts, there: Facts, c: ast.ClassDef, call: ast.Call) -> bool:
    """Whether a sampler of that class gives each process its part, now that a script by hand is a plain one."""
    if not any(own_samplers([c])):
        return False
    derived = any(there.names.resolve(b) == "torch.utils.data.DistributedSampler" for b in c.bases)
    if derived or not facts.by_hand:
        return True
    if any(facts.worlds.value(e, PLAIN) is None for e in _given(there, c, call)):
        return True
    bound = {n.arg for n in walk(c, ast.arg)}
    bound |= {n.id for n in walk(c, ast.Name) if isinstance(n.ctx, ast.Store)}
    return any(_asks(there, n) for n in walk(c) if getattr(n, "id", "") not in bound)


def _given(facts: Facts, c: ast.ClassDef, call: ast.Call) -> list[ast.expr]:
    """What a call says of processes to a class's constructor."""
    own = facts.classes.methods(c).get("__init__")
    names = [a.arg for a in (*own.args.posonlyargs, *own.args.args)][1:] if own is not None else []
    names += [k.arg for k in call.keywords if k.arg is not None and k.arg not in names]
    asked = [argument_at(call, n, i) for i, n in enumerate(names) if n in WORLDS | RANKS]
    return [e for e in asked if e is not None]


def _asks(facts: Facts, node: ast.AST) -> bool:
    """`get_rank()`, `args.rank`, `WORLD`: what is asked of processes, and has no value of a plain script."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if name not in WORLDS | RANKS or (isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"):
        return False
    up = facts.scopes.parents.get(node)
    asked = up if isinstance(up, ast.Call) and up.func is node else node
    return isinstance(asked, ast.expr) and facts.worlds.value(asked, PLAIN) is None
