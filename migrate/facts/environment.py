"""The environment's variables, by which a launcher tells its processes who they are, and dictionaries of them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .process_names import RANK_VARIABLES, WORLD_VARIABLES
from .scopes import Scope

if TYPE_CHECKING:
    from .script import Facts

ENVIRONMENT = "os.environ"
SEQUENCES = (ast.Tuple, ast.List, ast.Set)
ASKING = ("os.environ.get", "os.getenv")
# what a launcher sets for each process, torch's, MPI or Slurm, and what that is where there is one
LAUNCHED_WITH = dict.fromkeys(RANK_VARIABLES, "0") | dict.fromkeys(WORLD_VARIABLES, "1")
# the text of a file that may ask for them: by their names, or by what it is given
ASKS = re.compile(r"\b(environ|getenv)\b")
NAMES = re.compile(
    "|".join(map(re.escape, LAUNCHED_WITH)) + r"|(environ\.get|getenv)\(\s*[A-Za-z_]|environ\[\s*[A-Za-z_]"
)
MEETING = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}  # where processes meet, and where torch's launchers say
OF_TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")  # what torchrun sets, and the runtime
ADDRESSES = {*MEETING, *LAUNCHED_WITH}


def is_environment(facts: Facts, node: ast.expr) -> bool:
    """`os.environ`, or the name of a dictionary of it that stays: `{key: os.environ[key] for key in KEYS}`."""
    if facts.names.resolve(node) == ENVIRONMENT:
        return True
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    return scope is not None and isinstance(node, ast.Name) and node.id in _copies(facts).get(scope, ())


def sets_addresses(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement says where the processes meet, or who one is, and nothing else:
    `os.environ["MASTER_PORT"] = "29500"`, several at once, `os.environ.update(RANK="0", MASTER_PORT="29500")`,
    `os.environ.setdefault("RANK", "0")`.
    """
    if isinstance(s, ast.Assign):
        targets = [e for t in s.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        return all(_is_address(facts, t) for t in targets)
    given: list[ast.expr] = []
    names: list[str | None] = []
    if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.BitOr) and facts.names.resolve(s.target) == ENVIRONMENT:
        given = [s.value]
    elif isinstance(s, ast.Expr) and isinstance(call := s.value, ast.Call):
        full = facts.names.resolve(call.func)
        given, names = (call.args, [k.arg for k in call.keywords]) if full == f"{ENVIRONMENT}.update" else ([], [])
        if full == f"{ENVIRONMENT}.setdefault":
            names = [getattr(a, "value", None) for a in call.args[:1]]
    for d in given:
        names += [getattr(k, "value", None) for k in d.keys] if isinstance(d, ast.Dict) else [None]
    return bool(names) and ADDRESSES.issuperset(names)


def _is_address(facts: Facts, target: ast.expr) -> bool:
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
        return False
    return target.slice.value in ADDRESSES and facts.names.resolve(target.value) == ENVIRONMENT


def demands(facts: Facts) -> Iterator[ast.Subscript]:
    """`os.environ[key]` in a dictionary that is made of what a launcher sets, which without one is an error."""
    for made in facts.walk(ast.DictComp):
        keys = made.generators[0].iter
        names = {k.value for k in keys.elts if isinstance(k, ast.Constant)} if isinstance(keys, SEQUENCES) else set()
        if isinstance(made.value, ast.Subscript) and names & ADDRESSES and _is_copy(facts, made):
            yield made.value


def meeting_points(facts: Facts) -> Iterator[tuple[ast.Subscript, str]]:
    """`os.environ["MASTER_PORT"]`, an error where nothing sets it, and what asks for it anywhere: with the script's own
    port where that is written there. Not where the script asks first whether it is set, or says what to do without.
    """
    for node in facts.walk(ast.Subscript) if "MASTER_" in facts.text.text else ():
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not (isinstance(key, str) and key in MEETING and isinstance(node.ctx, ast.Load)):
            continue
        branches = (up for up in facts.scopes.ancestors(node) if isinstance(up, (ast.If, ast.IfExp)))
        asked = any(key in ast.unparse(up.test) for up in branches)
        asked = asked or (_is_caught(facts, node) and not any(_sets(facts, key)))
        if is_environment(facts, node.value) and not asked:
            yield node, f"{ast.unparse(node.value)}.get({key!r}, {_said(facts, key)!r})"


