"""Which accelerator the user's own flags choose: `--no-cuda` still means the CPU when the Trainer places the model.

What only asks the machine (`torch.cuda.is_available()`) is the Trainer's "auto" and needs no word.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from .arguments import argument, is_static
from .back_from_cpu import goes_to_cpu
from .device_chains import device_chains, device_given, given_above, is_further, kind_of
from .devices import AVAILABILITY
from .nodes import is_main_guard, walk
from .operands import joined, negated
from .other_files import found_there
from .scopes import Scope
from .script import Facts, once_a_file
from .typed_device import typed_device

SEVERAL = (" > 1", " >= 2", " != 1")
Truth = bool | str  # a constant, or the source of what is left of a condition


@once_a_file
def accelerator(facts: Facts) -> str | None:
    """The source of the Trainer's `accelerator=` argument; None for "auto"."""
    if facts.device_given is not None:
        return f'"cpu" if str({facts.device_given}) == "cpu" else "auto"'
    tests: list[tuple[ast.expr, bool]] = []
    for node in facts.walk(ast.IfExp):
        on, off = _kind_there(facts, node.body), _kind_there(facts, node.orelse)
        if on and off and (on == "cpu") != (off == "cpu") and not is_further(facts, node):
            tests.append((node.test, off == "cpu"))
    for branch in facts.walk(ast.If):
        on, off = device_given(facts, branch.body), device_given(facts, branch.orelse or given_above(facts, branch))
        if on and off and (on == "cpu") != (off == "cpu") and not is_further(facts, branch):
            tests.append((branch.test, off == "cpu"))
    for chain in device_chains(facts):
        cuda = _fold(facts, chain.cuda, 0)
        left = _by_machine(cuda, _fold(facts, chain.mps, 0), chain.asks) if chain.mps is not None else cuda
        if isinstance(left, str):
            return _by_condition(left, True)
    tests += [*_moves(facts), *_given_to_movers(facts)]
    tests = [(test, means) for test, means in tests if not _asks_tensor(test)]
    for test, means_accelerator in tests:
        left = _fold(facts, test, 0)
        if isinstance(left, str):
            return _by_condition(left, means_accelerator)
    for test, means_accelerator in tests:
        named = _fold(facts, test, 0, named=True) if _fold(facts, test, 0) is not means_accelerator else True
        if isinstance(named, str):  # USE_CUDA = False
            return _by_condition(named, means_accelerator)
    return typed_device(facts)


def asks_for_card(facts: Facts, test: ast.expr, chosen: str | None = None) -> bool:
    """Whether a condition is the machine's, or the one by which the user chooses the accelerator.

    `chosen`: by what the script chose it, where the text has lost that.
    """
    left = True if _asks_tensor(test) else _fold(facts, test, 0)
    return (
        left
        if isinstance(left, bool)
        else (chosen or accelerator(facts)) in (_by_condition(left, True), _by_condition(left, False))
    )


def _by_condition(left: str, means_accelerator: bool) -> str:
    if left.startswith("not ") and " and " not in left and " or " not in left:
        left, means_accelerator = left[4:], not means_accelerator
    return f'"auto" if {left} else "cpu"' if means_accelerator else f'"cpu" if {left} else "auto"'


def _kind_there(facts: Facts, node: ast.expr) -> str | None:
    """The kind of a device, and of one that the machine alone chooses, where it has what is asked for."""
    while isinstance(node, ast.IfExp) and isinstance(there := _fold(facts, node.test, 0), bool):
        node = node.body if there else node.orelse
    return kind_of(facts, node)


def _by_machine(cuda: Truth, mps: Truth, asks: str | None) -> Truth:
    """What is left of two conditions where each machine has one of the devices: `asks` says whether it is a Mac."""
    if cuda == mps or asks is None:
        return cuda
    if mps is True:
        return f"{asks} or {cuda}"
    if cuda is True:
        return f"{mps} or not {asks}"
    return f"({mps} if {asks} else {cuda})"


