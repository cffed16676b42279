"""What a script computes in full precision beside autocast, where the Trainer's precision= would be for it, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ..facts.autocast import is_autocast
from ..facts.batch_operations import LOSS, PRODUCTS
from ..facts.classes import Function
from ..facts.loops import EVALUATES, MODEL_NAME, last_part
from ..facts.nodes import walk
from ..facts.script import Facts

EVALUATING = ("validation_step", "test_step", "predict_step")
EVALUATED = "evaluated in full precision: the Trainer's precision= is for evaluation, too"
HALVED = PRODUCTS | {
    "einsum", "baddbmm", "addbmm", "addmv", "mv", "addr", "multi_dot", "prelu", "scaled_dot_product_attention",
    *(f"conv{transposed}{n}d" for transposed in ("", "_transpose") for n in (1, 2, 3)),
}  # fmt: skip

GENERATES = ("generate", "sample", "translate", "inference")
# what every network has, and computes nothing
OF_MODULES = re.compile(
    r"_?(train|eval|to|to_empty|cuda|cpu|half|float|double|bfloat16|type|apply|compile|share_memory|zero_grad|forward)"
    r"|(load_|set_extra_)?state(_dict)?|requires_grad_|(named_)?(parameters|buffers|modules|children)"
    r"|(register|add|get|set|update|load|save|push|from)_\w+"
)


def beside_autocast(facts: Facts, step: ast.AST, choices: Collection[ast.AST] = ()) -> ast.expr | None:
    """What a step computes outside of autocast that the Trainer's precision would compute in half; None for nothing.

    `choices`: branches whose `else` is the same step without autocast.
    """
    given = [c.args[0] if c.args else c.func for c in _backwards(step)]
    losses = {n.id for g in given for n in walk(g, ast.Name)}
    for n in _outside(facts, step, choices):
        if isinstance(n, ast.expr) and _is_halved(facts, n, 0):
            return n
        s = n if isinstance(n, ast.Assign) else None
        if s is not None and any(isinstance(t, ast.Name) and t.id in losses for t in s.targets):
            unknown = (c for c in walk(s.value, ast.Call) if _is_unknown_loss(facts, c))
            found = next(unknown, None)
            if found is not None:
                return found
    return None


def full_evaluations(facts: Facts) -> Iterator[ast.AST]:
    """Loops and steps that evaluate, and call a model outside of autocast."""
    for loop, kind in facts.loops.hot_loops.items():
        full = kind == EVALUATES and not _is_under_autocast(facts, loop)
        if full and any(_is_model_call(facts, n) for n in _outside(facts, loop)):
            yield loop


def full_steps(facts: Facts, c: ast.ClassDef) -> Iterator[ast.AST]:
    """The steps of a module that evaluate outside of autocast."""
    for name, step in facts.classes.methods(c).items():
        if name not in EVALUATING or any(is_autocast(facts, d) for d in step.decorator_list):
            continue
        if any(_is_model_call(facts, n) or _is_called(n) for n in _outside(facts, step)):
            yield step


def _is_called(n: ast.AST) -> bool:
    return isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "self"


def _backwards(step: ast.AST) -> Iterator[ast.Call]:
    """`loss.backward()`, `scaler.scale(loss).backward()`, and the scaling of it."""
    for n in walk(step, ast.Call):
        if isinstance(n.func, ast.Attribute) and n.func.attr in ("backward", "scale"):
            yield n


def _outside(facts: Facts, step: ast.AST, choices: Collection[ast.AST] = ()) -> Iterator[ast.AST]:
    """The nodes of a step that stand in no autocast, and are of no evaluation within it."""
    pending: list[ast.AST] = [*getattr(step, "body", ())]
    while pending:
        n = pending.pop(0)
        if isinstance(n, ast.With) and any(is_autocast(facts, i.context_expr) for i in n.items):
            continue
        if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Lambda)) or facts.loops.hot_loops.get(n) == EVALUATES:
            continue
        yield n
        pending += n.body if n in choices else ast.iter_child_nodes(n)  # type: ignore[attr-defined]


def _is_under_autocast(facts: Facts, node: ast.AST) -> bool:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.With) and any(is_autocast(facts, i.context_expr) for i in up.items):
            return True
        if isinstance(up, Function):
            return any(is_autocast(facts, d) for d in up.decorator_list)
    return False


def _is_halved(facts: Facts, n: ast.expr, depth: int) -> bool:
    """A product of matrices, a model's call, and a function of the file that computes one."""
    if isinstance(n, ast.BinOp):
        return isinstance(n.op, ast.MatMult)
    if not isinstance(n, ast.Call):
        return False
    last = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
    if last in HALVED or _is_model_call(facts, n) or _is_of_model(facts, n) or _is_part_of_model(facts, n):
        return True
    f = _own(facts, n) if depth < 3 else None
    if f is None or any(is_autocast(facts, d) for d in f.decorator_list):
        return False
    return any(_is_halved(facts, inner, depth + 1) for inner in _outside(facts, f) if isinstance(inner, ast.expr))


