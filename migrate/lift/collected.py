"""Meters and lists that a training step fills: where batches are shared out, a process puts values of its share in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..facts.arguments import given_to
from ..facts.nodes import children, walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .chunks import Binder, Chunk, Variable, given_arguments
from .feeding import feeding
from .nodes import local_function, names_of, walk_here
from .rates import GROUPS
from .reads import stored
from .recipe import CannotLift, DataPass, Recipe
from .shown import SHOWS, is_picture, keeps, shows

ARITHMETIC = ("min", "max", "len", "int", "float", "round", "abs", "pow", "sum")
# which their first argument is written to
FILLED_FIRST = (
    *("numpy.add.at", "numpy.subtract.at", "numpy.maximum.at", "numpy.put", "numpy.copyto", "numpy.place"),
    *("heapq.heappush", "heapq.heappushpop", "heapq.heapreplace", "operator.setitem"),
    *("bisect.insort", "bisect.insort_left", "bisect.insort_right"),
)
# which keep nothing of what they are given
STEPS = (
    "backward", "step", "zero_grad", "scale", "unscale_", "set_postfix", "set_description", "close", "requires_grad_",
)  # fmt: skip
LOOKS_UP = ("setdefault", "get")
FILLS = ("append", "update", "add", "extend", "push", "record", "add_")
# what binds names, and `p.grad`
BINDING = (
    ast.For, ast.comprehension, ast.Attribute, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.withitem
)  # fmt: skip


@dataclass
class Collected:
    """Names of the script and the call that fills each: shown only, or read for something else (a schedule, a test)."""

    shown: dict[str, ast.AST] = field(default_factory=dict)
    left: dict[str, ast.AST] = field(default_factory=dict)  # attributes that hold what the last batch gave
    decides: CannotLift | None = None


def collected(
    facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], sums: set[Variable], shown: set[ast.AST]
) -> Collected:
    """What the training step fills with values that depend on the samples.

    `sums`: what is brought together already, `shown`: what is where it is put in.
    """
    found = Collected()
    train = recipe.train
    body = [*train.body, *(s for f in train.body if isinstance(f, ast.FunctionDef) for s in f.body)]  # closures
    own = of_samples(facts, train, body)
    within = own | gone_through(body, own)
    for s in body:
        for n in walk_here(s):
            attribute = _attribute_filled(n)
            of_script = attribute is not None and not set(map(ast.unparse, names_of(attribute))) & own
            if attribute is not None and of_script and any(depends(a, within, shown) for a in given_by(n)):
                _note_attribute(facts, train, attribute, n, found)
            name = filled_by(n) or handed_to(facts, n)
            if name is None or name.id in own or is_bar(facts, name):
                continue
            var = binder.variable(name)
            if not (isinstance(var, Variable) or is_global(facts, name)):
                continue
            if var not in sums and any(depends(a, within, shown) for a in given_by(n)):
                found.shown.setdefault(name.id, n)
    fed = feeding(facts, recipe) if found.shown else set[str]()
    for kept, call in found.shown.items():
        if kept in fed and not _begins_anew(facts, train, kept):
            found.decides = CannotLift(call, f"`{kept}` collects values of the samples, and the loss is computed of it")
        filled = filled_by(call) or (handed_to(facts, call) if isinstance(call, ast.Call) else None)
        if filled is not None and filled.id != kept:
            continue  # an attribute, looked at already
        var = binder.variable(filled) if filled is not None else None
        reader = _reader(recipe, binder, chunks, var) if isinstance(var, Variable) else None
        if filled is not None and not isinstance(var, Variable):
            reader = _reader_of_global(facts, train, filled)
        if reader is not None:
            says = f"`{kept}` collects values of the samples, and `{facts.short(reader)}` reads it"
            found.decides = CannotLift(call, says)
    return found


def _begins_anew(facts: Facts, train: DataPass, kept: str) -> bool:
    """Whether a step begins by what changes it, `pool.begin()` or `room.copy_(x)`, and may read nothing older."""
    nodes = (n for s in train.body for n in walk_here(s) if isinstance(n, (ast.Name, ast.Attribute)))
    found = [n for n in nodes if ast.unparse(n) == kept]
    first = min(found, key=lambda n: (n.lineno, n.col_offset), default=None)
    s = facts.scopes.statement_of(first) if first is not None else None
    if all(facts.scopes.statement_of(n) is s for n in found):
        return False  # a function reads it
    return isinstance(s, ast.Expr) or (isinstance(s, ast.Assign) and first not in walk(s.value))


def gone_through(body: list[ast.stmt], own: set[str]) -> set[str]:
    """The names that comprehensions give samples: `[kept[k].append(v) for k, v in zip(at.tolist(), y.tolist())]`."""
    found: set[str] = set()
    for s in body:
        for n in walk_here(s):
            if isinstance(n, ast.comprehension) and depends(n.iter, own | found, set()):
                found |= {t.id for t in walk(n.target, ast.Name)}
    return found


def is_global(facts: Facts, name: ast.Name) -> bool:
    """A variable of the module, and nothing that is imported or defined there."""
    made = facts.scopes.module.stores.get(name.id, ())
    known = all(isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.alias)) for s in made)
    return not known and facts.scopes.scope_of(name).lookup(name.id) is facts.scopes.module


def _reader_of_global(facts: Facts, train: DataPass, filled: ast.Name) -> ast.AST | None:
    """A place outside the step that reads a name of the module's for anything but showing it."""
    for read in facts.scopes.reads(filled.id, facts.scopes.module):
        ups = list(facts.scopes.ancestors(read))
        if train.loop not in ups and not any(isinstance(up, ast.Call) and _shows(up) for up in ups):
            return facts.scopes.statement_of(read)
    return None


