"""T9, before its branches: what rank 0 does first while the others wait at a barrier is a block of the runtime's.

`if rank != 0: dist.barrier()`, a download, `if rank == 0: dist.barrier()` becomes `with rank_zero_first():`, by what
name ever the script has it as a context of its own; `if rank == 0: prepare()` and a barrier, too, where rank 0 goes on
doing it alone. Without the barrier all would do it at once, or go on before it is done.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .codemods.base import Change, apply
from .codemods.once import FIRST
from .codemods.plain_branches import PlainBranches
from .codemods.rank_guards import done_once, evaluates, loads_state, sent_to_all
from .codemods.rewrites import source
from .facts.distribution import STATEMENTS
from .facts.nodes import walk
from .facts.operands import joined
from .facts.process_names import FLAG_NAME, D
from .facts.runtime_names import imported_as
from .facts.script import Facts
from .facts.started import functions_from, names_read
from .facts.text import Text
from .lift.shape.edits import Edits
from .lift.splice import Splice, indent
from .line_map import line_map
from .report import Edit, Note, at_line

BARRIERS = {D + "barrier", D + "monitored_barrier"}
CODE = PlainBranches.code
STEPS = ("backward", "eval", "zero_grad", "training_step")
WAITS = re.compile("barrier|synchronize")
REMARK = re.compile(r"#[^\r\n]*")
WHY = "rank 0 first, and the others once it is through"


@dataclass
class Turn:
    """Statements that rank 0 does first; `before` and `after` are what makes the others wait."""

    before: list[ast.stmt]
    body: list[ast.stmt]
    after: list[ast.stmt]
    test: ast.expr
    when: str = ""
    per_node: bool = False


def in_turns(facts: Facts) -> tuple[Facts, list[Edit], list[Note]]:
    """The script with its turns as blocks of the runtime's; notes where the result has no runtime."""
    original, edits = facts, list[Edit]()
    while WAITS.search(facts.text.text) and (found := list(_apart(facts, _turns(facts)))):
        if not facts.ours:
            says = "every process does at once what rank 0 did first: prepare_data() is done by one"
            return facts, [], [_note(facts, t.before[0] if t.before else t.body[0], says) for t in found]
        line = line_map(facts.text.text, original.text.text)
        text = Edits(facts)
        for turn in found:
            _write(text, turn)
            edits += [at_line(e, line) for e in _told(facts, turn)]
        facts = facts.after(text.done())
    contexts = list(_contexts(facts)) if facts is not original else []
    if contexts:
        line = line_map(facts.text.text, original.text.text)
        edits += [at_line(c.edit, line) for c in contexts]
        facts = facts.after(apply(facts, contexts))
    return facts, edits, []


def _note(facts: Facts, node: ast.AST, says: str) -> Note:
    line, column, _, _ = facts.text.key(node)
    return Note(line, column + 1, CODE, f"`{facts.short(node)}`: {says}")


def _told(facts: Facts, turn: Turn) -> Iterator[Edit]:
    for s in (*turn.before, *turn.after):
        line, column, _, _ = facts.text.key(s)
        yield Edit(line, column + 1, CODE, f"`{facts.short(s)}` became `with {_head(facts, turn)}:`: {WHY}", True)
    for s in turn.body if turn.after else ():
        line, column, _, _ = facts.text.key(s)
        yield Edit(line, column + 1, CODE, f"`{facts.short(s)}` is in `with {_head(facts, turn)}:` now: {WHY}", True)


def _apart(facts: Facts, turns: Iterator[Turn]) -> Iterator[Turn]:
    """Those that do not stand in one another, the outer ones."""
    end = 0
    for turn in sorted(turns, key=lambda t: (*t.before, *t.body)[0].lineno):
        whole = [*turn.before, *turn.body, *turn.after]
        if whole[0].lineno > end and not any(map(Splice(facts.text).shares_a_line, whole)):
            end = max(s.end_lineno or 0 for s in whole)
            yield replace(turn, per_node=_once_a_node(facts, turn.test))


# -- what takes turns ---------------------------------------------------------------------------------------------


def _turns(facts: Facts) -> Iterator[Turn]:
    for branch in facts.walk(ast.If):
        block = facts.scopes.block_of(branch)
        if facts.text.is_elif(branch):
            continue
        rest = block[block.index(branch) + 1 :]
        zero, others = _asks(facts, branch.test)
        if zero is False and _only_waits(facts, branch):
            yield from _until_let_go(facts, branch, rest, others)
        elif zero is True and others == "" and branch.orelse:
            yield from _in_both(facts, branch)
        elif _of_rank_zero(facts, branch) and rest and _waits(facts, rest[0]) and _prepares(facts, branch, rest[1:]):
            yield Turn([], [branch], rest[:1], branch.test)