def _asks_tensor(test: ast.expr) -> bool:
    """`"cuda" if x.is_cuda else "cpu"`, `x.device.type == "cuda"`: where a tensor is, the user said before."""
    return any(
        n.attr in ("is_cuda", "is_cpu", "is_mps") or (n.attr == "type" and getattr(n.value, "attr", "") == "device")
        for n in walk(test, ast.Attribute)
    )


def _moves(facts: Facts) -> list[tuple[ast.expr, bool]]:
    """The conditions of `if args.cuda: model.cuda()` and `x.cuda() if args.cuda else x`.

    None where something is moved in any case: such a condition says which card, not whether there is one.
    """
    if any(_always(facts, c) for c in facts.walk(ast.Call)):
        return []
    found: list[tuple[ast.expr, bool]] = []
    for branch in facts.walk(ast.If):
        moved = [m for m in _moved_in(facts, branch.body) if _is_there(facts, m) and not _is_made_in(facts, m, branch)]
        if moved and not _moved_in(facts, branch.orelse) and not asks_for(branch.test, moved):
            found += [(branch.test, True)] if _is_choice(facts, branch.test) else []
    for choice in facts.walk(ast.IfExp):
        for side, means in ((choice.body, True), (choice.orelse, False)):
            receiver = facts.devices.moved(side) if isinstance(side, ast.Call) else None
            if receiver is not None and not asks_for(choice.test, [receiver]):
                found += [(choice.test, means)] if _is_choice(facts, choice.test) else []
    others = {t for c in facts.walk(ast.Call) for t in _otherwise(facts, c)} if found else set()
    found = [(test, means) for test, means in found if _fold(facts, test, 0) not in others]
    return [*found, *((test, False) for test in _kept_back(facts))]


def _kept_back(facts: Facts) -> Iterator[ast.expr]:
    """The condition of `if args.cpu: model = model.cpu()`, `else: model = model.cuda()`."""
    for branch in facts.walk(ast.If):
        moved = {ast.unparse(m) for m in _moved_in(facts, branch.orelse)}
        values = [s.value for s in branch.body if isinstance(s, (ast.Expr, ast.Assign))] if moved else []
        brought = {ast.unparse(c.func.value) for c in values if isinstance(c, ast.Call) and goes_to_cpu(facts, c)}  # type: ignore[attr-defined]
        if moved & brought and _is_choice(facts, branch.test):
            yield branch.test


def _given_to_movers(facts: Facts) -> Iterator[tuple[ast.expr, bool]]:
    """The `args.cuda` of `get_model(args.cuda)`, where another file asks `if cuda: model.cuda()` of its parameter, and
    this one moves nothing itself: what it said of its own would go first.
    """
    if not facts.others or any(facts.devices.moved(c) is not None for c in facts.walk(ast.Call)):
        return
    found = list(_given_by_calls(facts))
    if len({ast.unparse(test) for test, _ in found}) == 1:  # one chooses; another may be for something else
        yield from found


def _given_by_calls(facts: Facts) -> Iterator[tuple[ast.expr, bool]]:
    for call in facts.walk(ast.Call):
        found = found_there(facts, call.func)
        if found is None or "cuda" not in found[0].text:
            continue
        there, of = found[1], found[2]
        bound = isinstance(of, ast.ClassDef)
        f = there.classes.methods(of).get("__init__") if isinstance(of, ast.ClassDef) else of
        if not isinstance(f, ast.FunctionDef):
            continue
        for name, means in _asked_parameters(there, f):
            given = argument(call, f, name, bound)
            if given is not None and _is_choice(facts, given):
                yield given, means


def _asked_parameters(facts: Facts, f: ast.FunctionDef) -> Iterator[tuple[str, bool]]:
    """The parameters of a function by which it moves something or does not."""
    own = facts.scopes.by_node[f]
    for test, means in _moves(facts):
        plain = isinstance(test, ast.Name) and facts.scopes.scope_of(test).lookup(test.id) is own
        if isinstance(test, ast.Name) and plain and test.id not in own.stores:
            yield test.id, means


