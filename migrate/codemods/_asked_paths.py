"""`if os.path.exists(path):` where ranks would find another answer: one of them makes what is asked for.
So it is with `assert not os.path.exists(path)`.

So it is with `while os.path.exists(run): run = another`, and with what a folder holds (`len(os.listdir(run))`).

`if os.path.exists(run): raise SystemExit` and then `os.makedirs(run)`: a rank that comes late finds the folder of the
others, and ends. `if not os.path.exists(path): torch.save(x, path)`: it does not come to a save that waits for it. Nor
does it where the branch calls a function that saves.
"""

from __future__ import annotations

import ast

from ..facts.alone import WAYS_OUT
from ..facts.arguments import given_to
from ..facts.held import class_named
from ..facts.in_course import in_course
from ..facts.nodes import walk
from ..facts.read_again import read_again
from ..facts.script import Facts
from ..facts.written_files import written_by
from ._writers import WRITERS

Asking = ast.If | ast.Assert | ast.While
COUNTS = ("os.listdir", "glob.glob", "os.path.getsize", "os.path.getmtime")
QUESTIONS = {*(f"os.path.{n}" for n in ("exists", "isdir", "isfile", "lexists")), *COUNTS}
METHODS = ("exists", "is_dir", "is_file")  # of a path of pathlib
MAKES = ("os.makedirs", "os.mkdir")
REMOVES = {"shutil.rmtree", *(f"os.{n}" for n in ("remove", "unlink", "rmdir", "removedirs"))}
SAYS = ("print", "info", "warning", "debug")


def asked_paths(facts: Facts, branch: Asking, anywhere: bool = False) -> list[ast.Call]:
    """The questions of a condition that rank 0 has to answer for all; `anywhere`: or that each would have to ask."""
    calls = [n for n in walk(branch.test, ast.Call) if path_asked(facts, n) is not None]
    in_class = any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(branch))
    if not calls or not (in_course(facts, branch) or (anywhere and not in_class)):
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


def removed_by(facts: Facts, branch: Asking) -> list[ast.Call]:
    """What the branch takes away for all ranks: none may make it anew before it is gone."""
    if isinstance(branch, ast.Assert):
        return []
    lines = [s.value for s in (*branch.body, *branch.orelse) if isinstance(s, ast.Expr)]
    return [c for c in lines if isinstance(c, ast.Call) and facts.names.resolve(c.func) in REMOVES]


def _saves(facts: Facts, branch: ast.If | ast.While) -> bool:
    """Whether a branch leads to a save that ranks wait for, in the functions that it calls too."""
    seen: set[ast.AST] = set()
    leaves = any(isinstance(n, WAYS_OUT) for s in branch.body for n in walk(s))
    open_nodes: list[ast.AST] = [*branch.body, *branch.orelse, *(_below(facts, branch) if leaves else ())]
    while open_nodes:
        for n in walk(open_nodes.pop(), ast.Call):
            if _is_awaited(facts, n):
                return True
            f = _called(facts, n)
            if f is not None and f not in seen:
                seen.add(f)
                open_nodes += f.body
    return False


def _is_awaited(facts: Facts, call: ast.Call) -> bool:
    if facts.names.resolve(call.func) == "torch.save":
        return isinstance(facts.scopes.parents.get(call), ast.Expr)
    written = written_by(facts, call)
    return written is not None and read_again(facts, call, written.path)


def _called(facts: Facts, call: ast.Call) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of this file that a call enters: a method of its own class by `self`, of a class its constructor."""
    f = call.func
    if isinstance(f, ast.Attribute):
        own = next((up for up in facts.scopes.ancestors(call) if isinstance(up, ast.ClassDef)), None)
        return facts.classes.methods(own).get(f.attr) if own is not None and facts.classes.is_self(f.value) else None
    made = class_named(facts, f)
    return facts.classes.methods(made).get("__init__") if made is not None else facts.devices.function_of(call)


def _decides(facts: Facts, branch: ast.If | ast.While, question: ast.Call) -> bool:
    """Whether the script does something where the path is there, and makes it a folder where it is not, or below."""
    there, missing = branch.body, branch.orelse
    if facts.names.resolve(question.func) in COUNTS:  # compared in one way or another
        there, missing = [*there, *missing], []
    elif _is_negated(facts, question):
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
    calls = (n for s in by for n in walk(s, ast.Call))
    return any(ast.dump(x) == path for n in calls for a in _made(facts, n) for x in walk(a))


def _only_says(s: ast.stmt) -> bool:
    if isinstance(s, ast.Pass):
        return True
    call = s.value if isinstance(s, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    return (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in SAYS
