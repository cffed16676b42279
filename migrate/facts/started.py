"""Processes that a loop starts one by one, each with its rank, and that are waited for: `mp.spawn` written out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arguments import argument_at
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

PROCESSES = ("torch.multiprocessing.", "multiprocessing.")
CONNECTS = "init_process_group"


@dataclass(frozen=True)
class Started:
    """`for rank in range(n): p = Process(target=fn, args=(rank, ...)); p.start()`, and what goes with it."""

    loop: ast.For
    call: ast.Call
    fn: ast.Name
    given: list[ast.expr]  # behind the rank
    n: ast.expr
    others: list[ast.stmt]  # the list of them, and the loop that waits


def makes_process(facts: Facts, call: ast.Call) -> bool:
    f = call.func
    full = facts.names.resolve(f) or ""
    if full.startswith(PROCESSES) and full.endswith(".Process"):
        return True
    # a context's: `ctx = mp.get_context("spawn"); ctx.Process(target=...)`
    return isinstance(f, ast.Attribute) and f.attr == "Process" and any(k.arg == "target" for k in call.keywords)


def started(facts: Facts) -> Iterator[Started]:
    """Such loops of a script that connects its processes to a group."""
    if "Process(" not in facts.text.text or CONNECTS not in facts.text.text:
        return
    for loop in facts.walk(ast.For):
        found = _started(facts, loop)
        if found is not None:
            yield found


def _started(facts: Facts, loop: ast.For) -> Started | None:
    n, rank = _range(loop), loop.target
    first = loop.body[0]
    call = first.value if isinstance(first, ast.Assign) and len(first.targets) == 1 else None
    process = first.targets[0] if isinstance(first, ast.Assign) else None
    if n is None or not (isinstance(rank, ast.Name) and isinstance(call, ast.Call) and isinstance(process, ast.Name)):
        return None
    fn, given = argument_at(call, "target", 1), argument_at(call, "args", 3)
    if not makes_process(facts, call) or not isinstance(fn, ast.Name) or not isinstance(given, ast.Tuple):
        return None
    if not given.elts or ast.unparse(given.elts[0]) != rank.id or len(call.args) + len(call.keywords) > 2:
        return None
    if any(isinstance(x, ast.Name) and x.id == rank.id for e in given.elts[1:] for x in walk(e)):
        return None
    if not _connects(facts, fn.id):
        return None
    held = _held(loop.body[1:], process.id)
    others = _waits(facts, loop, held, process.id) if held is not None else None
    return Started(loop, call, fn, given.elts[1:], n, others) if others is not None else None


def _connects(facts: Facts, name: str) -> bool:
    """Whether a function of this file, or one that it names, connects its process to the others."""
    return any(CONNECTS in _read(f) for f in functions_from(facts, name, _read))


def _read(f: ast.FunctionDef) -> set[str]:
    return {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in walk(f)}


def functions_from(
    facts: Facts, name: str, names: Callable[[ast.FunctionDef], Iterable[str]]
) -> Iterator[ast.FunctionDef]:
    """The function of this file that has a name, those that it names, and so on; `names`: what one names.

    Who names a class may come to any of its methods.
    """
    named = {f.name: [f] for f in facts.walk(ast.FunctionDef)}
    named |= {c.name: [f for f in c.body if isinstance(f, ast.FunctionDef)] for c in facts.walk(ast.ClassDef)}
    seen: set[ast.FunctionDef] = set()
    queue = [*named.get(name, ())]
    while queue:
        f = queue.pop()
        if f not in seen:
            seen.add(f)
            yield f
            queue += (g for n in names(f) for g in named.get(n, ()))


def names_read(node: ast.AST) -> Iterator[str]:
    """The names that it reads; `run` of `self.run`, too."""
    for n in walk(node):
        if isinstance(n, ast.Name):
            yield n.id
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
            yield n.attr


def _range(loop: ast.For) -> ast.expr | None:
    c = loop.iter
    plain = isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id == "range" and not loop.orelse
    return c.args[0] if plain and len(c.args) == 1 and not c.keywords else None  # type: ignore[attr-defined]


def _held(rest: list[ast.stmt], process: str) -> str | None:
    """The list that the started process is put into; None where the loop does something else."""
    said = [ast.unparse(s) for s in rest]
    added = [s for s in said if s.endswith(f".append({process})")]
    if sorted(said) != sorted([f"{process}.start()", *added]) or len(added) != 1:
        return None
    held = added[0].removesuffix(f".append({process})")
    return held if held.isidentifier() else None


def _waits(facts: Facts, loop: ast.For, held: str, process: str) -> list[ast.stmt] | None:
    """`held = []` and the loop that joins all in it; None where the list or a process is used for more."""
    scope = facts.scopes.scope_of(loop).lookup(held)
    if scope is None or held in scope.params or len(scope.stores.get(held, ())) != 1:
        return None
    made = facts.scopes.parents.get(next(iter(scope.stores[held])))
    if not (isinstance(made, ast.Assign) and ast.unparse(made.value) == "[]" and len(made.targets) == 1):
        return None
    found: list[ast.stmt] = [made]
    for read in facts.scopes.reads(held, scope):
        around = next((up for up in facts.scopes.ancestors(read) if isinstance(up, ast.For)), None)
        if around is loop:
            continue
        if around is None or around.iter is not read or not _only_joins(around):
            return None
        found.append(around)
    inside = {n for s in (loop, *found) for n in walk(s)}
    reads = list(facts.scopes.reads(process, facts.scopes.scope_of(loop).lookup(process) or scope))
    return found if len(found) == 2 and all(r in inside for r in reads) else None


def _only_joins(loop: ast.For) -> bool:
    said = [ast.unparse(s) for s in loop.body]
    return isinstance(loop.target, ast.Name) and said == [f"{loop.target.id}.join()"] and not loop.orelse