def _is_of_model(facts: Facts, call: ast.Call) -> bool:
    """`net.generate(x)`: a method of a class of this file that computes with its layers; of others by its name."""
    if not isinstance(call.func, ast.Attribute):
        return False
    classes = _own_classes(facts, _bare(call.func.value))
    own = [m for c in classes if (m := facts.classes.methods(c).get(call.func.attr))]
    if own:
        return any(isinstance(n, ast.Call) and _root(n.func) == "self" for f in own for n in walk(f))
    return call.func.attr in GENERATES and MODEL_NAME.search(_root(call.func)) is not None


def _is_part_of_model(facts: Facts, call: ast.Call) -> bool:
    """`model[0](x)`, `net.head(x)`: a layer that is called by itself."""
    f = call.func
    if not (call.args or call.keywords) or not isinstance(f, (ast.Subscript, ast.Attribute)):
        return False
    model = f.value
    while isinstance(model, ast.Subscript):
        model = model.value
    name = last_part(_bare(model))
    if name is None or not facts.loops.is_model_name(name) or facts.names.resolve(f) is not None:
        return False
    if isinstance(f, ast.Subscript):
        return True
    if OF_MODULES.fullmatch(f.attr) or LOSS.search(f.attr):
        return False
    return all(f.attr not in facts.classes.methods(c) for c in _own_classes(facts, _bare(model)))


def _own_classes(facts: Facts, model: ast.expr) -> list[ast.ClassDef]:
    """The modules of this file that a model is one of."""
    values = [facts.devices.moved(v) or v for v in _values(facts, model, 0) if isinstance(v, ast.Call)]
    made = {_root(v.func) for v in values if isinstance(v, ast.Call)}
    return [c for c in facts.classes.modules if c.name in made]


def _bare(node: ast.expr) -> ast.expr:
    """`net` of `net.module`."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_model_call(facts: Facts, n: ast.AST) -> bool:
    if not isinstance(n, ast.Call) or not (n.args or n.keywords):
        return False
    layers = [f for f in _makers(facts, n.func) if f is not None and f.startswith("torch.nn.")]
    return facts.loops.is_model_call(n) or any(not LOSS.search(f) for f in layers)


def _is_unknown_loss(facts: Facts, call: ast.Call) -> bool:
    """A loss by its name, of another file or of a class of this one, of which nothing shows what it computes."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not LOSS.search(last) or _own(facts, call) is not None:
        return False
    full = facts.names.resolve(call.func)
    if full is not None:
        return not full.startswith("torch.")
    return not all(m is not None and m.startswith("torch.nn.") for m in _makers(facts, call.func))


def _makers(facts: Facts, func: ast.expr) -> list[str | None]:
    """The classes that made what is called, by their full names."""
    made = [facts.devices.moved(v) or v if isinstance(v, ast.Call) else v for v in _values(facts, func, 0)]
    return [facts.names.resolve(v.func) if isinstance(v, ast.Call) else None for v in made]


def _values(facts: Facts, node: ast.expr, depth: int) -> list[ast.expr]:
    """What a name or an attribute of `self` is given, through the calls of its function too."""
    if isinstance(node, ast.IfExp):
        return [*_values(facts, node.body, depth), *_values(facts, node.orelse, depth)]
    if depth > 4 or not isinstance(node, (ast.Name, ast.Attribute)):
        return [node]
    if isinstance(node, ast.Attribute):
        found = facts.devices.attribute_values.get(node.attr)
    else:
        scope = facts.scopes.scope_of(node).lookup(node.id)
        if scope is None:
            return [node]
        is_given = node.id in scope.params and node.id not in scope.stores
        found = facts.devices.given(scope, node.id) if is_given else facts.devices.assigned(node.id, scope)
    return [v for value in found or [] for v in _values(facts, value, depth + 1)] or [node]


def _own(facts: Facts, call: ast.Call) -> ast.FunctionDef | None:
    """The function of the file that a call calls by its name."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return next((f for f in facts.tree.body if isinstance(f, ast.FunctionDef) and f.name == name), None)
