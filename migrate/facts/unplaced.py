"""Before a lifted loop no network has been placed yet: what one is given there is to be on the CPU, as it is.

`writer.add_graph(net, torch.rand(1, 3, 32, 32).to(device))`, `x = x.cuda()` above `profile(net, inputs=(x,))`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .arguments import given_to
from .back_from_cpu import itself
from .nodes import FUNCTIONS, LOOPS, Loop, walk
from .of_inputs import is_of_inputs
from .other_files import is_module_there
from .spelled import spelled
from .tensor_methods import METHODS, VIEW_METHODS, VIEWS

if TYPE_CHECKING:
    from .script import Facts

NETWORKS = "networks by what they are asked"  # a key of `facts.answers`
OF_NETWORKS = ("parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict")
ASKS = ("shape", "size", "dim", "ndim", "dtype", "numel")  # where a tensor is makes no difference
WEIGHT = re.compile(r"(weight|bias)(_|\Z)|running_(mean|var)\Z|grad\Z")
DEEP = 3  # functions that call functions
MOVES = {"to", "cuda", "cpu", "type", "type_as"}
# methods of a network that give itself
GIVE_ITSELF = {"to", "cuda", "cpu", "type", "float", "double", "half", "bfloat16", "train", "eval", "requires_grad_"}
HOLDS = ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.keyword


def meets_unplaced(facts: Facts, call: ast.Call) -> bool:
    """Whether what a call moves, or makes somewhere, is only read by networks of the script before its loop."""
    s = facts.scopes.statement_of(call)
    if not facts.lifting or not before_the_loop(facts, s):
        return False
    if _given_to_network(facts, call):
        return True
    if not (
        isinstance(s, ast.Assign) and s.value is call and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    ):
        return False
    name = s.targets[0].id
    scope = facts.scopes.scope_of(s.targets[0]).lookup(name)
    reads = list(facts.scopes.reads(name, scope)) if scope is not None else []
    return any(_given_to_network(facts, r) for r in reads) and all(_is_harmless(facts, r) for r in reads)


def _is_harmless(facts: Facts, read: ast.Name) -> bool:
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Attribute) and up.attr in ASKS:
        return True
    if not before_the_loop(facts, facts.scopes.statement_of(read)):
        return False
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
    return _given_to_network(facts, read) or (isinstance(call, ast.Call) and facts.devices.moved(call) is read)


def before_the_loop(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement runs once, above the first loop of its function that trains."""
    around: ast.AST = facts.tree
    for up in facts.scopes.ancestors(s):
        if isinstance(up, (*LOOPS, ast.ClassDef)):
            return False
        if isinstance(up, FUNCTIONS):
            around = up
            break
    key = (before_the_loop, around)
    if key not in facts.answers:
        facts.answers[key] = next((n.lineno for n in _loops_of(facts, around) if runs_backward(facts, n)), 0)
    return bool(s.lineno < facts.answers[key])


def runs_above(facts: Facts, node: ast.AST, depth: int = 0) -> bool:
    """Whether a node, or the outermost loop that it stands in, comes before the training, where it stands or where its
    function is called.
    """
    outer, f = facts.scopes.statement_of(node), None
    for up in facts.scopes.ancestors(outer):
        if isinstance(up, FUNCTIONS):
            f = up
            break
        outer = up if isinstance(up, LOOPS) else outer
    if before_the_loop(facts, outer):
        return True
    calls = facts.devices.uses_of_function(f) if isinstance(f, ast.FunctionDef) and depth < DEEP else []
    return bool(calls) and all(isinstance(c, ast.Call) and runs_above(facts, c, depth + 1) for c in calls)


def below_training(facts: Facts, s: ast.stmt) -> bool:
    """Whether a statement runs below the last loop of its function, or of the file, that trains."""
    around: ast.AST = next((u for u in facts.scopes.ancestors(s) if isinstance(u, FUNCTIONS)), facts.tree)
    key = (below_training, around)
    if key not in facts.answers:
        ends = [n.end_lineno or 0 for n in _loops_of(facts, around) if runs_backward(facts, n)]
        facts.answers[key] = max(ends, default=0)
    return bool(0 < facts.answers[key] < s.lineno)


