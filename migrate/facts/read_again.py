"""Whether a script may read a file that it writes: ranks that read it have to wait for the one that writes it.

Paths are told apart by their last part, as far as it shows: what is not known of a name is a part that is called so.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from .arguments import argument, given_to
from .classes import Function
from .in_course import function_around
from .loops import last_part
from .nodes import walk
from .script import once_a_file
from .spelled import spelled
from .written_files import written_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .scopes import Scope
    from .script import Facts

ANY = "\0"  # what a part may be that does not show
# calls that are given paths and read no file of theirs
LOOKS_ONLY = {
    *(f"os.path.{n}" for n in "exists isfile isdir lexists join dirname basename abspath realpath splitext".split()),
    *(f"os.{n}" for n in "makedirs mkdir remove unlink rmdir removedirs fspath chmod".split()),
    *(f"os.path.{n}" for n in ("expanduser", "normpath", "relpath", "split")),
    "shutil.rmtree", "torch.save", "pathlib.Path", "pathlib.PurePath", "matplotlib.pyplot.title", "warnings.warn",
    "wandb.save", "wandb.log_artifact", "mlflow.log_artifact", "logging.FileHandler",
}  # fmt: skip
SAYS = ("print", "str", "repr", "len", "format", "join", "append", "add_argument", "isinstance", "ValueError")
METHODS = "info debug warning error log exists is_file is_dir mkdir unlink joinpath write set_description with_suffix"
COMPUTES = ("torch.", "numpy.", "math.", "random.", "time.", "argparse.", "torchvision.transforms.", "tqdm.")
LOADS = re.compile(r"load|read|from|open|memmap|utils|hub")
READS_SELF = ("open", "read_text", "read_bytes")
LISTS = re.compile(r"\b(listdir|scandir|glob|iglob|rglob|iterdir|walk|ImageFolder|make_archive|copytree)\s*\(")
STARTS = re.compile(r"\b(os\.system|popen|Popen|subprocess|check_call|check_output|runpy)\b")
ASKS = re.compile(r"\s*(if|elif|while|assert)\b")
WORD = re.compile(r"[A-Za-z_]\w{2,}")
COMMON = set(
    "self args opt opts config cfg hparams params flags path join str format epoch pathlib Path fspath".split()
)
LITERAL = re.compile(r"[\w-]{2,}\.\w+")


def read_again(facts: Facts, call: ast.Call, path: ast.expr) -> bool:
    """Whether anything in the project may read what a call writes at a path."""
    names = last_parts(facts, path)
    words = _words(facts, path)
    asked = [_listed_or_started_here(facts), *(o.once(_listed_or_started) for o in facts.others)]
    if _is_returned(facts, call, path) or any(words & found for own in asked for found in own):
        return True
    if any(may_be_one(a, b) for b in _read_parts(facts) for a in names):
        return True
    known = [n for n in names if "<" not in n]
    if len(known) < len(names) and is_given(facts, path) and any("open(" in o.text for o in facts.others):
        return True  # its callers may stand in another file
    said = [m for n in known for m in LITERAL.findall(n)]
    return any(m in o.text for o in facts.others for m in said)


def _is_returned(facts: Facts, call: ast.Call, path: ast.expr) -> bool:
    """Whether the function that writes it gives the path back, for others to read."""
    f = function_around(facts, call)
    returned = [n.value for n in walk(f, ast.Return)] if f is not None else []
    text = spelled(path) if returned else ""
    return any(v is not None and spelled(e) == text for v in returned for e in walk(v or path))


def _listed_or_started(text: str) -> list[set[str]]:
    """The words on the lines of each folder that is listed, and of each program that is started."""
    found = []
    for m in (*LISTS.finditer(text), *STARTS.finditer(text)):
        start = text.rfind("\n", 0, m.start()) + 1
        lines = text[start : m.end() + 400].split("\n")[:3]
        if ASKS.match(lines[0]):
            continue  # whether there is anything in it
        found.append(set(WORD.findall("\n".join(lines[: 1 if LISTS.match(m[0]) else 3]))))
    return found


@once_a_file
def _listed_or_started_here(facts: Facts) -> list[set[str]]:
    return _listed_or_started(facts.text.text)


def _words(facts: Facts, path: ast.expr, depth: int = 0) -> set[str]:
    """The names and texts that a path is made of."""
    found = set(WORD.findall(ast.unparse(path))) - COMMON
    for n in ast.walk(path) if depth < 3 else ():
        if isinstance(n, ast.Name) and (home := facts.scopes.scope_of(n).lookup(n.id)) is not None:
            for v in facts.devices.assigned(n.id, home) or ():
                found |= _words(facts, v, depth + 1)
    return found


@once_a_file
def _read_parts(facts: Facts) -> frozenset[str]:
    """The last parts of the paths that calls of this file are given, where they may read them."""
    found: set[str] = set()
    known: set[tuple[object, str]] = set()  # names that were looked at
    for call in facts.walk(ast.Call):
        for e in _read_by(facts, call):
            if isinstance(e, ast.Name):
                key = (facts.scopes.scope_of(e).lookup(e.id), e.id)
                if key in known:
                    continue
                known.add(key)
            found |= {part for part in last_parts(facts, e) if " " not in part}
    return frozenset(found)


def _read_by(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    f, full = call.func, facts.names.resolve(call.func)
    name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
    if full is not None and full.startswith(COMPUTES) and not LOADS.search(full):
        return
    if full in LOOKS_ONLY or (full is None and name in (*SAYS, *METHODS.split())):
        return
    if written_by(facts, call) is not None or _of_this_file(facts, f):
        return
    if isinstance(f, ast.Attribute) and full is None and f.attr in READS_SELF:
        yield f.value
    yield from (e for e in given_to(call) if _may_be_path(e))


def _of_this_file(facts: Facts, f: ast.expr) -> bool:
    """A function or a class that stands here: what it reads is looked at where it reads it."""
    home = facts.scopes.scope_of(f).lookup(f.id) if isinstance(f, ast.Name) else None
    stores = home.stores.get(f.id, []) if home is not None and isinstance(f, ast.Name) else []
    return bool(stores) and all(isinstance(s, (Function, ast.ClassDef)) for s in stores)


def _may_be_path(e: ast.expr) -> bool:
    if isinstance(e, ast.Constant):
        return isinstance(e.value, str) and " " not in e.value
    return isinstance(e, (ast.Name, ast.Attribute, ast.JoinedStr, ast.BinOp, ast.Call, ast.Subscript))


def may_be_one(a: str, b: str) -> bool:
    """Whether two last parts may be the same, where `ANY` stands for whatever it is."""
    if ANY not in a and ANY not in b:
        return a == b
    (a0, _, _), (_, _, a1) = a.partition(ANY), a.rpartition(ANY)
    (b0, _, _), (_, _, b1) = b.partition(ANY), b.rpartition(ANY)
    if ANY not in a:
        return a.startswith(b0) and a.endswith(b1)
    if ANY not in b:
        return b.startswith(a0) and b.endswith(a1)
    starts = a0.startswith(b0) or b0.startswith(a0)
    return starts and (a1.endswith(b1) or b1.endswith(a1))


def last_parts(facts: Facts, e: ast.expr, depth: int = 0) -> set[str]:
    """What the last part of a path may be; `<name>` where a name tells nothing more."""
    parts = partial(last_parts, facts, depth=depth)
    match e:
        case ast.Constant(value=str(text)):
            return {text.rstrip("/").rpartition("/")[2]}
        case ast.JoinedStr(values=values):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else ANY for v in values)
            return {text.rpartition("/")[2]} if text.strip(ANY) else set().union(*map(parts, values[-1:]))
        case ast.FormattedValue(value=value):
            return parts(value)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return {_joined(a, b) for a in parts(left) for b in parts(right)}
        case ast.BinOp(op=ast.Div(), right=right):
            return parts(right)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
            return _shown(e, re.sub(r"%[-\d.]*[a-z]", ANY, text).rpartition("/")[2])
        case ast.IfExp(body=body, orelse=orelse):
            return parts(body) | parts(orelse)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _shown(e, re.sub(r"\{[^}]*\}", ANY, text).rpartition("/")[2])
        case ast.Call(func=f, args=[*_, last]) if _joins(f) and not isinstance(last, ast.Starred):
            return parts(last)
        case ast.Name() | ast.Attribute():
            return _of_name(facts, e, depth)
        case ast.Call(func=f):
            return {f"<{last_part(f)}()>", *_given_back(facts, f, depth)}
        case ast.Subscript(value=value):
            return {f"<{last_part(value)}[]>"}
    return {"<>"} if not isinstance(e, (ast.BinOp, ast.Constant)) else set()


def _given_back(facts: Facts, f: ast.expr, depth: int) -> set[str]:
    """The last parts of the paths that a function of this file gives back."""
    if depth > 3 or not isinstance(f, ast.Name) or not _of_this_file(facts, f):
        return set()
    made = [s for s in facts.walk(ast.FunctionDef) if s.name == f.id]
    values = [n.value for s in made for n in walk(s, ast.Return) if n.value is not None]
    return set().union(*(last_parts(facts, v, depth + 1) for v in values if _may_be_path(v)))


def _shown(e: ast.expr, part: str) -> set[str]:
    return {part} if part.strip(ANY) else {f"<{ast.unparse(e)}>"}


def _joined(a: str, b: str) -> str:
    return b.rpartition("/")[2] if "/" in b else a + b


def _joins(f: ast.expr) -> bool:
    name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
    return name in ("join", "joinpath", "str", "Path", "abspath", "expanduser", "fspath", "basename", "realpath")


def _of_name(facts: Facts, e: ast.Name | ast.Attribute, depth: int) -> set[str]:
    """What a name, an attribute or an option is given, and itself where that does not show."""
    name = e.id if isinstance(e, ast.Name) else e.attr
    home = facts.scopes.scope_of(e).lookup(name) if isinstance(e, ast.Name) else None
    key = (_of_name, home, name)
    if key not in facts.answers:
        facts.answers[key] = {f"<{name}>"}  # what is given itself
        facts.answers[key] = {*_given_to(facts, e, name, home, depth), f"<{name}>"}
    found: set[str] = facts.answers[key]
    return found


def _given_to(facts: Facts, e: ast.expr, name: str, home: Scope | None, depth: int) -> set[str]:
    given: list[ast.expr] = []
    if home is not None:
        given = list(facts.devices.assigned(name, home) or ())
        if name in home.params and isinstance(home.node, Function):
            given += _of_calls(facts, home.node, name)
    elif isinstance(e, ast.Attribute):
        stores = (facts.scopes.parents.get(a) for a in facts.attributes[name] if not isinstance(a.ctx, ast.Load))
        given = [s.value for s in stores if isinstance(s, ast.Assign)]
    given = [v for v in given if not isinstance(v, ast.Constant) or isinstance(v.value, str)]
    found = set().union(*(last_parts(facts, v, depth + 1) for v in given)) if depth < 4 else set()
    if f"--{name.replace('_', '-')}" in _with_hyphens(facts):
        option = rf"""["']--{name.replace("_", "[-_]")}["'][^)]*default=["']([^"']+)"""
        said = re.search(option, facts.text.text)
        found |= {said[1].rstrip("/").rpartition("/")[2]} if said is not None else set()
    return found


@once_a_file
def _with_hyphens(facts: Facts) -> str:
    return facts.text.text.replace("_", "-")


def _of_calls(facts: Facts, f: ast.AST, name: str) -> list[ast.expr]:
    """What the calls of this file give a parameter."""
    if not isinstance(f, ast.FunctionDef):
        return []
    of_class = facts.classes.holder(f)
    called = of_class.name if of_class is not None and f.name == "__init__" else f.name
    given = (argument(c, f, name, bound=of_class is not None) for c in facts.alone.calls_of(called))
    return [v for v in given if v is not None]


def is_given(facts: Facts, path: ast.expr) -> bool:
    """Whether a path is made of a parameter of its function."""
    names = [n for n in ast.walk(path) if isinstance(n, ast.Name)]
    homes = ((n, facts.scopes.scope_of(n).lookup(n.id)) for n in names)
    return any(home is not None and n.id in home.params for n, home in homes)
