"""`if os.path.exists(path):` where ranks would find another answer: one of them makes what is asked for.
So it is with `assert not os.path.exists(path)`.

`if os.path.exists(run): raise SystemExit` and then `os.makedirs(run)`: a rank that comes late finds the folder of the
others, and ends. `if not os.path.exists(path): torch.save(x, path)`: it does not come to a save that waits for it.
"""

from __future__ import annotations

import ast

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from ._writers import WRITERS

QUESTIONS = {f"os.path.{n}" for n in ("exists", "isdir", "isfile", "lexists")}
METHODS = ("exists", "is_dir", "is_file")  # of a path of pathlib
MAKES = ("os.makedirs", "os.mkdir")
REMOVES = {"shutil.rmtree", *(f"os.{n}" for n in ("remove", "unlink", "rmdir", "removedirs"))}
SAYS = ("print", "info", "warning", "debug")


def asked_paths(facts: Facts, branch: ast.If | ast.Assert) -> list[ast.Call]:
    """The questions of a condition that rank 0 has to answer for all."""
    calls = [n for n in walk(branch.test) if isinstance(n, ast.Call) and path_asked(facts, n) is not None]
    if not calls or any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(branch)):
        return []
    if facts.alone.reached_by(branch) != {False}:
        return []
    if isinstance(branch, ast.Assert):
        return calls if any(_is_negated(facts, c) and _is_made(facts, c, _below(facts, branch)) for c in calls) else []
    return calls if _saves(facts, branch) or any(_decides(facts, branch, c) for c in calls) else []


def path_asked(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The path that `os.path.exists(path)` or `path.exists()` asks for."""
    if facts.names.resolve(call.func) in QUESTIONS:
        return call.args[0] if len(call.args) == 1 and not isinstance(call.args[0], ast.Starred) else None
    method = isinstance(call.func, ast.Attribute) and call.func.attr in METHODS and not call.args and not call.keywords
    return call.func.value if method else None  # type: ignore[attr-defined]


def _made(facts: Facts, call: ast.Call) -> list[ast.expr]:
    """What `os.makedirs(path)` or `path.mkdir()` makes, or a writer that is given the path of its files."""
    full = facts.names.resolve(call.func)
    if full in MAKES:
        return call.args[:1]
    if full in WRITERS:
        return given_to(call)
    return [call.func.value] if isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir" else []


def removed_by(facts: Facts, branch: ast.If | ast.Assert) -> list[ast.Call]:
    """What the branch takes away for all ranks: none may make it anew before it is gone."""
    if isinstance(branch, ast.Assert):
        return []
    lines = [s.value for s in (*branch.body, *branch.orelse) if isinstance(s, ast.Expr)]
    return [c for c in lines if isinstance(c, ast.Call) and facts.names.resolve(c.func) in REMOVES]


def _saves(facts: Facts, branch: ast.If) -> bool:
    return any(
        isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and facts.names.resolve(n.value.func) == "torch.save"
        for s in (*branch.body, *branch.orelse)
        for n in walk(s)
    )


def _decides(facts: Facts, branch: ast.If, question: ast.Call) -> bool:
    """Whether the script does something where the path is there, and makes it a folder where it is not, or below."""
    there, missing = branch.body, branch.orelse
    if _is_negated(facts, question):
        there, missing = missing, there
    if not there or all(_only_says(s) for s in there):
        return False
    return _is_made(facts, question, [*there, *missing, *_below(facts, branch)])


def _is_negated(facts: Facts, question: ast.Call) -> bool:
    return isinstance(facts.scopes.parents.get(question), ast.UnaryOp)


def _below(facts: Facts, s: ast.stmt) -> list[ast.stmt]:
    """The statements of its block that come after one."""
    block = facts.scopes.block_of(s)
    return block[block.index(s) + 1 :] if block else []


def _is_made(facts: Facts, question: ast.Call, by: list[ast.stmt]) -> bool:
    """Whether statements make what a question asks for, or something below it."""
    asked = path_asked(facts, question)
    path = ast.dump(asked) if asked is not None else ""
    calls = (n for s in by for n in walk(s) if isinstance(n, ast.Call))
    return any(ast.dump(x) == path for n in calls for a in _made(facts, n) for x in walk(a))


def _only_says(s: ast.stmt) -> bool:
    if isinstance(s, ast.Pass):
        return True
    call = s.value if isinstance(s, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    return (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in SAYS
