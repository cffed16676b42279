"""What stands under `if rank == 0:`: some of it the runtime does once by itself, and needs no guard."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ..facts.arguments import argument_at, given_to
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ._writers import WRITERS
from .once import WRITES as DONE_ONCE

SENDS = {f"torch.distributed.{n}" for n in ("broadcast", "broadcast_object_list")}
# calls that give a value and do nothing else
MADE = {f"torch.utils.data.{n}" for n in ("DataLoader", "TensorDataset", "Subset", "ConcatDataset")}
COPIES = ("copy.deepcopy", "torch.optim.swa_utils.AveragedModel")
PURE_HOMES = ("os.path.", "time.", "datetime.", "math.", "numpy.", "copy.")
PURE = set(
    "item format join state_dict keys values items cpu detach numpy mean sum tolist len round str int float min max "
    "range enumerate zip sorted list dict tuple get_last_lr parameters numel size dim strftime isoformat rstrip strip "
    "upper lower replace split vars get sqrt exp log abs global_avg __dict__".split()
)

# methods that change what they are called of
CHANGES = set(
    "append extend insert update add setdefault pop popitem remove discard clear sort reverse"
    " appendleft extendleft popleft".split()
)
NO_GRAD = {"no_grad", "inference_mode", "set_grad_enabled"}
# what an evaluation calls: these give values, but for those that talk to others or write
COMPUTE = ("torch.", "os.path.", "numpy.", "math.", "time.", "tqdm.", "sklearn.metrics.", "collections.", "random.")
TALKS = ("torch.distributed.", "torch.save", "torch.utils.tensorboard.", "torch.multiprocessing.", "numpy.save")
BUILTINS = set(
    "range len enumerate zip min max sum float int str list dict tuple set print sorted isinstance getattr hasattr "
    "iter next abs round bool reversed any all".split()
)
WRITES = re.compile(
    r"save|write|dump|log|add_(scalar|image|figure|histogram|text)|send|barrier|reduce|gather|backward|^step$|zero_grad|"
    r"close|open|mkdir|unlink|remove|show|plot"
)
SAYS = re.compile(r"(^|\.)(print|log|info|debug|warn|warning)$|^(logger|logging|log)\.", re.IGNORECASE)


def done_once(facts: Facts, branch: ast.If) -> bool:
    """Whether all that stands under a guard is harmless on every rank, or done once by itself: prints, saves."""
    parent = facts.scopes.parents.get(branch)
    if branch.orelse or (isinstance(parent, ast.If) and parent.orelse == [branch]):
        return False
    return all(_harmless(facts, s) for s in branch.body)


def there_for_all(facts: Facts, branch: ast.If, of_rank_zero: Callable[[ast.expr], bool]) -> bool:
    """Whether all that a guarded block reads is there on every rank: not bound for rank 0 alone, nor given to it alone.

    A guard that goes itself, as that of `if rank == 0: loader = DataLoader(...)`, is none.
    """

    def goes(guard: ast.If) -> bool:
        above = guard.lineno < branch.lineno
        return done_once(facts, guard) and (not above or there_for_all(facts, guard, of_rank_zero))

    for n in (n for s in branch.body for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Load)):
        home = facts.scopes.scope_of(n).lookup(n.id)
        if home is None:
            continue
        given = _given(facts, home, n.id)
        if any(map(_is_none, given)) and not all(map(_is_none, given)):
            return False
        guards = [_guard_of(facts, s, branch, of_rank_zero) for s in home.stores.get(n.id, ())]
        if n.id not in home.params and guards and all(g is not None and not goes(g) for g in guards):
            return False
    return True


def _given(facts: Facts, home: Scope, name: str) -> list[ast.expr]:
    """What callers pass for a parameter, or for the part of one that a name is: `loader, test = loaders`."""
    if name in home.params:
        return facts.devices.given(home, name) or []
    made = [facts.scopes.parents.get(facts.scopes.parents.get(s, s)) for s in home.stores.get(name, ())]
    s = made[0] if len(made) == 1 else None
    whole = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Tuple) and isinstance(whole, ast.Name)):
        return []
    at = next((i for i, t in enumerate(s.targets[0].elts) if isinstance(t, ast.Name) and t.id == name), None)
    passed = facts.devices.given(home, whole.id) or [] if whole.id in home.params else []
    lists = [v.elts for v in passed if isinstance(v, (ast.List, ast.Tuple))]
    return [elts[at] for elts in lists if at is not None and at < len(elts)]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _guard_of(facts: Facts, store: ast.AST, but: ast.If, of_rank_zero: Callable[[ast.expr], bool]) -> ast.If | None:
    """The branch of rank 0 alone that gives a name its value, in the function of `but`, which has not begun there."""
    child = store
    for up in facts.scopes.ancestors(store):
        if up is but or isinstance(up, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(up, ast.If) and child in up.body and of_rank_zero(up.test):
            return up
        child = up
    return None


def loads_state(facts: Facts, branch: ast.If) -> bool:
    """Whether rank 0 loads there what it sends to the others, which every rank loads now: nothing is sent any more."""
    parent = facts.scopes.parents.get(branch)
    if branch.orelse or (isinstance(parent, ast.If) and parent.orelse == [branch]):
        return False
    loads = any(isinstance(n, ast.Call) and _last(n) == "load_state_dict" for s in branch.body for n in walk(s))
    return loads and all(_only_loads(facts, s) for s in branch.body)


def _only_loads(facts: Facts, s: ast.stmt) -> bool:
    """It loads, says so, or is harmless on every rank anyway."""
    if isinstance(s, ast.If):
        return _pure(facts, s.test) and all(_only_loads(facts, x) for x in (*s.body, *s.orelse))
    value = s.value if isinstance(s, (ast.Assign, ast.Expr)) else None
    if not isinstance(value, ast.Call):
        return _harmless(facts, s)
    if _last(value).startswith("load"):
        return True
    told = isinstance(s, ast.Expr) and bool(SAYS.search(ast.unparse(value.func)))
    return told or _harmless(facts, s)


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def sent_to_all(facts: Facts, branch: ast.If) -> str | None:
    """The name that a guarded block gives a value and a later broadcast sends: all have to compute it, then."""
    parent = facts.scopes.parents.get(branch)
    if isinstance(parent, ast.If) and parent.orelse == [branch]:
        return None
    given = {name for s in branch.body for n in walk(s) if (name := _changed(n)) is not None}
    return _sent_below(facts, branch, given)


def chosen_and_sent(facts: Facts, choice: ast.expr) -> str | None:
    """The name of `names = [x] if rank == 0 else [None]`, `stop = [late and rank == 0]`, that is sent below."""
    s = facts.scopes.statement_of(choice)
    return _sent_below(facts, s, {name for n in walk(s) if (name := _changed(n)) is not None})


def makes_network(facts: Facts, value: ast.expr) -> bool:
    """`Net()`, `nn.Linear(2, 1).eval()`, `deepcopy(model)`: what a Module has on every rank, or on none."""
    if not isinstance(value, ast.Call) or not all(_pure(facts, a) for a in given_to(value)):
        return False
    f, full = value.func, facts.names.resolve(value.func) or ""
    if full.startswith("torch.nn."):
        return facts.placed.is_module(value)
    if full in COPIES or full.startswith("torchvision.models."):
        return True
    if isinstance(f, ast.Attribute):
        return makes_network(facts, f.value)
    return isinstance(f, ast.Name) and any(c.name == f.id for c in facts.classes.modules)


def _sent_below(facts: Facts, above: ast.stmt, given: set[str]) -> str | None:
    """Which of the names that a statement gives values a broadcast below it in the same function sends."""
    scope = facts.scopes.scope_of(above)
    for call in facts.walk(ast.Call) if given else ():
        if facts.names.resolve(call.func) not in SENDS or call.lineno <= above.lineno:
            continue
        what = argument_at(call, "tensor", 0) or argument_at(call, "object_list", 0)
        if not isinstance(what, ast.Name) or facts.scopes.scope_of(call) is not scope:
            continue
        made = [m for s in scope.stores.get(what.id, ()) if isinstance(m := facts.scopes.parents.get(s), ast.Assign)]
        names = {what.id, *(n.id for m in made for n in walk(m.value, ast.Name))}
        if found := sorted(given & names):
            return found[0]
    return None


def needed_to_send(facts: Facts, s: ast.stmt, of_rank_zero: Callable[[ast.expr], bool]) -> str | None:
    """What rank 0 sent the others of that which it computes from a value given here: `losses.append(x)`.

    All compute that now, and all need the value.
    """
    body = s.body if isinstance(s, ast.If) else [s]
    if not all(isinstance(x, (ast.Assign, ast.AugAssign)) or _filled(x) or _harmless(facts, x) for x in body):
        return None
    stored = [n for x in body for n in walk(x) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    places = [n for n in stored if isinstance(n.ctx, ast.Store)] + [f for x in body if (f := _filled(x)) is not None]
    given = {ast.unparse(whole): facts.scopes.scope_of(n) for n in places for whole in [_whole(n)]}
    for guard in facts.walk(ast.If):
        test = guard.test
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        if guard is s or not any(map(of_rank_zero, parts)) or (sent := sent_to_all(facts, guard)) is None:
            continue
        for n in (n for x in guard.body for n in walk(x) if isinstance(n, (ast.Name, ast.Attribute))):
            here = given.get(ast.unparse(n))
            own = here is not None and (isinstance(n, ast.Attribute) or facts.scopes.scope_of(n).lookup(n.id) is here)
            if own and isinstance(n.ctx, ast.Load):
                return sent
    return None


def _filled(s: ast.stmt) -> ast.expr | None:
    """`losses` of the statement `losses.append(x)`."""
    call = s.value if isinstance(s, ast.Expr) else None
    f = call.func if isinstance(call, ast.Call) else None
    return f.value if isinstance(f, ast.Attribute) and f.attr in CHANGES else None


def _whole(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _changed(n: ast.AST) -> str | None:
    """The name of what a node gives a value, or changes in its place: `x = y`, `x[0] = y`, `x.fill_(1)`."""
    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
        return getattr(n.value, "id", None)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.endswith("_"):
        return getattr(n.func.value, "id", None)
    return n.id if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) else None


def _harmless(facts: Facts, s: ast.stmt) -> bool:
    if isinstance(s, (ast.If, ast.For)):
        first = s.test if isinstance(s, ast.If) else s.iter
        return _pure(facts, first) and all(_harmless(facts, x) for x in (*s.body, *s.orelse))
    if isinstance(s, ast.Pass):
        return True
    if isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return s.value is None or _pure(facts, s.value)
    if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)):
        return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
    call = s.value
    full = facts.names.resolve(call.func)
    once = full == "torch.save" or full in DONE_ONCE or _prints(facts, call)
    return (once or evaluates(facts, call)) and all(_pure(facts, a) for a in given_to(call))


def _prints(facts: Facts, call: ast.Call) -> bool:
    """Python's own `print`: one of the script's making, as `functools.partial(print, flush=True)`, every rank calls."""
    own = isinstance(call.func, ast.Name) and call.func.id == "print"
    return own and facts.scopes.scope_of(call.func).lookup("print") is None


def _pure(facts: Facts, node: ast.expr) -> bool:
    """No call in it but such as give a value and do nothing else."""
    for n in walk(node):
        if isinstance(n, ast.Call):
            full = facts.names.resolve(n.func) or ""
            known = full.startswith(PURE_HOMES) or full in (*WRITERS, *MADE) or _last(n) in PURE
            if not (known or makes_network(facts, n) or evaluates(facts, n)):
                return False
        elif isinstance(n, (ast.Await, ast.Yield, ast.YieldFrom)):
            return False
    return True


def evaluates(facts: Facts, call: ast.Call) -> bool:
    """Whether a function of this file is called that computes without gradients, and does nothing else: an evaluation.

    On rank 0 alone it would draw what the other ranks do not: a batch, or the seed of a loader that is gone through.
    """
    f = facts.devices.function_of(call)
    return f is not None and _without_gradients(f) and _computes(facts, f, frozenset())


def goes_over_data(facts: Facts, call: ast.Call) -> bool:
    """The same of one that may do more, as write to a log, in a loop."""
    f = facts.devices.function_of(call)
    return f is not None and _without_gradients(f) and bool(walk(f, ast.For))


def _without_gradients(f: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Name, ast.Attribute)) and _word(n) in NO_GRAD for n in walk(f))


def _computes(facts: Facts, f: ast.FunctionDef, above: frozenset[str]) -> bool:
    """Whether all that a function calls gives values or switches modes, as far as names tell."""
    params = facts.scopes.by_node[f].params
    for n in walk(f):
        if isinstance(n, (ast.Global, ast.Nonlocal, ast.Await, ast.Yield, ast.YieldFrom, ast.Raise)):
            return False
        if not isinstance(n, ast.Call):
            continue
        full, inner = facts.names.resolve(n.func), facts.devices.function_of(n)
        if inner is not None:
            known = inner.name in above or _computes(facts, inner, above | {f.name})
        elif full is not None:
            known = full.startswith(COMPUTE) and not full.startswith(TALKS)
        elif isinstance(n.func, ast.Name):
            home = facts.scopes.scope_of(n.func).lookup(n.func.id)
            known = n.func.id in BUILTINS if home is None else n.func.id in params or facts.loops.is_model_call(n)
            known = known or (home is not None and n.func.id not in home.params and _is_placed(facts, n))
        else:
            known = not (SAYS.search(_last(n)) or WRITES.search(_last(n)))
        if not known:
            return False
    return True


def _is_placed(facts: Facts, call: ast.Call) -> bool:
    """`criterion(x)`: a module that the script made."""
    if not isinstance(call.func, ast.Name):
        return False
    home = facts.scopes.scope_of(call.func).lookup(call.func.id)
    values = (facts.devices.assigned(call.func.id, home) or []) if home is not None else []
    return bool(values) and all(isinstance(v, ast.Call) and facts.placed.is_module(v) for v in values)


def _word(n: ast.Name | ast.Attribute) -> str:
    return n.attr if isinstance(n, ast.Attribute) else n.id