def _is_caught(facts: Facts, node: ast.AST) -> bool:
    """`try: host = os.environ["MASTER_ADDR"]`, `except KeyError: host = "none"`"""
    inner = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.Try) and inner in up.body:
            caught = {"" if h.type is None else ast.unparse(h.type) for h in up.handlers}
            if any(not c or re.search(r"\b(KeyError|LookupError|Exception|BaseException)\b", c) for c in caught):
                return True
        inner = up
    return False


def _said(facts: Facts, key: str) -> str:
    """What the script sets a variable to, where each of its statements says the same."""
    said = set()
    for value in _sets(facts, key):
        asks = isinstance(value, ast.Call) and facts.names.resolve(value.func) in ASKING
        value = value.args[-1] if asks and len(value.args) > 1 else value  # type: ignore[attr-defined]
        said.add(value.value if isinstance(value, ast.Constant) else None)
    [only] = said if len(said) == 1 else [None]
    return only if isinstance(only, str) else MEETING[key]


def _sets(facts: Facts, key: str) -> Iterator[ast.expr]:
    """What the script sets a variable of the environment to."""
    for s in facts.walk(ast.Assign):
        if any(_is_address(facts, t) and t.slice.value == key for t in s.targets):  # type: ignore[attr-defined]
            yield s.value


def asked_by_name(facts: Facts) -> Iterator[tuple[ast.expr, str]]:
    """Where the environment is asked for keys that are not written there, and as what: `.get` of `os.getenv`.

    Only where a launcher's name is handed on: `env_int("RANK", 0)`, `for key in ("RANK", "PMI_RANK"):`; by this file,
    or by another one to a function of this one.
    """
    given = any(f.name in facts.handed_elsewhere for f in facts.walk(ast.FunctionDef))
    if not (given or any(c.value in LAUNCHED_WITH and _is_handed_on(facts, c) for c in facts.walk(ast.Constant))):
        return
    for node in [*facts.walk(ast.Attribute), *facts.walk(ast.Name)]:
        full = facts.names.resolve(node)
        key = _key_of(facts, node, full) if full in (ENVIRONMENT, "os.getenv") else None
        copied = any(isinstance(up, ast.DictComp) and _is_copy(facts, up) for up in facts.scopes.ancestors(node))
        if key is not None and not isinstance(key, ast.Constant) and not copied:
            yield node, "" if full == ENVIRONMENT else ".get"


def handed_on(facts: Facts) -> Iterator[ast.Call]:
    """Calls that are given a launcher's name: `env_int("RANK", 0)`."""
    for c in facts.walk(ast.Constant):
        if c.value in LAUNCHED_WITH and _is_handed_on(facts, c):
            up = facts.scopes.parents.get(c)
            call = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
            if isinstance(call, ast.Call):
                yield call


