"""What a DistributedSampler said about shuffling, as the `shuffle=` of its DataLoader."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..facts.arguments import argument_at
from ..facts.nodes import walk
from ..facts.operands import negated
from ..facts.script import Facts
from .base import Change
from .sampler_uses import Use

EVALUATES = re.compile(
    r"(^|[^a-z])(val|valid|validation|test|testing|eval|evaluate|evaluation|dev|predict|inference)"
    r"(set|data|dataset|loader|dataloader|dl|ds)?([^a-z]|$)"
)

# conditions that ask for the phase or the data: `if is_train:`; not for the processes: `if train and distributed:`
OF_DATA = re.compile(
    r"(^|[^a-z])(is_?)?(train(ing|er)?|shuffled?|phase|split|mode|stage|subset|val|valid(ation)?|test(ing)?"
    r"|eval(uate|uation)?|infer(ence)?|random|iterable(dataset)?)([^a-z]|$)",
    re.IGNORECASE,
)
OF_PROCESSES = re.compile(
    r"dist(?!ill)|ddp|fsdp|world|rank|gpu|multi|parallel|replica|tpu|xla|hvd|horovod|deepspeed", re.IGNORECASE
)


def asks_of_data(test: ast.expr) -> bool:
    """Whether a condition chooses by the phase or by what the data is, where others tell several processes from one."""
    text = ast.unparse(test)
    return bool(OF_DATA.search(text)) and not OF_PROCESSES.search(text)


def said_by(facts: Facts, call: ast.Call) -> str | None:
    """What the sampler said about shuffling: the source of `shuffle=`, None when it keeps the order."""
    given = argument_at(call, "shuffle", 3)
    if given is None:
        return "True"
    return None if isinstance(given, ast.Constant) and not given.value else facts.text.get(given)


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
    parts = [c.test for c in choosers if isinstance(c, ast.If | ast.IfExp)]
    parts += [part for change in changes for part in change.gone]  # type: ignore[misc]
    named = (n for part in parts for n in walk(part) if isinstance(n, ast.Name | ast.Attribute))
    return tuple(n for n in named if ast.unparse(n) in texts)


def is_always_there(facts: Facts, use: Use) -> bool:
    """Whether no condition decides on the sampler, so that `sampler is None` never held."""
    return not use.alternatives and not any(_is_conditional(facts, call) for call in use.made)


def _is_conditional(facts: Facts, call: ast.Call) -> bool:
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.If | ast.IfExp) and child is not up.test:
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
    if isinstance(chooser, ast.Assign | ast.AnnAssign):
        child, chooser = chooser, facts.scopes.parents.get(chooser)
        return chooser, isinstance(chooser, ast.If) and child in chooser.body
    return chooser, isinstance(chooser, ast.IfExp) and child is chooser.body


def by_other_than_processes(facts: Facts, use: Use) -> bool:
    """Whether something else than the number of processes decides on a sampler: `if is_train:`, `if shuffle:`."""
    choosers = [chooser_of(facts, call)[0] for call in use.made]
    return any(isinstance(c, ast.If | ast.IfExp) and asks_of_data(c.test) for c in choosers)


def by_phase(facts: Facts, holder: ast.AST) -> str | None:
    """The source of `shuffle=` in `{x: DataLoader(...) for x in ["train", "val"]}`: what evaluates keeps its order.

    The same in `for x, d in (("train", a), ("val", b)):`, in `for x, d in sets.items():`, and in a function that is
    called with the phase.
    """
    for up in facts.scopes.ancestors(holder):
        for loop in getattr(up, "generators", [up] if isinstance(up, ast.For) else []):
            columns = [(loop.target, _gone_through(facts, loop.iter))]
            if isinstance(loop.target, ast.Tuple) and all(isinstance(row, ast.Tuple) for _, r in columns for row in r):
                rows = [row.elts for row in columns[0][1] if isinstance(row, ast.Tuple)]
                columns = list(zip(loop.target.elts, zip(*rows, strict=False), strict=False))
            for target, values in columns:
                if isinstance(target, ast.Name) and (said := _of_phases(target.id, values)) is not None:
                    return said or None
        if isinstance(up, ast.FunctionDef):
            scope = facts.scopes.by_node[up]
            for name in (n for n in scope.params if OF_DATA.search(n) and n not in scope.stores):
                given = [*(facts.devices.given(scope, name) or ())]
                if (said := _of_phases(name, given)) is not None:
                    return said or None
            break
    return "True"


def _gone_through(facts: Facts, over: ast.expr, depth: int = 0) -> Sequence[ast.expr]:
    """The elements of what a loop goes through: a list, a dictionary's keys or items; none where they are unknown."""
    if isinstance(over, ast.List | ast.Tuple | ast.Set):
        return over.elts
    if isinstance(over, ast.Dict):
        return [k for k in over.keys if k is not None] if all(over.keys) else ()
    if isinstance(over, ast.DictComp) and len(over.generators) == 1:
        named = ast.unparse(over.key) == ast.unparse(over.generators[0].target)
        return _gone_through(facts, over.generators[0].iter, depth + 1) if named and depth < 4 else ()
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
        keys = _gone_through(facts, over.func.value, depth + 1) if over.func.attr in ("items", "keys") else ()
        return [ast.Tuple([k, k], ast.Load()) for k in keys] if over.func.attr == "items" else keys
    if isinstance(over, ast.Name) and depth < 4:
        scope = facts.scopes.scope_of(over).lookup(over.id)
        values = facts.devices.assigned(over.id, scope) if scope is not None else None
        return _gone_through(facts, values[0], depth + 1) if values and len(values) == 1 else ()
    return ()


def _of_phases(name: str, values: Sequence[ast.expr]) -> str | None:
    """When a name that has these values is that of training; "" where never, None where they tell no phases apart."""
    said = [getattr(v, "value", None) for v in values]
    if said and all(isinstance(v, bool) for v in said) and len(set(said)) > 1:
        if re.match(r"(is_?)?train(ing)?$|shuffle$", name):
            return name
        return f"not {name}" if EVALUATES.search(name.lower()) else None
    phases = [v for v in dict.fromkeys(said) if isinstance(v, str)]
    shuffled = [p for p in phases if not EVALUATES.search(p.lower())]
    if not said or not all(isinstance(v, str) for v in said) or len(shuffled) == len(phases):
        return None
    several = f"{name} in ({', '.join(map(repr, shuffled))})"
    return several if len(shuffled) > 1 else f"{name} == {shuffled[0]!r}" if shuffled else ""


def _stays_as_it_is(facts: Facts, test: ast.expr) -> bool:
    """Whether a condition is one of names that are bound once, so that it says the same a little later."""
    for n in walk(test):
        if isinstance(n, ast.Call | ast.NamedExpr | ast.Await | ast.Subscript):
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
        if isinstance(chooser, ast.Assign | ast.AnnAssign):
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


def evaluates(facts: Facts, holder: ast.AST) -> bool:
    """Whether the names around a loader say that it is for evaluation."""
    names: list[str] = []
    for up in facts.scopes.ancestors(holder):
        if isinstance(up, ast.Assign | ast.AnnAssign):
            names += [ast.unparse(t) for t in getattr(up, "targets", None) or [up.target]]  # type: ignore[union-attr]
        elif isinstance(up, ast.keyword) and up.arg:
            names.append(up.arg)
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(up.name)
            break
    if isinstance(holder, ast.Call) and holder.args:
        names.append(ast.unparse(holder.args[0])[:80])
    text = " ".join(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", n).lower() for n in names)
    return bool(EVALUATES.search(text)) and not re.search(r"(^|[^a-z])(train|trn)", text)