def _loops_of(facts: Facts, around: ast.AST) -> list[Loop]:
    """A function's own loops, or those of the file's own statements, as they stand below one another."""
    loops: list[Loop] = [*facts.walk(ast.For), *facts.walk(ast.AsyncFor), *facts.walk(ast.While)]
    return sorted((n for n in loops if _function_of(facts, n) is around), key=lambda n: n.lineno)


def _function_of(facts: Facts, node: ast.AST) -> ast.AST:
    return next((u for u in facts.scopes.ancestors(node) if isinstance(u, FUNCTIONS)), facts.tree)


def runs_backward(facts: Facts, node: ast.AST, depth: int = 3) -> bool:
    """Whether backward is called in it, or in what it calls."""
    for call in (n for n in walk(node, ast.Call)):
        f = call.func
        if isinstance(f, ast.Attribute) and f.attr == "backward" and not is_of_inputs(facts, call):
            return True
        called = facts.devices.function_of(call) if depth else None
        if called is not None and runs_backward(facts, called, depth - 1):
            return True
    return False


def made_in_training(facts: Facts, made: ast.expr) -> bool:
    """Whether a network is made anew in the epochs or steps of a loop that trains: nothing places that one later.

    Nor does it one that a method of another network gives back, or that forward() makes when it is first called.
    """
    if isinstance(made, ast.Call) and _is_in_forward(facts, made):
        return facts.placed.is_module(made)
    loops = _training_loops(facts)
    given_back = _is_given_back(facts, made)
    if (loops or given_back) and isinstance(made, ast.Name):
        scope = facts.scopes.scope_of(made).lookup(made.id)
        values = facts.devices.assigned(made.id, scope) if scope is not None else None
        made = values[0] if values is not None and len(values) == 1 else made
    if isinstance(made, ast.Call) and given_back:
        return facts.placed.is_module(made)
    if not (isinstance(made, ast.Call) and _runs_in(facts, made, loops)):
        return False
    s = facts.scopes.statement_of(made)
    named = isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and is_network(facts, t) for t in s.targets)
    return named or facts.placed.is_module(made)


def _is_in_forward(facts: Facts, made: ast.Call) -> bool:
    """`self.norm = nn.BatchNorm1d(h.size(1)).to(h.device)`, which the network keeps from then on."""
    s = facts.scopes.statement_of(made) if facts.classes.modules else None
    if not (isinstance(s, ast.Assign) and any(isinstance(t, ast.Attribute) for t in s.targets)):
        return False
    f = next((u for u in facts.scopes.ancestors(made) if isinstance(u, FUNCTIONS)), None)
    holder = facts.classes.holder(f) if isinstance(f, ast.FunctionDef) and f.name == "forward" else None
    return holder in facts.classes.modules


def _is_given_back(facts: Facts, made: ast.expr) -> bool:
    """Whether a method of a network, which runs when that one is made, returns it: `def new(self):`."""
    f = next((u for u in facts.scopes.ancestors(made) if isinstance(u, FUNCTIONS)), None)
    c = facts.classes.holder(f) if isinstance(f, ast.FunctionDef) else None
    if not isinstance(f, ast.FunctionDef) or c not in facts.classes.modules:
        return False
    if f.decorator_list or facts.classes.builds(c, f.name):  # a method of the class is called to make the first
        return False
    returned = [n.value for n in walk(f, ast.Return) if n.value is not None]
    s = facts.scopes.statement_of(made)
    named = {spelled(t) for t in s.targets} if isinstance(s, ast.Assign) else set()
    return any(spelled(r) in named or made in walk(r) for r in returned)


