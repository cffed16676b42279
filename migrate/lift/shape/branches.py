"""A training that both branches of a condition call is called once, with arguments that the condition chooses.

`if rank == 0: train(model, writer)` with `else: train(model, None)` is `train(model, writer if rank == 0 else None)`,
where the condition has the same answer before and after the call and asking changes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...codemods.once import ASKS, ON_NODE
from ...facts.nodes import walk
from ...facts.runtime_names import runtime_name
from ...facts.script import Facts
from ..backwards import training_backwards
from ..splice import Splice, indent
from .calls import all_calls, enclosing_function
from .edits import Edits, block_lines

ASKED = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop, ast.boolop)
ASKED_TOO = (ast.unaryop, ast.expr_context)


def call_in_one_place(facts: Facts) -> str | None:
    """The text with the two calls of one training function as one; None where there are none."""
    for f in _training(facts):
        calls = all_calls(facts, f)
        branch = _branch(facts, calls) if len(calls) == 2 else None
        if branch is None or not _is_steady(facts, branch.test):
            continue
        first, second = sorted(calls, key=lambda c: c.lineno)
        chosen = _chosen(facts, branch, first, second)
        if chosen is not None:
            return _written(facts, branch, facts.scopes.statement_of(first), facts.scopes.statement_of(second), chosen)
    return None


def _training(facts: Facts) -> Iterator[ast.FunctionDef]:
    found: set[ast.AST] = set()
    for call in training_backwards(facts):
        f = enclosing_function(facts, call)
        if f is not None and f not in found:
            found.add(f)
            yield f


def _branch(facts: Facts, calls: list[ast.Call]) -> ast.If | None:
    """The condition whose two branches make the calls, as statements of their own that do the same with the value."""
    one, other = (facts.scopes.statement_of(c) for c in calls)
    branch = facts.scopes.parents.get(one)
    if not isinstance(branch, ast.If) or facts.scopes.parents.get(other) is not branch or facts.text.is_elif(branch):
        return None
    if (one in branch.body) == (other in branch.body) or any(map(Splice(facts.text).shares_a_line, (one, other))):
        return None
    for s, call in zip((one, other), calls, strict=True):
        if not isinstance(s, (ast.Expr, ast.Assign)) or s.value is not call:
            return None
    targets = [getattr(s, "targets", []) for s in (one, other)]
    plain = all(isinstance(n, (ast.Name, ast.Tuple, ast.expr_context)) for t in targets[0] for n in walk(t))
    return branch if plain and [*map(ast.dump, targets[0])] == [*map(ast.dump, targets[1])] else None


def _is_steady(facts: Facts, test: ast.expr) -> bool:
    """Whether it answers alike whenever it is asked: of the rank, of names that are bound once, of options."""
    for n in walk(test):
        if isinstance(n, ast.Call):
            if not _asks(facts, n):
                return False
        elif isinstance(n, ast.Attribute):
            if not all(_only_reads(facts, a) for a in facts.attributes[n.attr]):
                return False
        elif isinstance(n, ast.Name):
            if runtime_name(facts, n) not in (ASKS, ON_NODE) and not (
                _bound_once(facts, n) and _has_one_value(facts, n)
            ):
                return False
        elif not isinstance(n, (*ASKED, *ASKED_TOO)):
            return False
    return True


def _only_reads(facts: Facts, a: ast.Attribute) -> bool:
    """Whether an attribute is read, and nothing is asked of its value that may change that."""
    up = facts.scopes.parents.get(a)
    return isinstance(a.ctx, ast.Load) and not (isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is a)


def _has_one_value(facts: Facts, n: ast.Name) -> bool:
    """Whether what a name stands for cannot become true or false: compared, of an option, or made by a comparison."""
    if isinstance(facts.scopes.parents.get(n), (ast.Compare, ast.Attribute)):
        return True
    scope = facts.scopes.scope_of(n).lookup(n.id)
    values = facts.devices.assigned(n.id, scope) or [] if scope is not None else []
    return bool(values) and all(isinstance(v, (ast.Compare, ast.Constant)) or _asks(facts, v) for v in values)


def _asks(facts: Facts, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and not node.args and runtime_name(facts, node.func) in (ASKS, ON_NODE)


def _bound_once(facts: Facts, name: ast.Name) -> bool:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    if scope is None or any(name.id in s.globals for s in facts.scopes.by_node.values()):
        return False
    return len(scope.stores.get(name.id, ())) + (name.id in scope.params) == 1


def _chosen(facts: Facts, branch: ast.If, first: ast.Call, second: ast.Call) -> str | None:
    """The one call; None where the two do not give the same parameters in the same order."""
    spread = [a for a in (*first.args, *second.args) if isinstance(a, ast.Starred)]
    words = [[k.arg for k in c.keywords] for c in (first, second)]
    same = words[0] == words[1] and None not in words[0] and len(first.args) == len(second.args)
    if spread or not same or ast.unparse(first.func) != ast.unparse(second.func):
        return None
    test = " ".join(facts.text.get(branch.test).split())
    given = [_either(facts, a, b, test) for a, b in zip(first.args, second.args, strict=True)]
    named = zip(first.keywords, second.keywords, strict=True)
    given += [f"{a.arg}={_either(facts, a.value, b.value, test)}" for a, b in named]
    return f"{facts.text.get(first.func)}({', '.join(given)})"


def _either(facts: Facts, one: ast.expr, other: ast.expr, test: str) -> str:
    if ast.dump(one) == ast.dump(other):
        return facts.text.get(one)
    if isinstance(one, ast.List) and isinstance(other, ast.List) and len(one.elts) == len(other.elts):
        pairs = [*zip(one.elts, other.elts, strict=True)]
        if not any(isinstance(e, ast.Starred) for pair in pairs for e in pair):
            return f"[{', '.join(_either(facts, a, b, test) for a, b in pairs)}]"
    return " ".join(f"{_operand(facts, one)} if {test} else {facts.text.get(other)}".split())


def _operand(facts: Facts, node: ast.expr) -> str:
    text = facts.text.get(node)
    return f"({text})" if isinstance(node, (ast.IfExp, ast.Lambda)) else text


def _written(facts: Facts, branch: ast.If, first: ast.stmt, second: ast.stmt, call: str) -> str | None:
    """What stands before the calls in each branch, the call, and what stands after them."""
    if Splice(facts.text).shares_a_line(branch) or facts.text.margin(branch).strip():
        return None
    at, to = branch.body.index(first), branch.orelse.index(second)
    before = _condition(facts, branch, branch.body[:at], branch.orelse[:to])
    after = _condition(facts, branch, branch.body[at + 1 :], branch.orelse[to + 1 :])
    targets = "".join(f"{facts.text.get(t)} = " for t in getattr(first, "targets", ()))
    said = block_lines(facts, [first], {})
    comments = said[: next(i for i, line in enumerate(said) if not line.lstrip().startswith("#"))]
    edits = Edits(facts)
    lines = indent([*before, *comments, f"{targets}{call}", *after], facts.text.margin(branch))
    edits.replace_lines(branch.lineno, branch.end_lineno or branch.lineno, lines)
    return edits.done()


def _condition(facts: Facts, branch: ast.If, body: list[ast.stmt], orelse: list[ast.stmt]) -> list[str]:
    test, unit = " ".join(facts.text.get(branch.test).split()), facts.indentation
    if not body and not orelse:
        return []
    if not body:
        return [f"if not ({test}):", *indent(block_lines(facts, orelse, {}), unit)]
    other = ["else:", *indent(block_lines(facts, orelse, {}), unit)] if orelse else []
    return [f"if {test}:", *indent(block_lines(facts, body, {}), unit), *other]