def _attribute_filled(n: ast.AST) -> ast.Attribute | None:
    """The self.x of `self.x.append(...)`, `self.x["a"].update(...)`, `self.x += ...`."""
    held: ast.expr | None
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in FILLS:
        held = _held(n.func.value)
    else:
        held = _held(n.target) if isinstance(n, ast.AugAssign) else None
    return held if isinstance(held, ast.Attribute) else None


def _note_attribute(facts: Facts, train: DataPass, filled: ast.Attribute, n: ast.AST, found: Collected) -> None:
    """An attribute may be read in any method: whole batches, unless it is only shown."""
    says, at = f"`{ast.unparse(filled)}` collects values of the samples", None
    for read in facts.attributes[filled.attr]:
        ups = list(facts.scopes.ancestors(read))
        if train.loop in ups or not _takes_value(read, ups):
            continue
        if not any(isinstance(up, ast.Call) and _shows(up) for up in ups):
            at = facts.scopes.statement_of(read)
            break
    if filled.attr == GROUPS and found.decides is None:
        found.decides = CannotLift(n, f"`{facts.short(n)}`: the step's rate is computed from the samples")
    elif at is None:
        found.shown.setdefault(ast.unparse(filled), n)
    elif found.decides is None:
        found.decides = CannotLift(n, f"{says}, and `{facts.short(at)}` reads it")


def _takes_value(read: ast.Attribute, ups: list[ast.AST]) -> bool:
    """Not one that sets the attribute, or makes it begin again: `self.x = 0`, `self.x.reset()`."""
    if isinstance(read.ctx, ast.Store):
        return isinstance(ups[0], ast.AugAssign)
    return not (isinstance(ups[0], ast.Attribute) and ups[0].attr in ("reset", "clear"))


def _shows(call: ast.Call) -> bool:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return last in SHOWS or last.startswith(("add_", "log_", "set_", "print"))