def _runs_in(facts: Facts, node: ast.AST, loops: set[ast.AST]) -> bool:
    """Whether a node stands in one of the loops, or in a function that is called once, there."""
    seen: set[ast.AST] = set()
    while loops:
        for up in facts.scopes.ancestors(node):
            if up in loops:
                return True
            if isinstance(up, ast.FunctionDef):
                uses = _uses(facts, up)
                if up in seen or len(uses) != 1:
                    return False
                seen.add(up)
                node = uses[0]
                break
        else:
            return False
    return False


def _uses(facts: Facts, f: ast.FunctionDef) -> list[ast.AST]:
    """The calls of a function, and of a method those on objects of its class: `engine.fit(loader)`."""
    holder = facts.classes.holder(f)
    if holder is None:
        return facts.devices.uses_of_function(f)
    calls = [(c, c.func.value) for c in facts.calls_of(f.name) if isinstance(c.func, ast.Attribute)]
    own = [c for c, of in calls if facts.classes.is_self(of) and holder in facts.scopes.ancestors(c)]
    return [*own, *(c for c, of in calls if facts.devices.own_movers.class_of(of) is holder)] or [f]


def _training_loops(facts: Facts) -> set[ast.AST]:
    """The loops over batches and over epochs around each backward(), through functions that are called once."""
    key = (_training_loops,)
    if key not in facts.answers:
        facts.answers[key] = {up for a in facts.attributes.get("backward", ()) for up in _two_loops(facts, a)}
    found: set[ast.AST] = facts.answers[key]
    return found


def _two_loops(facts: Facts, node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    seen: set[ast.AST] = set()
    ahead = [node]
    while ahead:
        for up in facts.scopes.ancestors(ahead.pop()):
            if isinstance(up, LOOPS):
                found.append(up)
            elif isinstance(up, ast.FunctionDef) and up not in seen:
                seen.add(up)
                uses = _uses(facts, up)
                ahead += uses if len(uses) == 1 and uses[0] is not up else []
                break
    return found[:2]


def _given_to_network(facts: Facts, node: ast.AST) -> bool:
    """`net(x)`, `net.encode(x)`, `summary(net, [x])`"""
    child, up = node, facts.scopes.parents.get(node)
    while up is not None and (isinstance(up, HOLDS) or _is_of_it_alone(facts, child, up)):
        child, up = up, facts.scopes.parents.get(up)
    if not isinstance(up, ast.Call) or child is up.func:
        return False
    f = up.func
    if any(is_network(facts, n) for n in ([f, f.value] if isinstance(f, ast.Attribute) else [f])):
        return True
    called = spelled(f).rpartition(".")[2]
    keeps = called[:1].isupper()  # an object may keep it until the network has moved
    return not keeps and any(is_network(facts, a) for a in given_to(up))


def _is_of_it_alone(facts: Facts, child: ast.AST, up: ast.AST) -> bool:
    """`x / 255`, `x[:1]`, `x.view(-1, 4)`, `x if small else y`: where the x is, and made of no other tensor."""
    if isinstance(up, ast.IfExp):
        return child is not up.test
    if isinstance(up, ast.BinOp):
        return isinstance(up.right if child is up.left else up.left, ast.Constant)
    if isinstance(up, ast.Subscript):
        return child is up.value and not any(isinstance(n, (ast.Name, ast.Call)) for n in walk(up.slice))
    if isinstance(up, ast.Attribute):
        call = facts.scopes.parents.get(up)
        return up.attr in VIEW_METHODS - MOVES and isinstance(call, ast.Call) and call.func is up
    return isinstance(up, ast.Call) and child is up.func and isinstance(child, ast.Attribute)


def given_by_network(facts: Facts, node: ast.expr) -> bool:
    """`net(x).detach()`, `net.encode(x)[0].clone()`, `torch.rand_like(net.fc.weight) > 0.3`: one tensor of its own.

    It is where the network was when it was made.
    """
    if isinstance(node, (ast.Compare, ast.BinOp)):
        parts = [node.left, *(node.comparators if isinstance(node, ast.Compare) else [node.right])]
        return any(given_by_network(facts, p) or (_is_weight(facts, p) and _holds_tensor(facts, p)) for p in parts)
    if isinstance(node, ast.Call) and node.args and (facts.names.resolve(node.func) or "").startswith("torch."):
        if _joins_weights(facts, node):
            return True
        like = (facts.names.resolve(node.func) or "").endswith("_like")
        return like and (_is_weight(facts, node.args[0]) or given_by_network(facts, node.args[0]))
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
        return False
    made = node.func.value
    if node.func.attr not in VIEW_METHODS and _is_weight(facts, made):
        return True
    while isinstance(made, ast.Subscript):
        made = made.value
    f = made.func if isinstance(made, ast.Call) else made
    if isinstance(f, ast.Attribute) and f.attr in GIVE_ITSELF:
        return given_by_network(facts, made)  # net.to(dtype).to(memory_format=...) is the network
    called = isinstance(made, ast.Call) and any(is_network(facts, n) for n in (f, getattr(f, "value", f)))
    return called or given_by_network(facts, made)


def _joins_weights(facts: Facts, call: ast.Call) -> bool:
    """`parameters_to_vector(net.parameters())`, `torch.cat([p.view(-1) for p in net.parameters()])`"""
    full, of = facts.names.resolve(call.func), call.args[0]
    if full == "torch.cat" and isinstance(of, ast.ListComp) and len(of.generators) == 1:
        of = of.generators[0].iter
    elif full != "torch.nn.utils.parameters_to_vector":
        return False
    asked = of.func if isinstance(of, ast.Call) else None
    return isinstance(asked, ast.Attribute) and asked.attr == "parameters" and is_network(facts, asked.value)


def _is_weight(facts: Facts, node: ast.expr) -> bool:
    """`net.fc.weight`, `net[0].bias.data`, and views of one."""
    named = False
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEW_METHODS:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Attribute) and not is_network(facts, node):
            named, node = named or node.attr not in VIEWS, node.value
        else:
            return named and is_network(facts, node)


