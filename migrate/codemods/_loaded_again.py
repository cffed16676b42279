"""Saves of rank 0 in a lifted hook that every rank loads from later in it: none may go on before the file is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.in_course import callers_of
from ..facts.nodes import children, walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from ..facts.spelled import spelled

TOGETHER = ("all_reduce", "batch_mean")
PLAIN = ("len", "max", "min", "abs", "round", "float", "int", "bool", "sum")
OF_EPOCHS = re.compile(r"on_(train|validation|test|fit)_(epoch_)?(start|end)|on_train_batches_end")
DEPTH = 3  # of functions that call functions
LOAD = "torch.load"
GUARD = "self.trainer.is_global_zero"


def loaded_again(facts: Facts, branch: ast.If) -> bool:
    """Whether a branch of rank 0 saves what is loaded later on, in the same hook or another, or in what they call."""
    known = isinstance(branch.test, ast.Attribute) and spelled(branch.test) == GUARD
    hook = _hook_of(facts, branch) if known else None
    if hook is None or hook.name.endswith("_step"):
        return False
    saves = _calls(facts, branch, "torch.save")
    if not saves:
        return False
    below = [n for n in walk(hook, ast.Call) if n.lineno > saves[0].lineno and n not in saves]
    holder = facts.classes.holder(hook)
    others = facts.classes.methods(holder).values() if holder is not None else ()
    below += [n for f in others if f is not hook and not facts.classes.sets_up(f) for n in walk(f, ast.Call)]
    return any(_loads(facts, n, DEPTH) for n in below)


def _loads(facts: Facts, call: ast.Call, depth: int) -> bool:
    """Whether a call is torch.load(), or runs a function of the project that calls it."""
    if facts.names.resolve(call.func) == LOAD:
        return True
    return depth > 0 and any(_loads(there, c, depth - 1) for there, f in _run(facts, call) for c in walk(f, ast.Call))


def _run(facts: Facts, call: ast.Call) -> Iterator[tuple[Facts, ast.AST]]:
    """The function or class of that name, or the methods, of this file; those of another file."""
    f = facts.devices.function_of(call)
    there = found_there(facts, call.func) if f is None and facts.others else None
    if f is not None:
        yield facts, f
    elif there is not None:
        yield there[1], there[2]
    elif isinstance(call.func, ast.Attribute):
        yield from ((facts, m) for m in facts.walk(ast.FunctionDef) if m.name == call.func.attr)


def can_wait(facts: Facts, branch: ast.If) -> bool:
    """Whether it is one save, and the conditions around it, up to the hook, are the same on every rank."""
    only = branch.body[0]
    if len(branch.body) > 1 or branch.orelse or not isinstance(only, ast.Expr):
        return False
    if only.value not in _calls(facts, branch, "torch.save"):
        return False
    hook = _hook_of(facts, branch)
    for up in facts.scopes.ancestors(branch):
        if up is hook:
            return True
        if not isinstance(up, ast.If) or not _Alike(facts, up).is_alike(up.test):
            return False
    return False


def comes_alike(facts: Facts, node: ast.AST, depth: int = DEPTH) -> bool:
    """Whether a node stands in a lifted hook of an epoch, where every process comes to it as often.

    Or in a function that such hooks alone call, and where nothing is asked on the way to it.
    """
    hook = _hook_of(facts, node)
    holder = facts.classes.holder(hook) if hook is not None else None
    if hook is None or not _stands_open(facts, hook, node, asks=holder is not None):
        return False
    if holder is not None:
        return holder in facts.classes.run_by_trainer and OF_EPOCHS.fullmatch(hook.name) is not None
    callers = callers_of(facts, hook) if depth and _hook_of(facts, hook) is None else []
    if not callers or {*callers} != {*facts.devices.uses_of_function(hook)}:
        return False  # handed on, or wrapped in what may call it on some ranks alone
    return not _may_leave_before(hook, facts.scopes.statement_of(node)) and all(
        comes_alike(facts, c, depth - 1) for c in callers
    )


def _stands_open(facts: Facts, f: ast.FunctionDef, node: ast.AST, asks: bool) -> bool:
    """Whether a function comes to a node once; `asks`: below conditions, too, that are the same on every rank."""
    for up in facts.scopes.ancestors(node):
        if up is f:
            return True
        if isinstance(up, ast.If):
            if not (asks and _Alike(facts, up).is_alike(up.test)):
                return False
        elif not isinstance(up, (ast.With, ast.Expr, ast.Assign, ast.Call, ast.keyword, ast.withitem)):
            return False
    return False


def _may_leave_before(f: ast.FunctionDef, statement: ast.stmt) -> bool:
    ways_out: list[ast.stmt] = [*walk(f, ast.Return), *walk(f, ast.Raise)]
    return any(n.lineno < statement.lineno for n in ways_out)


def _calls(facts: Facts, node: ast.AST, full: str) -> list[ast.Call]:
    return [n for n in walk(node, ast.Call) if facts.names.resolve(n.func) == full]


def _hook_of(facts: Facts, node: ast.AST) -> ast.FunctionDef | None:
    return next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)


class _Alike:
    """What is the same on every rank in a hook: settings, counts of epochs, and what was brought together there."""

    def __init__(self, facts: Facts, at: ast.AST) -> None:
        self.facts = facts
        self.hook = _hook_of(facts, at)
        holder = facts.classes.holder(self.hook) if self.hook is not None else None
        steps = (
            [f for n, f in facts.classes.methods(holder).items() if n.endswith("_step")] if holder is not None else []
        )
        self.of_steps = {n.attr for f in steps for n in walk(f, ast.Attribute) if not isinstance(n.ctx, ast.Load)}
        self.asked: set[str] = set()

    def is_alike(self, e: ast.AST) -> bool:
        if isinstance(e, ast.Call):
            f = e.func
            if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "self" and f.attr in TOGETHER:
                return True
            number = isinstance(f, ast.Attribute) and f.attr in ("item", "get") and self.is_alike(f.value)
            plain = isinstance(f, ast.Name) and f.id in PLAIN
            return (number or plain) and all(self.is_alike(a) for a in given_to(e))
        if isinstance(e, ast.Attribute):
            own = isinstance(e.value, ast.Name) and e.value.id == "self"
            return e.attr not in self.of_steps if own else self.is_alike(e.value)
        if isinstance(e, ast.Name):
            return e.id == "self" or self._name(e)
        if isinstance(e, (ast.Lambda, ast.Await, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return False
        return all(self.is_alike(child) for child in children(e) if isinstance(child, ast.expr))

    def _name(self, name: ast.Name) -> bool:
        """A name of the hook by all that it is given there; one of the module by its being left alone."""
        if name.id in self.asked:
            return True
        self.asked.add(name.id)
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        if home is None or home.node is not self.hook:
            return home is not None and len(home.stores.get(name.id, ())) < 2 and name.id not in home.params
        given = self.facts.devices.assigned(name.id, home)
        return bool(given) and name.id not in home.params and all(self.is_alike(v) for v in given or ())