def filled_by(n: ast.AST) -> ast.Name | None:
    """The x of `x.append(...)`, `x["a"].update(...)`, `x[0] += ...`, `x[i]["loss"] = ...`, `x.total += ...`.

    And of `x.setdefault(k, []).append(...)`, `x["a"], y = ...`, `map(x.append, ...)`.
    """
    if isinstance(n, ast.Call):
        by_map = isinstance(n.func, ast.Name) and n.func.id == "map" and bool(n.args)
        method = n.args[0] if by_map else n.func
        if not isinstance(method, ast.Attribute) or method.attr not in FILLS:
            return None
        filled = _named(method.value)
        return filled if filled is not None and filled.id != "self" else None  # `self.update(x)` is a method's name
    if isinstance(n, (ast.AugAssign, ast.Assign)):
        for target in [n.target] if isinstance(n, ast.AugAssign) else [t for whole in n.targets for t in _parts(whole)]:
            kept = _held(target.value) if isinstance(target, (ast.Subscript, ast.Attribute)) else None
            if isinstance(kept, ast.Name) and kept.id != "self":
                return kept
    return None


def _parts(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [p for e in target.elts for p in _parts(e)]
    return [target]


def handed_to(facts: Facts, n: ast.AST) -> ast.Name | None:
    """What a call that stands alone gives values to keep: an object by any method, what NumPy or a function fills.

    And what a function of the project fills that gives a value, too: `loss = calc_loss(out, y, metrics)`.
    """
    if isinstance(n, ast.Call):
        return _filled_by_called(facts, n)
    call = n.value if isinstance(n, ast.Expr) else None
    full = facts.names.resolve(call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or (full is None and filled_by(call) is not None):
        return None  # by itself a call says what it fills
    written = [k.value for k in call.keywords if k.arg == "out"]
    if written:
        return _named(written[0])
    if full is not None or isinstance(call.func, ast.Name):
        f = local_function(facts, call.func) if full is None and isinstance(call.func, ast.Name) else None
        fills_first = full in FILLED_FIRST or (full is None and ast.unparse(call.func) == "setattr")
        first = call.args[0] if fills_first and call.args else filled_in(facts, f, call) if f else None
        if f is None and full is None and facts.scopes.scope_of(call.func).lookup(call.func.id) is not None:  # type: ignore[attr-defined]
            first = call.func  # an object that is called
        return _named(first) if first is not None else None
    root: ast.expr = call
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute) and root.func.attr in STEPS:
            return None
        root = root.func if isinstance(root, ast.Call) else root.value
    only_shown = is_picture(call) or (shows(call) and not keeps(call))
    return root if isinstance(root, ast.Name) and root.id != "self" and not only_shown else None


def _named(e: ast.expr) -> ast.Name | None:
    held = _held(e)
    return held if isinstance(held, ast.Name) else None


def _filled_by_called(facts: Facts, call: ast.Call) -> ast.Name | None:
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    there = found_there(facts, call.func) if f is None and facts.others else None
    if there is not None and isinstance(there[2], ast.FunctionDef):
        f = there[2]
    first = filled_in(facts, f, call) if f is not None else None
    return _named(first) if first is not None else None


def filled_in(facts: Facts, f: ast.FunctionDef, call: ast.Call) -> ast.expr | None:
    """The argument, or the script's own name, that a function of this file fills."""
    given = given_arguments(f, call)
    for s in f.body:
        for n in walk_here(s):
            name = filled_by(n) or _added_to(facts, n, given)
            if name is not None and name.id in given:
                return given[name.id]
            if name is not None and name in facts.scopes.parents and is_global(facts, name):
                return name
    return None


def _added_to(facts: Facts, n: ast.AST, given: Mapping[str, ast.expr]) -> ast.Name | None:
    """A function's own name for a tensor that it is given, in `total += x`: a number stays what it is outside."""
    target = n.target if isinstance(n, ast.AugAssign) else None
    in_place = isinstance(target, ast.Name) and facts.tensors.is_tensor(given.get(target.id))
    return target if isinstance(target, ast.Name) and in_place else None


def _held(node: ast.expr) -> ast.expr:
    """The x of `x[i]["loss"]`, and of `x.setdefault("loss", [])`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKS_UP:
            node = node.func.value
        else:
            return node


def given_by(n: ast.AST) -> list[ast.expr]:
    """What a filling puts in."""
    if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call):
        return [a for c in _chain(n.value) for a in given_to(c)]
    if isinstance(n, ast.Call):
        return given_to(n)
    return [n.value] if isinstance(n, (ast.AugAssign, ast.Assign)) else []


def _chain(call: ast.Call) -> Iterable[ast.Call]:
    """The calls of `x.a(1).b(2)`, and not those among what they are given."""
    at: ast.expr = call
    while isinstance(at, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(at, ast.Call):
            yield at
        at = at.func if isinstance(at, ast.Call) else at.value


def depends(node: ast.AST, own: set[str], shown: set[ast.AST]) -> bool:
    """Whether an argument is computed from the samples; `shown` is brought together, counts of samples are sizes."""
    if node in shown:
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        last = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if last in ("len", "size", "time"):
            return False
    if isinstance(node, ast.Name):
        return node.id in own
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return False
    return any(depends(child, own, shown) for child in ast.iter_child_nodes(node))


def _sizes_and_clocks(facts: Facts, body: list[ast.stmt]) -> set[str]:
    """Names that a step gives nothing but numbers of samples, or times."""
    values: dict[str, list[bool]] = {}
    for s in body:
        for n in walk_here(s):
            if isinstance(n, ast.Assign):
                for t in n.targets:
                    if isinstance(t, ast.Name):
                        values.setdefault(t.id, []).append(_counts_or_times(facts, n.value))
    return {name for name, kinds in values.items() if all(kinds)}


def _weights(body: list[ast.stmt], own: set[str]) -> set[str]:
    """Names of nothing but weights, which all processes have alike: `for name, p in net.named_parameters()`."""
    found: set[str] = set()
    others = {n.arg for s in body for n in walk(s, ast.arg)}
    for s in body:
        for n in (n for n in walk(s) if isinstance(n, BINDING)):
            if isinstance(n, (ast.For, ast.comprehension)) and _goes_through_weights(n.iter, own):
                found |= {t.id for t in walk(n.target, ast.Name)}
            elif isinstance(n, (ast.For, ast.comprehension)):
                others |= {t.id for t in walk(n.target, ast.Name)}
            elif isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.value, ast.Name):
                others.add(n.value.id)  # which may be those of a share
            elif not isinstance(n, ast.Attribute):
                others |= stored([n]) if isinstance(n, ast.stmt) else {t.id for t in walk(n, ast.Name)}
    return found - others


def _goes_through_weights(e: ast.expr, own: set[str]) -> bool:
    """`net.parameters()`, of a network that the step does not make, and several at once."""
    f = e.func if isinstance(e, ast.Call) else None
    if isinstance(e, ast.Call) and isinstance(f, ast.Name) and f.id in ("zip", "enumerate", "list") and e.args:
        return all(_goes_through_weights(a, own) for a in e.args)
    if not isinstance(f, ast.Attribute) or f.attr not in ("parameters", "named_parameters"):
        return False
    return own.isdisjoint(n.id for n in names_of(f))


def of_samples(facts: Facts, train: DataPass, body: list[ast.stmt]) -> set[str]:
    """The names that a step writes, but those of the step's number and what stands above the loop alone, and sizes."""
    own = stored(body) | {n.id for n in walk(train.target, ast.Name)}
    own -= _sizes_and_clocks(facts, body)
    own -= _weights(body, own)
    values: dict[str, list[ast.expr | None]] = {}
    for s in body:
        for n in walk_here(s):
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
                up = facts.scopes.parents.get(n)
                values.setdefault(n.id, []).append(up.value if isinstance(up, ast.Assign) else None)
    batch = {n.id for n in walk(train.target, ast.Name)}
    while True:
        alike = {name for name in own - batch if all(v is not None and _is_sum(facts, v, own) for v in values[name])}
        if not alike:
            return own
        own = own - alike


def _is_sum(facts: Facts, value: ast.AST, own: set[str]) -> bool:
    """Whether an expression is arithmetic over names that are not `own`."""
    if isinstance(value, ast.Name):
        return value.id not in own
    if isinstance(value, ast.Attribute):
        return isinstance(value.value, ast.Name) and value.value.id != "self" and _is_sum(facts, value.value, own)
    if isinstance(value, ast.Call):
        known = (facts.names.resolve(value.func) or "").startswith("math.")
        known = known or (isinstance(value.func, ast.Name) and value.func.id in ARITHMETIC)
        known = known or _computes(facts, value.func, own)
        return known and not value.keywords and all(_is_sum(facts, a, own) for a in value.args)
    if not isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Constant)):
        return False
    below = [n for n in children(value) if isinstance(n, ast.expr)]
    return all(_is_sum(facts, n, own) for n in below)