def _holds_tensor(facts: Facts, node: ast.expr) -> bool:
    """Not `net.fc.in_features`, `net.__class__.__name__`: a layer's own weights, or what the file makes a parameter."""
    while not isinstance(node, ast.Attribute) or node.attr in VIEWS:
        node = node.func if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and node.attr in VIEW_METHODS:
            node = node.value
    made = facts.devices.attribute_values.get(node.attr, ())
    own = any(isinstance(v, ast.Call) and facts.names.resolve(v.func) == "torch.nn.Parameter" for v in made)
    return own or WEIGHT.match(node.attr) is not None


def is_network(facts: Facts, node: ast.expr) -> bool:
    """Whether a name is asked for what networks have, or is given nothing else."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if NETWORKS not in facts.answers:
        asked = (a.value for m in OF_NETWORKS for a in facts.attributes.get(m, ()))
        facts.answers[NETWORKS] = {spelled(e) for e in asked}
    return spelled(node) in facts.answers[NETWORKS] or (isinstance(node, ast.Name) and _is_made_here(facts, node))


def _is_made_here(facts: Facts, name: ast.Name) -> bool:
    """Whether a name is given nothing but what makes a network: `teacher = Net().to(device)`."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None and name.id not in scope.params else None
    made = [n for v in values or () if not (isinstance(n := itself(v), ast.Name) and n.id == name.id)]
    return bool(made) and all(isinstance(m, ast.Call) and _makes_network(facts, m) for m in made)


def _makes_network(facts: Facts, call: ast.Call) -> bool:
    full = facts.names.resolve(call.func) or ""
    if full.startswith("torch.nn."):
        return full.rpartition(".")[2][:1].isupper() and not full.endswith(("Loss", ".Parameter"))
    if isinstance(call.func, ast.Name) and any(c.name == call.func.id for c in facts.classes.modules):
        return True
    return is_module_there(facts, call.func)
