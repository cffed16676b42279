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
OF_STEPS = "register_post_accumulate_grad_hook"
OF_MODULES = ("register_full_backward_hook", "register_backward_hook")
KEEPS = {"clone", "detach", "contiguous", "to", "float", "neg", "t", "view", "reshape"}
SCALES = {"mul", "mul_", "div", "div_"}
LIKE = {"torch.zeros_like", "torch.ones_like"}
KEPT_BY = {"append", "update", "copy_", "add_scalar", "add_histogram", "print"}  # methods of what keeps or shows it


def changed_gradients(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: a hook makes of a gradient what is not straight in it."""
    for call, hook, given in _hooks(facts):
        # one that is called when the gradient is there reads p.grad, and may step
        if given is None or _Hook(facts, hook, given).bends():
            return CannotLift(call, f"`{facts.short(call)}` changes gradients before the ranks take the mean")
    return None


def filled_by_hooks(facts: Facts) -> set[str]:
    """The names of the script, and the attributes of `self`, that hooks on gradients read or fill in backward()."""
    found: set[str] = set()
    for _, hook, _ in _hooks(facts):
        own = facts.scopes.by_node[hook]
        for n in walk(hook):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
                found.add(n.attr)
            elif isinstance(n, ast.Name) and facts.names.resolve(n) is None:
                found |= {n.id} if facts.scopes.scope_of(n).lookup(n.id) not in (None, own) else set()
    return found


def _hooks(facts: Facts) -> Iterator[tuple[ast.Call, ast.Lambda | ast.FunctionDef, str | None]]:
    """The calls that register hooks, the functions of this file that they register, and which parameter the gradient
    is: None of one that gets the tensor itself.
    """
    for name in (OF_TENSORS, OF_STEPS, *OF_MODULES):
        for a in facts.attributes.get(name, ()):
            call = facts.scopes.parents.get(a)
            if not isinstance(call, ast.Call) or call.func is not a or not call.args:
                continue
            for f in _functions(facts, call.args[0]):
                last = f.args.args[-1 if name == OF_TENSORS else -2 :]  # (grad), (module, grad_input, grad_output)
                gradient = last[0].arg if last else ""
                yield call, f, None if name == OF_STEPS else gradient


def _functions(facts: Facts, hook: ast.expr) -> list[ast.Lambda | ast.FunctionDef]:
    if isinstance(hook, ast.Lambda):
        return [hook]
    if isinstance(hook, ast.Attribute):  # `self.save_gradient`
        return [*methods_of(facts, hook.attr)]
    f = local_function(facts, hook) if isinstance(hook, ast.Name) else None
    return [f] if f is not None else []


class _Hook:
    """Follows a gradient through a hook: `straight`, the names of what is linear in it, and `bent`, of what is not."""

    def __init__(self, facts: Facts, hook: ast.Lambda | ast.FunctionDef, gradient: str) -> None:
        self.facts = facts
        self.hook = hook
        self.straight, self.bent = {gradient}, set[str]()
        self.in_place = False  # has what it was given been changed so?

    def bends(self) -> bool:
        if isinstance(self.hook, ast.Lambda):
            return self._is_bent(self.hook.body)
        decides = False
        for n in sorted(walk(self.hook), key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
            self._follow(n)
            decides = decides or (isinstance(n, (ast.If, ast.IfExp, ast.While)) and self._asks_for_value(n.test))
        values = returned(self.hook)
        gives = self.in_place or any(not isinstance(v, ast.Constant) for v in values)
        return (gives and decides) or self.in_place or any(map(self._is_bent, values))

    def _follow(self, n: ast.AST) -> None:
        """`h = g.clamp(-1, 1)`, `g *= mask`, `g.clamp_(-1, 1)`"""
        if isinstance(n, ast.Assign) and self._reads(n.value):
            names = {t.id for t in n.targets if isinstance(t, ast.Name)}
            bent = self._is_bent(n.value)
            self.straight = self.straight - names if bent else self.straight | names
            self.bent = self.bent | names if bent else self.bent - names
        elif isinstance(n, ast.AugAssign) and self._reads(n.target):
            if self._is_bent(ast.BinOp(n.target, n.op, n.value)):
                self.in_place = True
        elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Attribute):
            changes = n.value.func.attr.endswith("_") and self._reads(n.value.func.value)
            self.in_place = self.in_place or (changes and self._is_bent(n.value))

    def _asks_for_value(self, test: ast.expr) -> bool:
        """Not `if g is None:`"""
        there = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return not there and self._reads(test)

    def _reads(self, value: ast.AST) -> bool:
        return any(n.id in self.straight | self.bent for n in walk(value, ast.Name))

    def _is_bent(self, value: ast.expr) -> bool:
        return self._reads(value) and not self._is_straight(value)

    def _is_straight(self, value: ast.expr) -> bool:
        """Whether an expression is linear in the gradient, or gives nothing of it: `norms.append(g.norm())`."""
        if isinstance(value, ast.Name):
            return value.id in self.straight
        if isinstance(value, ast.UnaryOp):
            return isinstance(value.op, ast.USub) and self._is_straight(value.operand)
        if isinstance(value, ast.Tuple):  # of a module's hook
            return not any(map(self._is_bent, value.elts))
        if isinstance(value, ast.Subscript):
            return self._is_straight(value.value)
        if isinstance(value, ast.BinOp):
            left, right = self._is_straight(value.left), self._is_straight(value.right)
            if isinstance(value.op, (ast.Add, ast.Sub)):
                return left and right
            by_left = left and not self._reads(value.right) and isinstance(value.op, (ast.Mult, ast.Div))
            return by_left or (right and not self._reads(value.left) and isinstance(value.op, ast.Mult))
        return isinstance(value, ast.Call) and self._gives_straight(value)

    def _gives_straight(self, call: ast.Call) -> bool:
        f = call.func
        if self.facts.names.resolve(f) in LIKE:
            return True
        if not isinstance(f, ast.Attribute):
            return isinstance(f, ast.Name) and f.id == "print"
        if f.attr in KEPT_BY and not self._reads(f.value):
            return True
        scales = f.attr in SCALES and not any(map(self._reads, call.args))
        return (scales or f.attr in KEEPS) and self._is_straight(f.value)