def _until_let_go(facts: Facts, branch: ast.If, rest: list[ast.stmt], when: str) -> Iterator[Turn]:
    """`if rank != 0: dist.barrier()` and what stands between it and `if rank == 0: dist.barrier()`."""
    for i, s in enumerate(rest):
        if isinstance(s, ast.If) and _asks(facts, s.test) == (True, when) and _only_waits(facts, s):
            if i and not any(isinstance(n, ast.Return) for x in rest[:i] for n in walk(x)):
                yield Turn([branch], rest[:i], [s], branch.test, when)
            return


def _in_both(facts: Facts, branch: ast.If) -> Iterator[Turn]:
    """`if rank == 0: prepare(); dist.barrier()`, `else: dist.barrier(); prepare()`."""
    here, there = branch.body, branch.orelse
    if len(here) > 1 and _is_barrier(facts, here[-1]) and _is_barrier(facts, there[0]):
        alike = [ast.unparse(s) for s in here[:-1]] == [ast.unparse(s) for s in there[1:]]
        yield Turn([branch], here[:-1] if alike else [branch], [], branch.test)


def _of_rank_zero(facts: Facts, branch: ast.If) -> bool:
    """`if rank == 0 and not os.path.exists(path):`"""
    test = branch.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return not branch.orelse and any(facts.worlds.by_rank(v) is True for v in parts)


def _asks(facts: Facts, test: ast.expr) -> tuple[bool | None, str]:
    """Whether rank 0 or the others go there, and the source of what else is asked: `rank != 0 and not evaluate`."""
    zero = facts.worlds.by_rank(test)
    if zero is not None or not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return zero, ""
    ranks = {facts.worlds.by_rank(v) for v in test.values} - {None}
    unasked = [v for v in test.values if facts.worlds.by_rank(v) is None and facts.worlds.plain(v) is None]
    others = [v for v in unasked if not FLAG_NAME.match(getattr(v, "attr", getattr(v, "id", "")))]
    plain = len(ranks) == 1 and not any(isinstance(n, (ast.Call, ast.NamedExpr)) for v in others for n in walk(v))
    return (ranks.pop(), joined((facts.text.get(v) for v in others), "and") if others else "") if plain else (None, "")


def _is_barrier(facts: Facts, s: ast.stmt) -> bool:
    """`dist.barrier()`, or a call of a function that is little else: `utils.barrier()`, `comm.synchronize()`."""
    call = s.value if isinstance(s, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    full = facts.names.resolve(call.func) or ""
    if full.startswith("torch.") or call.args or call.keywords:
        return full in BARRIERS
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    own = [f for f in facts.walk(ast.FunctionDef) if f.name == named]
    calls = [facts.names.resolve(n.func) or "" for f in own for s in f.body for n in walk(s, ast.Call)]
    only = any(c in BARRIERS for c in calls) and all(c.startswith(D) for c in calls)
    return only if own else named in ("barrier", "synchronize")


def _only_waits(facts: Facts, branch: ast.If) -> bool:
    return not branch.orelse and len(branch.body) == 1 and _is_barrier(facts, branch.body[0])


def _waits(facts: Facts, s: ast.stmt) -> bool:
    """A barrier, or one where there are several processes."""
    if isinstance(s, ast.If):
        return _only_waits(facts, s) and facts.worlds.plain(s.test) is not None
    return _is_barrier(facts, s)


def _prepares(facts: Facts, branch: ast.If, rest: list[ast.stmt]) -> bool:
    """Whether rank 0 alone goes on doing what stands there, once, and what comes below may need it."""
    if done_once(facts, branch) or sent_to_all(facts, branch) or loads_state(facts, branch):
        return False
    if any(isinstance(n, ast.Call) and evaluates(facts, n) for s in branch.body for n in walk(s)):
        return False
    goes_on = [s for s in rest if not (isinstance(s, ast.Expr) and _resolved(facts, s.value) in STATEMENTS)]
    return bool(goes_on) and not _repeated(facts, branch)


def _resolved(facts: Facts, value: ast.expr) -> str | None:
    return facts.names.resolve(value.func) if isinstance(value, ast.Call) else None


def _repeated(facts: Facts, node: ast.AST, depth: int = 0) -> bool:
    """Whether it stands in a loop, or in a function that is called in one."""
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (ast.For, ast.While)) and _trains(facts, up):
            return True
        if isinstance(up, ast.FunctionDef):
            uses = facts.scopes.reads(up.name, facts.scopes.scope_of(up)) if depth < 3 else ()
            return facts.classes.holder(up) is not None or any(_repeated(facts, r, depth + 1) for r in uses)
    return False


