"""Whether a script speaks of devices and places nothing on one: it makes `device` and reads it nowhere, or shows it.

Such a script runs on the CPU on any machine, as one that names no device does.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .cpu_types import DTYPES
from .hosts import KEEP_ORDER, speaks
from .nodes import walk
from .spelled import spelled

if TYPE_CHECKING:
    from .script import Facts

# what tells of cards, and neither chooses one nor places anything
TELLS = {
    f"torch.cuda.{n}"
    for n in "is_available device_count current_device get_device_name get_device_properties get_device_capability "
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_summary synchronize".split()
} | {"torch.device", "torch.backends.mps.is_available", "torch.mps.is_available", "torch.xpu.is_available"}
MOVES = {"to", "cuda", "device", "mps", "xpu", "type"}  # attributes by which a tensor or a module may be placed
# what a cast names, and no place: `x.to(torch.float32)`, `x.type(torch.LongTensor)`
KINDS = {
    *DTYPES,
    *"half float double bfloat16 short int long bool uint8 int8 int16 int32 int64 float16 float32 float64".split(),
}
BUILTINS = {"str", "int", "bool", "len", "repr", "format", "range"}
SAYS = {f"{of}.{n}" for of in ("logging", "logger", "log") for n in ("info", "debug", "warning")} | {"print"}


def places_nothing(facts: Facts) -> bool:
    """Whether all that speaks of devices is made to be shown, or for nothing."""
    if facts.imported or any(speaks(o.text) for o in facts.others):
        return False  # another file may read it, or place what it is given
    if any(speaks(a.arg) for a in facts.walk(ast.arg)) or any(speaks(k.arg or "") for k in facts.walk(ast.keyword)):
        return False
    defined = [f.name for f in facts.walk(ast.FunctionDef)] + [c.name for c in facts.walk(ast.ClassDef)]
    if any(map(speaks, defined)):
        return False
    if any(speaks(n.module or "") or any(speaks(a.name) for a in n.names) for n in facts.walk(ast.ImportFrom)):
        return False
    said = {*filter(speaks, facts.attributes)}
    parts = [a for a in facts.walk(ast.Attribute) if a.attr in said or (a.attr in MOVES and not _casts(facts, a))]
    if any(_may_move(facts, a) for a in parts):
        return False
    said = {*filter(speaks, {n.id for n in facts.walk(ast.Name)})}
    named = [n for n in facts.walk(ast.Name) if n.id in said]
    texts = [c for c in facts.walk(ast.Constant) if isinstance(c.value, str) and speaks(c.value)]
    return all(_is_idle(facts, n, frozenset()) for n in (*parts, *named, *texts))


def _casts(facts: Facts, part: ast.Attribute) -> bool:
    """`x.to(torch.float32)`, `x.type(torch.LongTensor)`; `x.type()` asks."""
    call = facts.scopes.parents.get(part)
    if part.attr not in ("to", "type") or not isinstance(call, ast.Call) or call.func is not part:
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    packages = [(facts.names.resolve(g) or "").rpartition(".") for g in given]
    return (bool(given) or part.attr == "type") and all(of == "torch" and n in KINDS for of, _, n in packages)


def _may_move(facts: Facts, part: ast.Attribute) -> bool:
    """Not for `torch.cuda` and what it tells."""
    full = facts.names.resolve(part)
    return not (full == "torch.cuda" or full in TELLS or full in KEEP_ORDER) and part.attr in MOVES


def _is_idle(facts: Facts, node: ast.AST, within: frozenset[tuple[int, str]]) -> bool:
    """Whether a part of the text goes into what is shown, or into names that nothing else reads.

    `within`: the names that are being asked for, `device = torch.device(device)`.
    """
    for up in (node, *facts.scopes.ancestors(node)):
        if isinstance(up, ast.Call) and _shows(up):
            return True
        if isinstance(up, ast.Call) and not _is_harmless(facts, up):
            return False
        if isinstance(up, ast.If):
            return all(_is_idle_statement(facts, s, within) for s in (*up.body, *up.orelse))
        if isinstance(up, ast.stmt):
            return _is_idle_statement(facts, up, within)
    return False


def _is_idle_statement(facts: Facts, s: ast.stmt, within: frozenset[tuple[int, str]]) -> bool:
    if isinstance(s, (ast.Pass, ast.Import)):
        return True
    if isinstance(s, ast.Expr):
        if isinstance(s.value, ast.Constant):
            return True
        call = s.value if isinstance(s.value, ast.Call) else None
        full = facts.names.resolve(call.func) if call is not None else None
        return call is not None and (_shows(call) or full in KEEP_ORDER or full in TELLS or _is_option(call))
    if not isinstance(s, ast.Assign) or not all(isinstance(t, ast.Name) for t in s.targets):
        return False
    return all(_is_unread(facts, t, within) for t in s.targets if isinstance(t, ast.Name))


def _is_unread(facts: Facts, target: ast.Name, within: frozenset[tuple[int, str]]) -> bool:
    scope = facts.scopes.scope_of(target).lookup(target.id)
    if scope is None or scope.is_class:
        return False
    key = (id(scope), target.id)
    if key in within:
        return True
    return all(_is_idle(facts, r, within | {key}) for r in facts.scopes.reads(target.id, scope))


def _is_harmless(facts: Facts, call: ast.Call) -> bool:
    """Whether a call does nothing with the device that it is given: `str(args.gpu)`, `"{}".format(name)`."""
    full = facts.names.resolve(call.func)
    if full in TELLS or full in KEEP_ORDER or _is_option(call):
        return True
    plain = isinstance(call.func, ast.Name) and call.func.id in BUILTINS
    return plain or (isinstance(call.func, ast.Attribute) and call.func.attr == "format")


def _is_option(call: ast.Call) -> bool:
    """`parser.add_argument("--gpu")`: what reads it speaks of devices, too."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"


def _shows(call: ast.Call) -> bool:
    """`print(...)` and what tells a log."""
    return spelled(call.func) in SAYS and not any(isinstance(n, ast.NamedExpr) for n in walk(call))
