"""Hooks that change gradients as backward() makes them: of a share of the batch, before the ranks take the mean.

    for p in net.parameters():
        p.register_hook(lambda g: g.clamp(-1, 1))

What is straight, `g * mask`, gives the same in either order; where it is not, every rank computes the whole batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from .holders import methods_of
from .nodes import local_function, returned
from .recipe import CannotLift

OF_TENSORS = "register_hook"
OF_OTHERS = ("register_post_accumulate_grad_hook", "register_full_backward_hook", "register_backward_hook")
KEEPS = {"clone", "detach", "contiguous", "to", "float", "neg", "t", "view", "reshape"}
SCALES = {"mul", "mul_", "div", "div_"}
LIKE = {"torch.zeros_like", "torch.ones_like"}


def changed_gradients(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: a hook makes of a gradient what is not straight in it."""
    for name in (OF_TENSORS, *OF_OTHERS):
        for a in facts.attributes.get(name, ()):
            call = facts.scopes.parents.get(a)
            if isinstance(call, ast.Call) and call.func is a and call.args and _bends(facts, call.args[0], name):
                return CannotLift(call, f"`{facts.short(call)}` changes gradients before the ranks take the mean")
    return None


def filled_by_hooks(facts: Facts) -> set[str]:
    """The names of the script, and the attributes of `self`, that hooks on gradients read or fill in backward()."""
    found: set[str] = set()
    for a in (a for name in (OF_TENSORS, *OF_OTHERS) for a in facts.attributes.get(name, ())):
        call = facts.scopes.parents.get(a)
        for hook in call.args[:1] if isinstance(call, ast.Call) and call.func is a else ():
            if isinstance(hook, ast.Attribute):  # `self.save_gradient`
                of = (n for f in methods_of(facts, hook.attr) for n in walk(f) if isinstance(n, ast.Attribute))
                found |= {n.attr for n in of if isinstance(n.value, ast.Name) and n.value.id == "self"}
                continue
            f = local_function(facts, hook) if isinstance(hook, ast.Name) else hook
            if isinstance(f, ast.Lambda | ast.FunctionDef):
                own = facts.scopes.by_node[f]
                outer = (n for n in walk(f) if isinstance(n, ast.Name) and facts.names.resolve(n) is None)
                found |= {n.id for n in outer if facts.scopes.scope_of(n).lookup(n.id) not in (None, own)}
    return found


def _bends(facts: Facts, hook: ast.expr, registered: str) -> bool:
    if registered == "register_post_accumulate_grad_hook":  # it reads p.grad, and may step
        return True
    f = local_function(facts, hook) if isinstance(hook, ast.Name) else hook
    if not isinstance(f, ast.Lambda | ast.FunctionDef):
        return False
    a = f.args.args[0 if registered == OF_TENSORS else -2 :]
    gradient = a[0].arg if a else ""
    values = [f.body] if isinstance(f, ast.Lambda) else [*returned(f), *_given(f, gradient)]
    return any(_reads(v, gradient) and not _straight(facts, v, gradient) for v in values)


def _given(f: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """What the gradient becomes in a hook: `g = g.clamp(-1, 1)`, `g *= mask`, `g.clamp_(-1, 1)`."""
    for n in walk(f):
        if isinstance(n, ast.Assign) and any(_names(t, name) for t in n.targets):
            yield n.value
        elif isinstance(n, ast.AugAssign) and _names(n.target, name):
            yield ast.BinOp(ast.Name(name, ast.Load()), n.op, n.value)
        elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Call):
            called = n.value.func
            if isinstance(called, ast.Attribute) and called.attr.endswith("_") and _names(called.value, name):
                yield n.value


def _names(node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == name


def _reads(value: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(value))


def _straight(facts: Facts, value: ast.expr, name: str) -> bool:
    """Whether an expression is linear in a name, or gives nothing of it: `norms.append(g.norm())`."""
    if isinstance(value, ast.Name):
        return value.id == name
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.USub) and _straight(facts, value.operand, name)
    if isinstance(value, ast.Tuple):  # of a module's hook
        return all(_straight(facts, e, name) for e in value.elts)
    if isinstance(value, ast.Subscript):
        return _straight(facts, value.value, name)
    if isinstance(value, ast.BinOp):
        left, right = (_straight(facts, v, name) for v in (value.left, value.right))
        if isinstance(value.op, ast.Add | ast.Sub):
            return left and right
        scaled = left and not _reads(value.right, name)
        return (scaled and isinstance(value.op, ast.Mult | ast.Div)) or (
            right and not _reads(value.left, name) and isinstance(value.op, ast.Mult)
        )
    if not isinstance(value, ast.Call):
        return False
    if facts.names.resolve(value.func) in LIKE:
        return True
    f = value.func
    if not isinstance(f, ast.Attribute):
        return isinstance(f, ast.Name) and f.id == "print"
    others = any(_reads(v, name) for v in value.args)
    if f.attr in ("append", "update", "copy_", "add_scalar", "add_histogram", "print") and not _reads(f.value, name):
        return True
    return (f.attr in KEEPS or (f.attr in SCALES and not others)) and _straight(facts, f.value, name)