def asks_elsewhere(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is of a function that no file of the project is known to have, and that is no part of Python."""
    full = facts.names.resolve(call.func)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if last in facts.defined_elsewhere or (full or "torch").split(".")[0] in ("torch", *sys.stdlib_module_names):
        return False
    return full is not None


def asks_launcher(facts: Facts) -> Iterator[ast.expr]:
    """`os.environ["RANK"]`, `os.getenv("WORLD_SIZE", 1)`: what the runtime's launcher sets, asked for by its name."""
    for node in [*facts.walk(ast.Attribute), *facts.walk(ast.Name)] if ASKS.search(facts.text.text) else ():
        full = facts.names.resolve(node)
        key = _key_of(facts, node, full) if full in (ENVIRONMENT, "os.getenv") else None
        if isinstance(key, ast.Constant) and key.value in OF_TORCH:
            yield key


def _is_handed_on(facts: Facts, name: ast.Constant) -> bool:
    up = facts.scopes.parents.get(name)
    if isinstance(up, ast.Call):
        own = isinstance(up.func, ast.Attribute) and is_environment(facts, up.func.value)
        return not own and facts.names.resolve(up.func) not in ASKING
    return isinstance(up, (ast.keyword, ast.arguments, ast.Assign, ast.AnnAssign, *SEQUENCES))


def _key_of(facts: Facts, node: ast.expr, full: str | None) -> ast.expr | None:
    """What `os.environ` or `os.getenv` is asked for, here."""
    parents = facts.scopes.parents
    up = parents.get(node)
    if isinstance(up, ast.Subscript):
        return up.slice if up.value is node and isinstance(up.ctx, ast.Load) else None
    if isinstance(up, ast.Attribute) and up.attr in ("get", "keys"):
        node, full = up, f"{full}.{up.attr}"
        up = parents.get(up)
    if isinstance(up, ast.Call) and up.func is node:
        if full in ASKING and up.args:
            return up.args[0]
        node, up = up, parents.get(up)
    if isinstance(up, ast.Compare) and up.comparators == [node] and isinstance(up.ops[0], (ast.In, ast.NotIn)):
        return up.left
    return None


def _copies(facts: Facts) -> dict[Scope, set[str]]:
    """The names of dictionaries of the environment, by their scopes."""
    if "copies of the environment" not in facts.answers:
        found: dict[Scope, set[str]] = {}
        for s in facts.walk(ast.Assign) if "environ" in facts.attributes else ():
            target = s.targets[0]
            if len(s.targets) != 1 or not isinstance(target, ast.Name) or not _is_copy(facts, s.value):
                continue
            scope = facts.scopes.scope_of(target)
            if len(scope.stores[target.id]) == 1 and not _is_changed(facts, target.id, scope):
                found.setdefault(scope, set()).add(target.id)
        facts.answers["copies of the environment"] = found
    return facts.answers["copies of the environment"]


def _is_copy(facts: Facts, node: ast.expr) -> bool:
    """`{key: os.environ[key] for key in ("RANK", "WORLD_SIZE")}`, `dict(os.environ)`, `os.environ.copy()`."""
    resolve = facts.names.resolve
    if isinstance(node, ast.Call):
        full = resolve(node.func)
        copied = full in ("dict", None) and ast.unparse(node.func) == "dict" and len(node.args) == 1
        return full == f"{ENVIRONMENT}.copy" or (copied and resolve(node.args[0]) == ENVIRONMENT)
    if not isinstance(node, ast.DictComp) or len(node.generators) != 1:
        return False
    key, each = node.key, node.generators[0].target
    if not (isinstance(key, ast.Name) and isinstance(each, ast.Name) and key.id == each.id):
        return False
    asked: ast.expr | None = None
    if isinstance(node.value, ast.Subscript) and resolve(node.value.value) == ENVIRONMENT:
        asked = node.value.slice
    elif isinstance(node.value, ast.Call) and resolve(node.value.func) in ASKING and node.value.args:
        asked = node.value.args[0]
    return isinstance(asked, ast.Name) and asked.id == key.id


def _is_changed(facts: Facts, name: str, scope: Scope) -> bool:
    """Whether a dictionary gets other values: one for a program that the script starts is no environment of its own."""
    for read in facts.scopes.reads(name, scope):
        up = facts.scopes.parents.get(read)
        if isinstance(up, ast.Subscript) and not isinstance(up.ctx, ast.Load):
            return True
        if isinstance(up, ast.Attribute) and up.attr in ("update", "pop", "setdefault", "clear", "popitem"):
            return True
    return False