def _moved_in(facts: Facts, block: list[ast.stmt]) -> list[ast.expr]:
    """What the statements of a block move, `x, y = x.cuda(), y.cuda()` too."""
    values = [s.value for s in block if isinstance(s, (ast.Expr, ast.Assign))]
    parts = [p for v in values for p in (v.elts if isinstance(v, ast.Tuple) else [v])]
    return [m for p in parts if isinstance(p, ast.Call) and (m := facts.devices.moved(p)) is not None]


def _otherwise(facts: Facts, call: ast.Call) -> list[Truth]:
    """The conditions that are false where a call goes to a card: `model.cuda(gpu) if gpu else model.cuda()`."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and facts.devices.moved(call)):
        return []
    child: ast.AST = call
    found: list[Truth] = []
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            positive = child is up.body if isinstance(up, ast.IfExp) else child in up.body
            found += [] if positive else [_fold(facts, up.test, 0)]
        child = up
    return found


def _is_choice(facts: Facts, test: ast.expr) -> bool:
    """Whether a condition can be the user's: not one about the value at hand, as `if torch.is_tensor(v):` is, and not
    one that asks for several cards, as `if n_gpu > 1:` does.
    """
    if is_main_guard(test):
        return False
    for n in walk(test):
        if isinstance(n, ast.Compare) and ast.unparse(n).endswith(SEVERAL):
            return False
        if isinstance(n, ast.Call):
            plain = isinstance(n.func, ast.Name) and n.func.id in ("len", "int", "bool", "str", "getattr", "any", "all")
            plain = plain or _fold(facts, n, 0) != ast.unparse(n)
            if not plain and facts.names.resolve(n.func) not in AVAILABILITY:
                return False
        elif isinstance(n, ast.Name):
            scope = facts.scopes.scope_of(n).lookup(n.id)
            if scope is not None and any(_by_loop(facts, s) for s in scope.stores.get(n.id, ())):
                return False
            if scope is not None and any(_in_loop(facts, s) for s in scope.stores.get(n.id, ())):
                return False
    return True


def _is_there(facts: Facts, value: ast.expr) -> bool:
    """Whether a value is something that was there before, and is not made where it is moved: `Net(3).to(device)`."""
    while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) or facts.names.resolve(value.func) is not None:
                return False
            value = value.func
        else:
            value = value.value
    return True


def _is_made_in(facts: Facts, value: ast.expr, branch: ast.If) -> bool:
    """Whether the branch makes what it moves, as `if args.train:` above all of a training does."""
    root = value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    own = facts.scopes.statement_of(value)
    stores = facts.scopes.scope_of(root).stores.get(root.id, ()) if isinstance(root, ast.Name) else ()
    made = (s for s in stores if facts.scopes.statement_of(s) is not own)
    return any(branch in facts.scopes.ancestors(s) for s in made)


def asks_for(test: ast.expr, moved: list[ast.expr]) -> bool:
    """`if mask is not None: mask = mask.to(device)`, which asks whether there is one."""
    return not {ast.unparse(m) for m in moved}.isdisjoint(ast.unparse(n) for n in walk(test) if isinstance(n, ast.expr))


def _in_loop(facts: Facts, store: ast.AST) -> bool:
    """Whether a loop of its own function gives a name its value: the user chose before."""
    for up in facts.scopes.ancestors(store):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return True
    return False


def _by_loop(facts: Facts, store: ast.AST) -> bool:
    up = facts.scopes.parents.get(store)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        store, up = up, facts.scopes.parents.get(up)
    return isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension)) and up.target is store


def _always(facts: Facts, call: ast.Call) -> bool:
    """Whether a call moves something wherever there is an accelerator, whatever the user asked for."""
    if not isinstance(call.func, ast.Attribute) or facts.devices.moved(call) is None:
        return False
    if call.func.attr != "cuda" and not _names_card(facts, call):
        return False
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not _runs_script(up):
            return False  # a helper, whose callers may ask
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and _fold(facts, up.test, 0) is not True:
            positive = child is up.body if isinstance(up, ast.IfExp) else child in up.body
            if positive or _fold(facts, up.test, 0) is not False:
                return False
        child = up
    return True


def _names_card(facts: Facts, call: ast.Call) -> bool:
    """Whether `device` in `x.to(device)` is given one value, which is not the CPU wherever there is a card."""
    where = next(iter(facts.devices.device_arguments(call)), None)
    if isinstance(where, ast.Name):
        scope = facts.scopes.scope_of(where).lookup(where.id)
        values = facts.devices.assigned(where.id, scope) if scope is not None else None
        where = values[0] if values and len(values) == 1 else None
    if isinstance(where, ast.IfExp):
        test = _fold(facts, where.test, 0)
        where = None if isinstance(test, str) else where.body if test else where.orelse
    return isinstance(where, ast.expr) and kind_of(facts, where) != "cpu"


def _runs_script(f: ast.AST) -> bool:
    return isinstance(f, ast.FunctionDef) and f.name.startswith(("main", "train", "run"))


def _fold(facts: Facts, node: ast.expr, depth: int, named: bool = False) -> Truth:
    """A condition with what asks the machine taken as true; `named`: constants stay by their names."""
    if depth > 8:
        return ast.unparse(node)
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Call) and _asks_machine(facts, node):
        return True
    if isinstance(node, ast.Compare) and any(_asks_machine(facts, n) for n in walk(node, ast.Call)):
        return True
    if isinstance(node, ast.Name):
        return _fold_name(facts, node, depth, named)
    if isinstance(node, ast.Call):
        return _fold_call(facts, node, depth, named)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _fold(facts, node.operand, depth + 1, named)
        return (not inner) if isinstance(inner, bool) else negated(inner)
    if isinstance(node, ast.BoolOp):
        return _fold_bool(facts, node, depth, named)
    if isinstance(node, ast.IfExp):
        asked = _fold(facts, node.test, depth + 1, named)
        if isinstance(asked, bool):
            return _fold(facts, node.body if asked else node.orelse, depth + 1, named)
        return f"({ast.unparse(node)})"
    if isinstance(node, ast.Attribute):
        made = _given_once(facts, node)
        only_asks = _fold(facts, made, depth + 1, named) if made is not None else None
        return only_asks if isinstance(only_asks, bool) else ast.unparse(node)
    return ast.unparse(node)


def _asks_machine(facts: Facts, call: ast.Call) -> bool:
    """`torch.cuda.is_available()`, and what asks torch whether it can ask: `hasattr(torch.backends, "mps")`; a list of
    what there is, `list(range(torch.cuda.device_count()))`.
    """
    if facts.names.resolve(call.func) in AVAILABILITY:
        return True
    if isinstance(call.func, ast.Name) and call.func.id in ("list", "range", "len", "bool") and len(call.args) == 1:
        return isinstance(call.args[0], ast.Call) and _asks_machine(facts, call.args[0])
    if not (isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "getattr") and len(call.args) > 1):
        return False
    return isinstance(call.args[1], ast.Constant) and (facts.names.resolve(call.args[0]) or "").split(".")[0] == "torch"


def _fold_name(facts: Facts, node: ast.Name, depth: int, named: bool) -> Truth:
    scope = facts.scopes.scope_of(node).lookup(node.id)
    values = facts.devices.assigned(node.id, scope) if scope is not None else None
    if not values or len(values) > 1 or (named and isinstance(values[0], ast.Constant)):
        return node.id
    left = _fold(facts, values[0], depth + 1, named)
    own = any(isinstance(n, (ast.comprehension, ast.Lambda)) for n in walk(values[0]))  # has names of its own
    asked_again = isinstance(left, str) and (own or facts.devices.effects.has(values[0]))
    return node.id if asked_again else left


def _fold_call(facts: Facts, call: ast.Call, depth: int, named: bool) -> Truth:
    """`on()` of the script's own is what its one statement gives, where that says the same wherever it is asked."""
    f = facts.devices.function_of(call)
    body = [s for s in f.body if not _is_docstring(s)] if f is not None else []
    gives = body[-1] if body else None
    if f is None or not isinstance(gives, ast.Return) or gives.value is None:
        return ast.unparse(call)
    if sum(isinstance(n, ast.Return) for n in walk(f)) > 1:
        return ast.unparse(call)
    left = _fold(facts, gives.value, depth + 1, named)
    own = facts.scopes.by_node[f]
    inside = isinstance(left, str) and any(n in own.params or n in own.stores for n in names_read(left))
    return ast.unparse(call) if inside else left


