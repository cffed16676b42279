"""T2: a tensor that meets the batch before it is moved itself is made where the batch is.

`torch.eye(10)[y].to(device)`, `torch.zeros(n, 10).scatter_(1, y[:, None], 1).to(device)`: y was on the CPU there, and
is where the runtime places batches now, https://pytorch.org/docs/stable/notes/cuda.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import given_to
from ..facts.classes import STEPS
from ..facts.cpu_types import cast_on_cpu
from ..facts.drawn import draw_of, makers
from ..facts.loops import unwrapped
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.sizes import is_size
from ..facts.tensor_methods import METHODS, VIEWS
from ..facts.uses import uses
from ._at_hand import is_helper
from ._tensor_names import is_number_or_list, is_tensor

FILLS = {"scatter", "scatter_", "scatter_add", "scatter_add_", "index_fill_", "index_add_", "index_copy_", "index_put_",
         "index_add", "index_fill", "index_copy", "masked_fill", "masked_fill_", "masked_scatter_", "masked_scatter",
         "index_select", "gather", "add", "add_", "mul", "mul_", "copy_"}  # fmt: skip
MEETS = {f"torch.{n}" for n in "bernoulli where mul add sub div matmul mm bmm maximum minimum eq exp sqrt".split()}
JOINS = {f"torch.{n}" for n in ("cat", "concat", "stack", "hstack", "vstack")}
LEAVES = {"cpu", "to", "cuda", "type", "type_as", "numpy", "tolist", "item"}


def met_before_move(facts: Facts, call: ast.Call) -> str | None:
    """The name of a tensor of the batch that what the call makes meets, where it is not moved yet; None without one."""
    node, found = _along(facts, call)
    if found is not None:
        return found
    s = facts.scopes.parents.get(node)
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 and s.value is node else None
    if not isinstance(s, ast.Assign) or not isinstance(target, ast.Name):
        return None
    filled = (_fills(facts, below, target.id) for below in _until_moved(facts, s, target.id))
    return next((name for name in filled if name is not None and _is_there(facts, name, s)), None)


def _is_there(facts: Facts, name: str, s: ast.stmt) -> bool:
    """Whether a name has its value above a statement, wherever that is reached."""
    scope, around = facts.scopes.scope_of(s).lookup(name), {s, *facts.scopes.ancestors(s)}
    if scope is None or name in scope.params:
        return scope is not None
    for store in scope.stores.get(name, ()):
        given = facts.scopes.statement_of(store)
        above = given.lineno < s.lineno and not around.isdisjoint(facts.scopes.block_of(given))
        if above or (given in around and given is not s):
            return True
    return False


def _along(facts: Facts, node: ast.expr) -> tuple[ast.expr, str | None]:
    """What methods and indices make of a tensor before one moves it, and what of the batch they are given."""
    while True:
        up = facts.scopes.parents.get(node)
        if isinstance(up, ast.Subscript) and up.value is node:
            found, node = _of_batch(facts, up.slice), up
        elif isinstance(up, ast.BinOp):
            found, node = _of_batch(facts, up.right if up.left is node else up.left), up
        elif isinstance(up, ast.Call) and node in up.args and facts.names.resolve(up.func) in MEETS:
            found, node = next(filter(None, (_of_batch(facts, a) for a in up.args if a is not node)), None), up
        elif isinstance(up, (ast.List, ast.Tuple)) and (joined := _joined(facts, up)) is not None:
            found, node = next(filter(None, (_of_batch(facts, e) for e in up.elts)), None), joined
        elif isinstance(up, ast.Attribute) and up.attr in METHODS | FILLS and up.attr not in LEAVES:
            called = facts.scopes.parents.get(up)
            if not isinstance(called, ast.Call) or called.func is not up:
                return node, None
            found = next(filter(None, (_of_batch(facts, a) for a in _arguments(called, up.attr))), None)
            node = called
        else:
            return node, None
        if found is not None:
            return node, found


def _joined(facts: Facts, several: ast.List | ast.Tuple) -> ast.Call | None:
    """`torch.cat([x, torch.ones(n, 1)], 1)` of what it joins."""
    call = facts.scopes.parents.get(several)
    if not isinstance(call, ast.Call) or several not in call.args:
        return None
    return call if facts.names.resolve(call.func) in JOINS else None


def _arguments(call: ast.Call, method: str) -> list[ast.expr]:
    return given_to(call) if method in FILLS else []


def _until_moved(facts: Facts, s: ast.Assign, name: str) -> Iterator[ast.stmt]:
    """The statements below one in its block, to the one that gives its name something else."""
    block = facts.scopes.block_of(s)
    for below in block[block.index(s) + 1 :] if block else ():
        yield below
        if any(isinstance(t, ast.Name) and t.id == name for t in getattr(below, "targets", ())):
            return


def _fills(facts: Facts, s: ast.stmt, name: str) -> str | None:
    """`t[y == 1] = 1`, `t[0] = x`, `t.scatter_(1, y, 1)`, `x + t`: what of the batch meets the tensor of a name."""
    if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Subscript):
        target = s.targets[0]
        return (
            _of_batch(facts, target.slice) if isinstance(target.value, ast.Name) and target.value.id == name else None
        )
    call = s.value if isinstance(s, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in FILLS:
        owner = call.func.value
        if isinstance(owner, ast.Name) and owner.id == name:
            return next(filter(None, (_of_batch(facts, a) for a in _arguments(call, call.func.attr))), None)
    reads = [n for n in walk(s, ast.Name) if n.id == name] if isinstance(s, ast.Assign) else []
    return next(filter(None, (_along(facts, n)[1] for n in reads if isinstance(n.ctx, ast.Load))), None)


def _of_batch(facts: Facts, node: ast.expr, names: int = 6) -> str | None:
    """The name of a tensor that the runtime places, of which `node` is made there; `names`: those to look through."""
    if not isinstance(node, ast.Name):
        return next(filter(None, (_of_batch(facts, n, names) for n in _made_of(facts, node))), None)
    given = facts.scopes.scope_of(node).lookup(node.id)
    if given is None or _is_batch(facts, node):
        return node.id if given is not None else None
    values = facts.devices.assigned(node.id, given)
    return _of_batch(facts, values[0], names - 1) if names and values is not None and len(values) == 1 else None


def _made_of(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """The tensors beside which what an expression makes is."""
    if isinstance(node, ast.Call):
        if (moved := facts.devices.moved(node)) is not None:
            return [moved]
        f = node.func
        stays = isinstance(f, ast.Attribute) and (f.attr in METHODS - LEAVES or cast_on_cpu(facts, node) is not None)
        return [f.value] if isinstance(f, ast.Attribute) and stays else []
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in VIEWS):
        return [node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return node.elts if isinstance(node, ast.Tuple) else []


def _is_batch(facts: Facts, name: ast.Name) -> bool:
    """Whether a name is a tensor of what a loop over a loader gives, or of what a step or its helper is given."""
    if _is_drawn(facts, name):
        return True
    for up in facts.scopes.ancestors(name):
        if isinstance(up, ast.For) and facts.loops.is_loader(unwrapped(up.iter)):
            given = any(n.id == name.id for n in _names([up.target])) and not uses(up).as_container(name.id)
            return given and _stays_there(facts, up, name) and facts.placed.by_runtime(name)
        if isinstance(up, (ast.FunctionDef, ast.Lambda)):
            return isinstance(up, ast.FunctionDef) and _is_given(facts, up, name)
    return False


def _is_drawn(facts: Facts, name: ast.Name) -> bool:
    """Whether all that stands above a read gives the name a part of `next(it)`, or another view of that."""
    scope, here = facts.scopes.scope_of(name).lookup(name.id), facts.scopes.statement_of(name)
    if scope is None or name.id in scope.params:
        return False
    above = [s for n in scope.stores.get(name.id, ()) if (s := facts.scopes.statement_of(n)).lineno < here.lineno]
    drawn = [s for s in above if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and _draws(facts, s.value)]
    views = (isinstance(s, ast.Assign) and _reads_itself(facts, s, name.id) for s in above if s not in drawn)
    return bool(drawn) and all(views)


def _draws(facts: Facts, call: ast.Call) -> bool:
    it = draw_of(call)
    return it is not None and any(facts.loops.is_loader(m.args[0]) for m in makers(facts, it))


def _stays_there(facts: Facts, loop: ast.For, name: ast.Name) -> bool:
    """Whether all that the loop gives a name of its batch, until it is read, is another view of it: an array of it is
    on the CPU.
    """
    here = facts.scopes.statement_of(name)
    around = list(facts.scopes.ancestors(name))
    inner = [up for up in around[: around.index(loop)] if isinstance(up, (ast.For, ast.While))]
    again = [s for s in walk(loop, ast.Assign) if any(n.id == name.id for n in _names(s.targets))]
    before = (s for s in again if s.lineno < here.lineno or any(up in inner for up in facts.scopes.ancestors(s)))
    return all(_reads_itself(facts, s, name.id) for s in before)


def _reads_itself(facts: Facts, s: ast.Assign, name: str) -> bool:
    """`y = y.long().to(device)`"""
    node = s.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        stays = facts.devices.moved(node) is not None or cast_on_cpu(facts, node) is not None
        if not stays and node.func.attr not in METHODS - LEAVES:
            return False
        node = node.func.value
    return isinstance(node, ast.Name) and node.id == name


def _names(targets: list[ast.expr]) -> list[ast.Name]:
    return [n for t in targets for n in walk(t, ast.Name) if isinstance(n.ctx, ast.Store)]


def _is_given(facts: Facts, f: ast.FunctionDef, name: ast.Name) -> bool:
    """A parameter that is used as a tensor, or what a batch is taken apart to."""
    own = facts.scopes.by_node[f]
    steps = facts.classes.holder(f) in facts.classes.modules and (f.name == "forward" or f.name in STEPS)
    if not (steps or is_helper(facts, f)):
        return False
    if name.id in own.params:
        return name.id not in own.stores and is_tensor(facts, f, name.id, name)
    if not steps or uses(f).as_container(name.id) or is_number_or_list(facts, f, name.id):
        return False
    values = facts.devices.assigned(name.id, own) or ()
    known = is_tensor(facts, f, name.id, name) or not any(_is_own_or_counted(v) for v in values)
    return known and facts.placed.by_runtime(name)


def _is_own_or_counted(node: ast.expr) -> bool:
    """`2 * self.width`, `x.size(0) * self.heads`: a number as well as a tensor, by itself."""
    if isinstance(node, ast.BinOp):
        return _is_own_or_counted(node.left) and _is_own_or_counted(node.right)
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return own or isinstance(node, ast.Constant) or is_size(node)