def _trains(facts: Facts, loop: ast.AST) -> bool:
    """Whether steps or evaluations are made in a loop, or in what it calls."""
    called = (f for name in names_read(loop) for f in functions_from(facts, name, names_read))
    return any(isinstance(n, ast.Attribute) and n.attr in STEPS for f in (loop, *called) for n in walk(f))


# -- writing ------------------------------------------------------------------------------------------------------


def _once_a_node(facts: Facts, test: ast.expr) -> bool:
    """`local_rank != 0`, or with more that is asked."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    asked = parts if facts.worlds.by_rank(test) is None else [test]
    return any(facts.worlds.once_a_node(p) for p in asked)


def _head(facts: Facts, turn: Turn) -> str:
    given = [turn.when, "per_node=True" if turn.per_node else ""]
    return f"{imported_as(facts, FIRST)}({', '.join(filter(None, given))})"


def _write(edits: Edits, turn: Turn) -> None:
    """The block, with the comments of what goes."""
    facts, text = edits.facts, edits.facts.text
    whole = [*turn.before, *turn.body, *turn.after]
    first, last, margin = whole[0], whole[-1], text.margin(whole[0])
    remarks = _remarks(facts, turn.before if turn.after else [])
    head = f"{margin}with {_head(facts, turn)}:" + "".join(f"  {r}" for r in remarks)
    if turn.before == turn.body:
        lines = _moved(facts, _without_barriers(text, first), margin)
    elif not turn.after:  # both branches do it
        last = first
        lines = [line.rstrip("\r\n") for line in text.lines[first.lineno : turn.body[-1].end_lineno]]
    else:
        start = (first.end_lineno or 0) + 1 if turn.before else first.lineno
        kept = [line.rstrip("\r\n") for line in text.lines[start - 1 : turn.after[0].lineno - 1]]
        lines = [*_moved(facts, kept, margin), *(margin + remark for remark in _remarks(facts, turn.after))]
    edits.replace_lines(first.lineno, last.end_lineno or 0, [head, *lines])


def _moved(facts: Facts, lines: list[str], margin: str) -> list[str]:
    """Lines of a block one step further in."""
    moved = indent([line.removeprefix(margin) for line in lines], facts.indentation)
    return [margin + line if line.strip() else line for line in moved]


def _without_barriers(text: Text, branch: ast.stmt) -> list[str]:
    """The lines of a condition without the last statement of its body, and the first of what is done otherwise."""
    assert isinstance(branch, ast.If)
    last, first = branch.body[-1], branch.orelse[0]
    gone = {*_lines(last), *_lines(first)}
    if len(branch.orelse) == 1:
        gone |= set(range((last.end_lineno or 0) + 1, (branch.end_lineno or 0) + 1))
    return [text.lines[n - 1].rstrip("\r\n") for n in _lines(branch) if n not in gone]


def _lines(s: ast.stmt) -> range:
    return range(s.lineno, (s.end_lineno or s.lineno) + 1)


def _remarks(facts: Facts, statements: list[ast.stmt]) -> list[str]:
    """The comments of the lines that go."""
    lines = [n for s in statements for n in _lines(s)]
    return [m.group() for n in lines if (m := REMARK.search(facts.text.lines[n - 1])) is not None]


def _contexts(facts: Facts) -> Iterator[Change]:
    """A context of the script's own that is nothing but `with rank_zero_first(): yield`, where all its uses show."""
    first = imported_as(facts, FIRST)
    for f in facts.walk(ast.FunctionDef):
        scope = facts.scopes.scope_of(f)
        body = [s for s in f.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        only = body[0] if len(body) == 1 and f.decorator_list and not scope.is_class else None
        new = ast.unparse(only.items[0].context_expr) if isinstance(only, ast.With) else ""
        plain = isinstance(only, ast.With) and len(only.body) == 1 and ast.unparse(only.body[0]) == "yield"
        if not (plain and re.fullmatch(rf"{first}\((per_node=True)?\)", new)) or facts.is_library or facts.imported:
            continue
        calls = [facts.scopes.parents.get(r) for r in facts.scopes.reads(f.name, scope)]
        if not calls or not all(isinstance(facts.scopes.parents.get(c or f), ast.withitem) for c in calls):
            continue
        line, column, _, _ = facts.text.key(f)
        yield Change(f, Edit(line, column + 1, CODE, f"{f.name}() removed: {FIRST} does it", True), None, (f,))
        for c in calls:
            if isinstance(c, ast.Call):
                line, column, _, _ = facts.text.key(c)
                says = f"`{facts.short(c)}` became `{new}`: {WHY}"
                yield Change(c, Edit(line, column + 1, CODE, says, True), source(new), (*c.args, c.func))
