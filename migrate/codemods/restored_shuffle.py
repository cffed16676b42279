"""What a DistributedSampler said about shuffling, as the `shuffle=` of its DataLoader."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..facts.arguments import argument_at, entry
from ..facts.nodes import walk
from ..facts.operands import negated
from ..facts.script import Facts
from ..facts.spelled import spelled
from .base import Change
from .sampler_phases import OF_DATA, by_phase, evaluates
from .sampler_uses import Use

OF_PROCESSES = re.compile(
    r"dist(?!ill)|ddp|fsdp|world|rank|gpu|multi|parallel|replica|tpu|xla|hvd|horovod|deepspeed", re.IGNORECASE
)


def asks_of_data(test: ast.expr) -> bool:
    """Whether a condition chooses by the phase or by what the data is, where others tell several processes from one."""
    return bool(OF_DATA.search(ast.unparse(test))) and not asks_of_processes(test)


def asks_of_processes(test: ast.expr) -> bool:
    """Whether a condition tells several processes from one, by what it names: `args.local_rank == -1`."""
    return bool(OF_PROCESSES.search(spelled(test)))


def said_by(facts: Facts, call: ast.Call) -> str | None:
    """What the sampler said about shuffling: the source of `shuffle=`, None when it keeps the order."""
    given = argument_at(call, "shuffle", 3) or spread_over(facts, call)[0]
    if given is None:
        return "True"
    return None if isinstance(given, ast.Constant) and not given.value else facts.text.get(given)


def spread_over(facts: Facts, call: ast.Call) -> tuple[ast.Constant | None, ast.expr | None]:
    """What `**options` says of shuffling, and the options that do not show whether they do."""
    found: ast.Constant | None = None
    for k in call.keywords:
        if k.arg is not None:
            continue
        made = _displayed(facts, k.value)
        if made is None or any(x.arg is None for x in walk(made, ast.keyword)):
            return None, k.value
        value = entry(made, "shuffle")
        if value is not None and not isinstance(value, ast.Constant):
            return None, k.value
        found = value or found
    return found, None


def _displayed(facts: Facts, spread: ast.expr) -> ast.expr | None:
    """The display of a dictionary that is spread, at once or by a name that nothing but that spreads it reads."""
    if isinstance(spread, ast.Name):
        scope = facts.scopes.scope_of(spread).lookup(spread.id)
        values = facts.devices.assigned(spread.id, scope) if scope is not None else None
        reads = facts.scopes.reads(spread.id, scope) if scope is not None and values else ()
        spreads = all(isinstance(k := facts.scopes.parents.get(r), ast.keyword) and k.arg is None for r in reads)
        spread = values[0] if values and len(values) == 1 and spreads else spread
    if isinstance(spread, ast.Dict) and all(isinstance(k, ast.Constant) for k in spread.keys):
        return spread
    return spread if isinstance(spread, ast.Call) and ast.unparse(spread.func) == "dict" and not spread.args else None


def restored(
    facts: Facts, use: Use, holders: Sequence[ast.AST], given: ast.expr | None, said: str | None, gone: set[ast.AST]
) -> tuple[str | None, bool]:
    """What `shuffle=` says without the sampler, and whether that takes the place of what it says now (`given`).

    `holders` are the loader, or what its keywords are kept in; `gone` is given the tests of the sampler that go.
    """
    for_evaluation = any(evaluates(facts, h) for h in holders)
    new = said if not for_evaluation else None
    new = by_phase(facts, holders[0]) if new == "True" else new
    if given is None:
        return new, False
    tests = {n for n in walk(given) if n in use.tests}
    if not isinstance(given, ast.Constant) and is_always_there(facts, use):
        gone.update(tests)
        return new, True  # what it says is False: a DataLoader refuses to shuffle beside a sampler
    known = without_sampler(given, use.tests)
    alone = for_one_process(facts, use, given) if known is None else None
    if alone is not None or known is not None:
        gone.update(tests)
        if known is not None:
            return None if known is False or for_evaluation else "True", True
        return None if alone == "False" else alone, True
    if isinstance(given, ast.Constant) and said is not None and not for_evaluation:
        return new, True
    return (facts.text.get(given), False) if said is None or for_evaluation else (new, False)


def read_again(facts: Facts, use: Use, changes: Sequence[Change]) -> tuple[ast.AST, ...]:
    """The names in what goes that the restored `shuffle=` reads: a parameter of the function, an option."""
    texts = {ast.unparse(n) for said in use.restored for n in walk(ast.parse(said, mode="eval"))}
    choosers = [chooser_of(facts, call)[0] for call in use.made]
    parts = [c.test for c in choosers if isinstance(c, (ast.If, ast.IfExp))]
    parts += [part for change in changes for part in change.gone]  # type: ignore[misc]
    named = (n for part in parts for n in walk(part) if isinstance(n, (ast.Name, ast.Attribute)))
    return tuple(n for n in named if ast.unparse(n) in texts)


def is_always_there(facts: Facts, use: Use) -> bool:
    """Whether no condition decides on the sampler, so that `sampler is None` never held."""
    return not use.alternatives and not any(_is_conditional(facts, call) for call in use.made)


def _is_conditional(facts: Facts, call: ast.Call) -> bool:
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            return True
        child = up
    return False


def by_branch(facts: Facts, use: Use) -> str | None:
    """`shuffle=` where two branches make samplers that shuffle differently: what chose between them."""
    if use.alternatives or len(use.made) != 2:
        return None
    first, second = sorted(use.made, key=lambda c: (c.lineno, c.col_offset))
    chooser: ast.AST | None = facts.scopes.parents.get(first)
    if isinstance(chooser, ast.Assign):
        chooser = facts.scopes.parents.get(chooser)
        blocks = [chooser.body, chooser.orelse] if isinstance(chooser, ast.If) else []
        if [len(b) for b in blocks] != [1, 1] or [getattr(b[0], "value", None) for b in blocks] != [first, second]:
            return None
    elif not isinstance(chooser, ast.IfExp) or [chooser.body, chooser.orelse] != [first, second]:
        return None
    test = chooser.test  # type: ignore[union-attr]
    if not _stays_as_it_is(facts, test):
        return None
    source, said = facts.text.get(test), [said_by(facts, c) for c in (first, second)]
    if said == ["True", None]:
        return source
    if said == [None, "True"]:
        return negated(source)
    return f"{said[0] or False} if {source} else {said[1] or False}"


def by_training(facts: Facts, use: Use) -> str | None:
    """`shuffle=` where only training has a sampler: `s = DistributedSampler(d) if is_train else None`."""
    if len(use.made) != 1 or said_by(facts, use.made[0]) != "True" or use.tests:
        return None
    chooser, chosen = chooser_of(facts, use.made[0])
    if not chosen or not asks_of_data(chooser.test) or not _stays_as_it_is(facts, chooser.test):  # type: ignore[union-attr]
        return None
    return facts.text.get(chooser.test)  # type: ignore[union-attr]


def chooser_of(facts: Facts, made: ast.expr) -> tuple[ast.AST | None, bool]:
    """The `if` or the conditional expression that a sampler stands in, if any, and whether in its first branch."""
    child: ast.AST = made
    chooser = facts.scopes.parents.get(child)
    if isinstance(chooser, (ast.Assign, ast.AnnAssign)):
        child, chooser = chooser, facts.scopes.parents.get(chooser)
        return chooser, isinstance(chooser, ast.If) and child in chooser.body
    return chooser, isinstance(chooser, ast.IfExp) and child is chooser.body


def by_other_than_processes(facts: Facts, use: Use) -> bool:
    """Whether something else than the number of processes decides on a sampler: `if is_train:`, `if shuffle:`."""
    choosers = [chooser_of(facts, call)[0] for call in use.made]
    return any(isinstance(c, (ast.If, ast.IfExp)) and asks_of_data(c.test) for c in choosers)


def _stays_as_it_is(facts: Facts, test: ast.expr) -> bool:
    """Whether a condition is one of names that are bound once, so that it says the same a little later."""
    for n in walk(test):
        if isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Subscript)):
            return False
        if isinstance(n, ast.Name):
            scope = facts.scopes.scope_of(n).lookup(n.id)
            if scope is not None and len(scope.stores.get(n.id, ())) + (n.id in scope.params) > 1:
                return False
    return True


def for_one_process(facts: Facts, use: Use, given: ast.expr) -> str | None:
    """`shuffle=not use_ddp` beside a sampler that there is `if use_ddp:` only, and `shuffle=train and s is None`.

    None where it asks for neither.
    """
    known = {ast.unparse(t): bool(without_sampler(t, use.tests)) for t in walk(given) if t in use.tests}
    for made in use.made:
        child: ast.AST = made
        chooser = facts.scopes.parents.get(child)
        if isinstance(chooser, (ast.Assign, ast.AnnAssign)):
            child, chooser = chooser, facts.scopes.parents.get(chooser)
        if isinstance(chooser, ast.If):
            chosen = child in chooser.body
        else:
            chosen = isinstance(chooser, ast.IfExp) and child is chooser.body
        if chosen:
            test = chooser.test  # type: ignore[union-attr]
            if isinstance(test, ast.Compare) and [ast.unparse(c) for c in test.comparators] == ["True"]:
                test = test.left
            known[ast.unparse(test)] = False
    if not any(ast.unparse(n) in known for n in walk(given) if isinstance(n, ast.expr)):
        return None
    left = ast.unparse(_Known(known).visit(ast.parse(ast.unparse(given), mode="eval").body))
    return next((facts.text.get(n) for n in walk(given) if isinstance(n, ast.expr) and ast.unparse(n) == left), left)


class _Known(ast.NodeTransformer):
    """What is left of an expression where it is known whether some conditions hold."""

    def __init__(self, known: dict[str, bool]) -> None:
        self.known = known

    def visit(self, node: ast.AST) -> ast.AST:
        known = self.known.get(ast.unparse(node)) if isinstance(node, ast.expr) else None
        if known is not None:
            return ast.Constant(known)
        self.generic_visit(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        if isinstance(node, ast.BoolOp):
            neutral = isinstance(node.op, ast.And)
            values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value is neutral)]
            if any(isinstance(v, ast.Constant) and v.value is not neutral for v in values) or not values:
                return ast.Constant(neutral if not values else not neutral)
            return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)
        return node


def without_sampler(given: ast.expr, tests: list[ast.expr]) -> bool | None:
    """What `shuffle=(sampler is None)` says when there is no sampler; None when it asks something else."""
    if given in tests:
        if isinstance(given, ast.Compare):
            return isinstance(given.ops[0], ast.Is)
        return isinstance(given, ast.UnaryOp)
    return None
