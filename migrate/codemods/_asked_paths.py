"""`if os.path.exists(path):` where ranks would find another answer: one of them makes what is asked for.

`if os.path.exists(run): raise SystemExit` and then `os.makedirs(run)`: a rank that comes late finds the folder of the
others, and ends. `if not os.path.exists(path): torch.save(x, path)`: it does not come to a save that waits for it.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts

QUESTIONS = {f"os.path.{n}" for n in ("exists", "isdir", "isfile", "lexists")}
MAKES = ("os.makedirs", "os.mkdir")
REMOVES = {"shutil.rmtree", *(f"os.{n}" for n in ("remove", "unlink", "rmdir", "removedirs"))}
SAYS = ("print", "info", "warning", "debug")


def asked_paths(facts: Facts, branch: ast.If) -> list[ast.Call]:
    """The questions of a condition that rank 0 has to answer for all."""
    calls = [n for n in walk(branch.test) if isinstance(n, ast.Call) and facts.names.resolve(n.func) in QUESTIONS]
    calls = [c for c in calls if len(c.args) == 1 and not isinstance(c.args[0], ast.Starred)]
    if not calls or any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(branch)):
        return []
    if facts.alone.reached_by(branch) != {False}:
        return []
    return calls if _saves(facts, branch) or any(_decides(facts, branch, c) for c in calls) else []


def removed_by(facts: Facts, branch: ast.If) -> list[ast.Call]:
    """What the branch takes away for all ranks: none may make it anew before it is gone."""
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
    negated = isinstance(facts.scopes.parents.get(question), ast.UnaryOp)
    there, missing = (branch.orelse, branch.body) if negated else (branch.body, branch.orelse)
    if not there or all(_only_says(s) for s in there):
        return False
    up = facts.scopes.parents.get(branch)
    blocks = [getattr(up, field, None) for field in ("body", "orelse", "finalbody")]
    block = next((b for b in blocks if isinstance(b, list) and branch in b), [])
    later = block[block.index(branch) + 1 :] if block else []
    path = ast.dump(question.args[0])
    return any(
        isinstance(n, ast.Call)
        and facts.names.resolve(n.func) in MAKES
        and any(ast.dump(x) == path for a in n.args[:1] for x in walk(a))
        for s in (*there, *missing, *later)
        for n in walk(s)
    )


def _only_says(s: ast.stmt) -> bool:
    if isinstance(s, ast.Pass):
        return True
    call = s.value if isinstance(s, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    return (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in SAYS