def _is_docstring(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _given_once(facts: Facts, a: ast.Attribute) -> ast.expr | None:
    """What an object of this file gives its own attribute, where one statement does: `self.cuda = is_available()`."""
    if not (isinstance(a.value, ast.Name) and a.value.id == "self"):
        return None
    stores = [n for n in facts.attributes.get(a.attr, ()) if not isinstance(n.ctx, ast.Load)]
    s = facts.scopes.parents.get(stores[0]) if len(stores) == 1 else None
    if not isinstance(s, ast.Assign) or s.targets != stores:
        return None
    return s.value if isinstance(stores[0].value, ast.Name) and stores[0].value.id == "self" else None


def _fold_bool(facts: Facts, node: ast.BoolOp, depth: int, named: bool) -> Truth:
    parts = [_fold(facts, v, depth + 1, named) for v in node.values]
    stops = isinstance(node.op, ast.Or)
    if any(p is stops for p in parts):
        return stops
    left = [p for p in parts if isinstance(p, str)]
    if not left:
        return not stops
    return joined(left, "or" if stops else "and")


def names_read(source: str) -> set[str]:
    return {n.id for n in walk(ast.parse(source, mode="eval"), ast.Name)}


def known_in(source: str, scope: Scope, facts: Facts) -> bool:
    """Whether every name of the source is bound where the Trainer is made."""
    return all(
        (home is scope or home is facts.scopes.module)
        if (home := scope.lookup(n)) is not None
        else callable(getattr(builtins, n, None))
        for n in names_read(source)
    )


def means_another(source: str, trainer_in: str, facts: Facts) -> bool:
    """Whether what the source reads is known where the Trainer is made by names that stand for something else there:
    `cfg.device` of `def __init__(self, cfg)`, which is called with `cfg.train`.

    `trainer_in`: the name of the function that makes the Trainer, "" for the top of the file.
    """
    tree = ast.parse(source, mode="eval")
    asked = {(n.value.id, n.attr) for n in walk(tree, ast.Attribute) if isinstance(n.value, ast.Name)}
    held = {n.id for n in walk(tree, ast.Name)} - {name for name, _ in asked}
    reads = [n for n in facts.walk(ast.Name) if n.id in held and isinstance(n.ctx, ast.Load)]
    reads += [
        a.value for a in facts.walk(ast.Attribute) if isinstance(a.value, ast.Name) and (a.value.id, a.attr) in asked
    ]
    own = [n for n in reads if facts.names.resolve(n) is None and not callable(getattr(builtins, n.id, None))]
    return bool(own) and all(_given_another(n, trainer_in, facts) for n in own)


def _given_another(read: ast.Name, trainer_in: str, facts: Facts) -> bool:
    """Whether it reads a parameter of another function, for which calls give something by another name."""
    home = facts.scopes.scope_of(read).lookup(read.id)
    f = home.node if home is not None else None
    if home is None or not isinstance(f, ast.FunctionDef) or read.id not in home.params or f.name == trainer_in:
        return False
    holder = facts.scopes.parents.get(f)
    bound = isinstance(holder, ast.ClassDef)
    called = holder.name if isinstance(holder, ast.ClassDef) and f.name == "__init__" else f.name
    given = [argument(c, f, read.id, bound and not is_static(f)) for c in facts.names.nodes.calls.get(called, ())]
    shown = [a for a in given if a is not None]
    return bool(shown) and not any(getattr(a, "id", "") == read.id for a in shown)
