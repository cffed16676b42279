"""What the function that goes through the batches is given, and is no network: no loader gives it, nothing places it.

    def fit(model, loader, X_val, y_val):
        for x, y in loader: ...
        loss = criterion(model(X_val.to(device)), y_val.to(device))

Their moves stay.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .back_from_cpu import MOVES
from .given_by_callers import given_by_callers
from .loops import TRAINS
from .nodes import FUNCTIONS
from .unplaced import before_the_loop

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

COUNTS = {"range", "trange"}


def is_given_to_training(facts: Facts, node: ast.expr) -> bool:
    """Whether a name is such a parameter, of which no caller shows that it is placed."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    return isinstance(node, ast.Name) and scope is not None and gets_unplaced(facts, scope, node.id)


def gets_unplaced(facts: Facts, scope: Scope, name: str) -> bool:
    """The same of a name of a function's own scope."""
    f, key = scope.node, (gets_unplaced, scope.node, name)
    if not isinstance(f, ast.FunctionDef) or name not in scope.params or name in scope.stores:
        return False
    if key not in facts.answers:
        facts.answers[key] = False  # while it is found: a function may hand on what it is given
        facts.answers[key] = not _is_network(facts, scope, name) and _shows_none_placed(facts, f, name)
    return bool(facts.answers[key])


def is_got_above(facts: Facts, node: ast.expr) -> bool:
    """`x, y = load(path)` above the loop that trains, which nothing shows to be placed: what a function gave."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id in scope.params or _is_network(facts, scope, node.id):
        return False
    given = [_assigned(facts, store) for store in scope.stores.get(node.id, ())]
    called = all(
        s is not None
        and isinstance(s.value, ast.Call)
        and isinstance(s.value.func, ast.Name)
        and not facts.placed.is_module(s.value)
        and before_the_loop(facts, s)
        for s in given
    )
    return bool(given) and called and not facts.placed.by_runtime(node)


def _assigned(facts: Facts, store: ast.AST) -> ast.Assign | None:
    up = facts.scopes.parents.get(store)
    up = facts.scopes.parents.get(up) if isinstance(up, (ast.Tuple, ast.List)) else up
    return up if isinstance(up, ast.Assign) else None


def _is_network(facts: Facts, scope: Scope, name: str) -> bool:
    """By its name, because it is called, or by its move: `critic.to(device)` as a statement, `D = disc.to(device)`."""
    if facts.placed.used_as_module(name, scope):
        return True
    ups = (facts.scopes.parents.get(r) for r in facts.scopes.reads(name, scope))
    calls = (facts.scopes.parents.get(up) for up in ups if isinstance(up, ast.Attribute) and up.attr in MOVES)
    return any(_moves_network(facts, c) for c in calls if c is not None)


def _moves_network(facts: Facts, call: ast.AST) -> bool:
    up = facts.scopes.parents.get(call)
    targets = [t for t in up.targets if isinstance(t, ast.Name)] if isinstance(up, ast.Assign) else []
    given = [(t.id, facts.scopes.scope_of(t).lookup(t.id)) for t in targets]
    named = any(scope is not None and facts.placed.used_as_module(name, scope) for name, scope in given)
    return isinstance(up, ast.Expr) or named


def _shows_none_placed(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Rounds that are counted may be steps on one batch, `adapt(task)`: there the callers have to show what it is."""
    goes, counts = _that_train(facts)
    if f not in goes and f not in counts:
        return False
    given = given_by_callers(facts, f, name)
    if f not in goes and (not given or None in given):
        return False
    return not any(v is not None and facts.placed.by_runtime(v) for v in given)


def _that_train(facts: Facts) -> tuple[set[ast.AST], set[ast.AST]]:
    """The functions with a loop over batches that trains, or one around it; and those whose loop counts its steps."""
    key = (_that_train,)
    if key not in facts.answers:
        loops = [n for n, kind in facts.loops.hot_loops.items() if kind == TRAINS]
        goes = {_function_of(facts, n) for n in (*loops, *facts.loops.around_training) if not _is_step(facts, n)}
        facts.answers[key] = (goes, {_function_of(facts, n) for n in loops} - goes)
    found: tuple[set[ast.AST], set[ast.AST]] = facts.answers[key]
    return found


def _is_step(facts: Facts, loop: ast.AST) -> bool:
    return loop not in facts.loops.around_training and _counts(loop)


def _function_of(facts: Facts, node: ast.AST) -> ast.AST:
    return next((u for u in facts.scopes.ancestors(node) if isinstance(u, FUNCTIONS)), facts.tree)


def _counts(loop: ast.AST) -> bool:
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return True
    over = loop.iter
    return isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in COUNTS
