"""T2: which tensor at hand a new tensor meets: in arithmetic, in a comparison, as arguments of one function.

Two tensors that meet have to be on one device, so the new one is right where the other is, wherever that may be.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.arguments import argument
from ..facts.held import is_plain
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.tensor_methods import FUNCTIONS, METHODS, VIEWS
from ..facts.unplaced import before_the_loop
from ..facts.uses import uses

LOSSES = {
    f"torch.nn.functional.{n}" for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy", "kl_div")
}
MEETING = {f"torch.{n}" for n in FUNCTIONS | {"min", "max", "dist", "lt", "gt", "isclose"}} | LOSSES
ASKED = ("parameters", "named_parameters", "state_dict", "load_state_dict")
DECIDES = ast.If | ast.While | ast.IfExp | ast.Assert | ast.BoolOp


def met(facts: Facts, f: ast.FunctionDef, call: ast.Call, is_tensor: Callable[[str], bool]) -> str | None:
    """The name of a tensor at hand that meets what the call makes, there or by its name; None where none shows.

    `is_tensor`: whether a name of the function is one.
    """
    own, beside = facts.scopes.by_node[f], list(meetings(facts, call))
    for _, others in beside:
        there = [o for o in others if not _moves(facts, o)]
        name = next((n for o in there if (n := root(o)) is not None and _shown(f, n, is_tensor)), None)
        if name is not None:
            return name
    s = facts.scopes.parents.get(beside[-1][0] if beside else call)
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(s, ast.Assign) or not isinstance(target, ast.Name):
        return None
    for read in _reached(facts, s, target.id, own):
        for _, others in meetings(facts, read):
            for name in filter(None, (root(o) for o in others if not _moves(facts, o))):
                if name in own.params and (is_tensor(name) or (name not in own.stores and _shown(f, name, is_tensor))):
                    return name
    return None


def _moves(facts: Facts, other: ast.expr) -> bool:
    """`adj.to(device)` of an adj that nothing else moves: where that is says nothing of what it becomes."""
    moved = (facts.devices.moved(n) for n in walk(other, ast.Call))
    return any(m is not None and not facts.placed.by_runtime(m) for m in moved)


def _reached(facts: Facts, s: ast.Assign, name: str, own: Scope) -> Iterator[ast.Name]:
    """Where the name that a statement gives a value is read with that: below it, until it is given another."""
    reads = list(facts.scopes.reads(name, own))
    if len(own.stores.get(name, ())) == 1:
        yield from reads
        return
    around = {read: {read, *facts.scopes.ancestors(read)} for read in reads}
    at: ast.stmt = s
    while block := facts.scopes.block_of(at):
        for below in block[block.index(at) + 1 :]:
            again = any(below in facts.scopes.ancestors(n) for n in own.stores[name])
            if not again or isinstance(below, ast.Assign):
                yield from (read for read in reads if below in around[read])
            if again:
                return
        up = facts.scopes.parents.get(at)
        if not isinstance(up, (ast.If, ast.With)):
            return
        at = up


def given_module(facts: Facts, call: ast.Call) -> str | None:
    """A parameter of the module that the function around is given and calls on the tensor; None where none shows.

    `def sample(net): z = torch.randn(8, 2).cuda(); return net(z)`: wherever the net is, when it is called. So is
    the `self.net` of a plain object.
    """
    f = next((u for u in facts.scopes.ancestors(call) if isinstance(u, (ast.FunctionDef, ast.Lambda))), None)
    if not isinstance(f, ast.FunctionDef):
        return None
    own, s = facts.scopes.by_node[f], facts.scopes.statement_of(call)
    if facts.lifting and before_the_loop(facts, s):
        return None  # where the network is not placed yet
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 and s.value is call else None
    c = facts.classes.holder(f)
    for fed in (n for n in walk(f, ast.Call)):
        if not any(a is call or (isinstance(target, ast.Name) and _is(a, target.id)) for a in fed.args):
            continue
        if c is not None:
            if _is_network_of(facts, c, fed.func):
                return f"next({ast.unparse(fed.func)}.parameters())"
            continue
        name = fed.func.id if isinstance(fed.func, ast.Name) else ""
        if name in own.params and name not in own.stores and _has_parameters(facts, f, name):
            return f"next({name}.parameters())"
    return None


def _is_network_of(facts: Facts, c: ast.ClassDef, func: ast.expr) -> bool:
    """The `self.model` of a plain object, of which its class asks the parameters."""
    if not isinstance(func, ast.Attribute) or not facts.classes.is_self(func.value) or not is_plain(facts, c):
        return False
    asked = [a.value for a in facts.attributes.get("parameters", ()) if c in facts.scopes.ancestors(a)]
    return any(ast.unparse(a) == ast.unparse(func) for a in asked)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _has_parameters(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    """Whether every call of a function gives it there what is asked for its parameters elsewhere, or is loaded with
    such.
    """
    calls = facts.devices.uses_of_function(f)
    given = [argument(c, f, name) if isinstance(c, ast.Call) else None for c in calls]
    asked = {ast.unparse(a.value) for method in ASKED for a in facts.attributes.get(method, ())}
    return bool(given) and all(isinstance(v, (ast.Name, ast.Attribute)) and ast.unparse(v) in asked for v in given)


def _shown(f: ast.FunctionDef, name: str, is_tensor: Callable[[str], bool]) -> bool:
    """Whether a name is a tensor by its uses, or by `name[:, None]`."""
    if is_tensor(name):
        return True
    indices = [i for i in uses(f).indices.get(name, ()) for i in (i.elts if isinstance(i, ast.Tuple) else [i])]
    return any(isinstance(i, ast.Constant) and (i.value is None or i.value is Ellipsis) for i in indices)


def meetings(facts: Facts, node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """What stands beside a tensor, outwards, and what holds both: of `x + made[None] * 2` the 2, and then the x."""
    up = facts.scopes.parents.get(node)
    while up is not None:
        if isinstance(up, ast.BinOp):
            yield up, [up.right if node is up.left else up.left]
        elif isinstance(up, ast.Compare):
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in up.ops):
                return
            yield up, [n for n in (up.left, *up.comparators) if n is not node]
        elif isinstance(up, (ast.Tuple, ast.List)) and isinstance(facts.scopes.parents.get(up), ast.Call):
            yield up, [e for e in up.elts if e is not node]
        elif isinstance(up, ast.Call) and node is not up.func:
            f = up.func
            if facts.names.resolve(f) in MEETING:
                yield up, [a for a in up.args if a is not node]
            elif facts.names.resolve(f) is None and isinstance(f, ast.Attribute) and f.attr in METHODS:
                yield up, [f.value, *(a for a in up.args if a is not node)]
            else:
                return
        elif isinstance(up, ast.Subscript):
            if node is not up.value:
                return  # an index may be elsewhere
            yield up, []
        elif isinstance(up, (ast.UnaryOp, ast.Call)) or (isinstance(up, ast.Attribute) and _gives(up)):
            yield up, []
        else:
            return
        node, up = up, facts.scopes.parents.get(up)


def _gives(a: ast.Attribute) -> bool:
    return a.attr in METHODS or a.attr in VIEWS


def root(node: ast.expr) -> str | None:
    """The x of `x[:, None].float() * 2`."""
    if isinstance(node, ast.BinOp):
        return root(node.left) or root(node.right)
    value = _root_of_value(node)
    return value.id if isinstance(value, ast.Name) else None


def _root_of_value(node: ast.expr) -> ast.expr:
    """What methods and indices are taken of."""
    while True:
        if isinstance(node, (ast.Subscript, ast.UnaryOp)):
            node = node.value if isinstance(node, ast.Subscript) else node.operand
        elif isinstance(node, ast.Attribute) and node.attr in VIEWS:
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            if isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F"):
                return node
            node = node.func.value
        else:
            return node


def is_helper(facts: Facts, f: ast.FunctionDef) -> bool:
    """A method of a module, or a function that one of those, or a step of a loop, calls: what it is given is placed."""
    holder = facts.classes.holder(f)
    if holder is not None:
        return holder in facts.classes.modules and f.name != "__init__"
    if f not in facts.helpers:
        facts.helpers[f] = False  # until it is known, for functions that call themselves
        calls = [u for u in facts.devices.uses_of_function(f) if isinstance(u, ast.Call)]
        facts.helpers[f] = any(_in_step(facts, c) for c in calls)
    return facts.helpers[f]


def is_called_in_steps(facts: Facts, f: ast.FunctionDef) -> bool:
    """A method of another class that the step of a loop calls, by its name: `self.process(x, y)`."""
    holder = facts.classes.holder(f)
    if holder is None or holder in facts.classes.modules:
        return False
    if f not in facts.helpers:
        facts.helpers[f] = False
        facts.helpers[f] = any(_in_step(facts, c) for c in facts.calls_of(f.name))
    return facts.helpers[f]


def _in_step(facts: Facts, call: ast.Call) -> bool:
    if facts.loops.hot(call) is not None:
        return True
    f = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.FunctionDef)), None)
    return f is not None and (is_helper(facts, f) or is_called_in_steps(facts, f))


def decides(facts: Facts, call: ast.Call) -> bool:
    """Whether it is only a condition that the tensor is made for: `if torch.rand(1) < 0.5:`."""
    for up in facts.scopes.ancestors(call):
        if isinstance(up, DECIDES):
            return not isinstance(up, (ast.If, ast.While)) or call in walk(up.test)
        if isinstance(up, ast.stmt):
            return False
    return False


def of_callers(facts: Facts, name: ast.expr, depth: int = 0) -> bool:
    """Whether a device is a parameter that every caller in the file gives one by a name of its own: what it says there
    goes for the function, and is told of there.
    """
    scope = facts.scopes.scope_of(name).lookup(name.id) if isinstance(name, ast.Name) else None
    f = scope.node if scope is not None else None
    if scope is None or not isinstance(name, ast.Name) or not isinstance(f, ast.FunctionDef):
        return False
    if name.id not in scope.params or name.id in scope.stores or depth > 3 or facts.classes.holder(f) is not None:
        return False
    calls = facts.devices.uses_of_function(f)
    given = [argument(c, f, name.id) if isinstance(c, ast.Call) else None for c in calls]
    return bool(given) and all(v is not None and _says_where(facts, v, depth) for v in given)


def _says_where(facts: Facts, value: ast.expr, depth: int) -> bool:
    if facts.lifting and before_the_loop(facts, facts.scopes.statement_of(value)):
        return False  # the network has not been placed yet
    scope = facts.scopes.scope_of(value).lookup(value.id) if isinstance(value, ast.Name) else None
    if scope is not None and isinstance(value, ast.Name) and value.id in scope.params:
        return of_callers(facts, value, depth + 1)
    return isinstance(value, (ast.Name, ast.Attribute)) and facts.devices.is_device(value)