def _computes(facts: Facts, f: ast.expr, own: set[str]) -> bool:
    """Whether a name is that of lambdas that compute with what they are given, by `math` and NumPy: `schedule(t)`."""
    scope = facts.scopes.scope_of(f).lookup(f.id) if isinstance(f, ast.Name) else None
    values = facts.devices.assigned(f.id, scope) if scope is not None and isinstance(f, ast.Name) else None
    return bool(values) and all(isinstance(v, ast.Lambda) and _is_of_numbers(facts, v, own) for v in values or ())


def _is_of_numbers(facts: Facts, f: ast.Lambda, own: set[str]) -> bool:
    given = {a.arg for a in f.args.args}
    for n in walk(f.body):
        if isinstance(n, ast.Name) and n.id in own - given:
            return False
        if isinstance(n, ast.Call):
            full = facts.names.resolve(n.func) or ""
            plain = isinstance(n.func, ast.Name) and n.func.id in ARITHMETIC
            if not plain and (not full.startswith(("math.", "numpy.")) or full.startswith("numpy.random.")):
                return False
    return True


def is_bar(facts: Facts, name: ast.Name) -> bool:
    """Whether a name is a progress bar, which only shows: `loader = tqdm(loader)`, `loader.desc = text`."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None else None
    made = [facts.names.resolve(v.func) or "" for v in values or () if isinstance(v, ast.Call)]
    loaders = all(isinstance(v, (ast.Call, ast.Name)) for v in values or ())  # what it goes through
    for read in facts.scopes.reads(name.id, scope) if scope is not None else ():
        asked = facts.scopes.parents.get(read)
        if isinstance(asked, ast.Attribute) and isinstance(asked.ctx, ast.Load):
            called = facts.scopes.parents.get(asked)
            loaders = loaders and isinstance(called, ast.Call) and called.func is asked
    return bool(made) and loaders and all(full.partition(".")[0] == "tqdm" for full in made)


def _counts_or_times(facts: Facts, value: ast.expr) -> bool:
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.BinOp):
        return _counts_or_times(facts, value.left)
    if not isinstance(value, ast.Call):
        return False
    last = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return last in ("len", "size") or (facts.names.resolve(value.func) or "").startswith("time.")


def _reader(recipe: Recipe, binder: Binder, chunks: list[Chunk], var: object) -> ast.AST | None:
    """A place outside the step that reads the name for anything but showing it."""
    outside: list[ast.AST] = [s for c in chunks if c.statements is not recipe.train.body for s in c.statements]
    rest = recipe.trunk_body[recipe.trunk_body.index(recipe.epoch_loop) + 1 :]
    outside += [*rest, *([recipe.train.returns] if recipe.train.returns is not None else [])]
    for node in outside:
        for n in _not_shown(node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and binder.variable(n) == var:
                return node
    return None


def _not_shown(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes below one, without what stands in calls that only show values."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        if isinstance(n, ast.Call) and _shows(n):
            continue
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and len(n.targets) == 1:
            made = n.value
            if isinstance(n.targets[0], ast.Name) and n.targets[0].id.startswith("progress") and made.args:
                continue  # a meter that shows others
        stack.extend(ast.iter_child_nodes(n))
