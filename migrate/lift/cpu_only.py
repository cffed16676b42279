"""A script that names no device runs on the CPU, and so does its result where it works with the model on tensors that
nothing moves: those that the step makes itself or reads of the script, and those between the epochs.

The Trainer places the model and a loader's batches; what `get_batch()` and `next(it)` give stays where it was made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from ..codemods.host_reads import is_number
from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.tensor_methods import METHODS, VIEW_METHODS, VIEWS, root
from .chunks import Chunk
from .filled import filled_in_loops
from .listed_networks import listed_network
from .loaders import is_loader
from .networks import made_network
from .nodes import local_function, names_below, names_of
from .only_loaded import only_loaded
from .own_device import STEPS, OwnDevice
from .own_makers import given_to_model, makes_tensors
from .owned import class_there
from .worked_with import read_from, worked_with

if TYPE_CHECKING:
    from .rewriting import Rewriter

FROM_OTHERS = {"torch." + n for n in "tensor as_tensor from_numpy Tensor FloatTensor LongTensor".split()}
MOVES = {"to", "type", "type_as", "cpu", "cuda"}
BEFORE_STEPS = ("training_step", "train_dataloader", "on_train_epoch_start")


def needs_cpu(r: Rewriter) -> tuple[ast.expr, str] | None:
    """What nothing would move to the model of a script that names no device, and what that is; None where all is."""
    facts, recipe = r.facts, r.recipe
    homes = (r.binder.trunk_scope, facts.scopes.module)
    over_loader = is_loader(facts, recipe.train.loader)
    made = None if over_loader else made_in_step(facts, r.chunks, r.own_device)
    made = made or given_to_model(facts, [c for c in r.chunks if c.hook in BEFORE_STEPS], r.own_device.calls)
    if made is not None:
        return made, "what the step makes itself"
    moved = r.configured.tensors | r.configured.placed | r.configured.handled
    names = [n for n in r.variables.constructor if n not in moved]
    read = [(n, homes[0]) for n in names if not only_loaded(r.binder, recipe, r.chunks, n)]
    called = [(n, home) for n in _read_with_batches(facts, r.chunks) for home in homes]
    around = [(n, homes[1]) for n in _read_of_script(facts, r.chunks)] if homes[0] is not homes[1] else []
    kept = kept_tensor(facts, [*read, *called, *around]) or tensor_of_object(facts, r.chunks)
    if kept is not None:
        return kept, "this tensor, which the loop reads"
    unmoved = given_first(facts, r.chunks, {n for n, _ in read}, homes) or given_back(facts, r.chunks, read)
    if unmoved is not None:
        return unmoved, "this tensor, which the loop reads"
    held = next((c for c in filled_in_loops(facts) if c not in r.own_device.calls), None)
    if held is not None:
        return held, "this tensor, which a loop over batches fills"
    network = listed_network(facts)
    if network is not None:
        return network, "this network, which a list keeps"
    prior = kept_distribution(facts)
    if prior is not None:
        return prior, "this distribution, which a network keeps"
    between = worked_with(facts, _between_epochs(r), made_networks(r))
    return None if between is None else (between, "what the model gets there")


def kept_distribution(facts: Facts) -> ast.Call | None:
    """`self.prior = MultivariateNormal(torch.zeros(2), torch.eye(2))` of a network: no move of that takes it along."""
    for c in facts.classes.modules if "distributions" in facts.text.text else ():
        for s in walk(c, ast.Assign):
            made = s.value if isinstance(s.targets[0], ast.Attribute) else None
            full = facts.names.resolve(made.func) or "" if isinstance(made, ast.Call) else ""
            given = given_to(made) if isinstance(made, ast.Call) and full.startswith("torch.distributions.") else []
            if isinstance(made, ast.Call) and any(facts.tensors.is_tensor(a) for a in given):
                return made
    return None


def made_networks(r: Rewriter) -> set[str]:
    """The names of the loop that stand for networks, by how they are made."""
    homes = (r.binder.trunk_scope, r.facts.scopes.module)
    names = {v.name for v in r.variables.attributes if not v.owner}
    return {n for n in names if any(made_network(r.facts, n, home) is not None for home in homes)}


def made_in_step(facts: Facts, chunks: list[Chunk], placed: OwnDevice) -> ast.Call | None:
    """The first call of a training step, or of what is done before the steps, that gives a batch nothing moves."""
    steps = (s for chunk in chunks if chunk.hook in BEFORE_STEPS for s in chunk.statements)
    for call in (c for s in steps for c in walk(s, ast.Call)):
        if call in placed.calls or isinstance(facts.scopes.parents.get(call), ast.Expr):
            continue
        if facts.names.resolve(call.func) in FROM_OTHERS or makes_tensors(facts, call):
            return call
    return None


def kept_tensor(facts: Facts, names: Iterable[tuple[str, Scope]]) -> ast.expr | None:
    """What makes a tensor of the script, of those that a step reads by these names and no buffer holds."""
    for name, scope in names:
        for store in scope.stores.get(name, ()):
            s = facts.scopes.parents.get(store)
            pair = facts.scopes.parents.get(s) if isinstance(s, ast.Tuple) else None
            if isinstance(pair, ast.Assign) and s in pair.targets:  # `x, y = torch.randn(8, 3), torch.ones(8)`
                values = facts.devices.elements(s, store, pair.value) or []  # type: ignore[arg-type]
            else:
                values = [s.value] if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None else []
            for value in values:
                if facts.tensors.is_tensor(value) or facts.tensors.is_leaf(value):
                    return value
    return None


def given_first(facts: Facts, chunks: list[Chunk], names: Set[str], homes: tuple[Scope, ...]) -> ast.expr | None:
    """The x of `model(x[i])` that the loop reads of the script, whatever gave it: a network takes nothing but tensors.

    `names`: what the loop reads, and nothing moves.
    """
    for call in (c for chunk in chunks for s in chunk.statements for c in walk(s, ast.Call)):
        given = call.args[0] if call.args and facts.loops.is_model_call(call) else None
        name = root(given) or _object_of(facts, given, homes) if given is not None else None
        if given is None or name is None or name.id not in names:
            continue
        of_objects = (a for c in walk(given, ast.Call) for a in c.args for _ in walk(a, ast.Name))  # noise.add(x)
        if not any(True for _ in of_objects) and facts.scopes.scope_of(name).lookup(name.id) in homes:
            return given
    return None


def given_back(facts: Facts, chunks: list[Chunk], names: Iterable[tuple[str, Scope]]) -> ast.expr | None:
    """What a network's method made above the loop, in which another one gets it: `x = net.sample(8)`, `net.loss(x)`."""
    given = {n.id for chunk in chunks for s in chunk.statements for c in walk(s, ast.Call) if _of_network(facts, c)
             for a in given_to(c) for n in walk(a, ast.Name)}  # fmt: skip
    for name, home in names:
        made = (
            s for store in home.stores.get(name, ()) if isinstance(s := facts.scopes.statement_of(store), ast.Assign)
        )
        for s in made if name in given else ():
            if isinstance(s.value, ast.Call) and _of_network(facts, s.value) and _gives_tensors(facts, s.value):
                return s.value
    return None


def _gives_tensors(facts: Facts, call: ast.Call) -> bool:
    """Whether a network is called itself, or a method of it that returns a tensor, or several."""
    if not isinstance(call.func, ast.Attribute):
        return True
    methods = (facts.classes.methods(c).get(call.func.attr) for c in facts.classes.modules)
    returned = [r.value for m in methods if m is not None for r in walk(m, ast.Return)]
    parts = [p for v in returned for p in (v.elts if isinstance(v, (ast.Tuple, ast.List)) else [v])]
    return any(facts.tensors.is_tensor(p.value if isinstance(p, ast.Subscript) else p) for p in parts)


def _of_network(facts: Facts, call: ast.Call) -> bool:
    """A call of a network of this scope, or of a method of it that its class has here."""
    f = call.func
    owner = f.value if isinstance(f, ast.Attribute) else f
    if isinstance(f, ast.Attribute) and not any(f.attr in facts.classes.methods(c) for c in facts.classes.modules):
        return False
    scope = facts.scopes.scope_of(owner).lookup(owner.id) if isinstance(owner, ast.Name) else None
    return isinstance(owner, ast.Name) and scope is not None and made_network(facts, owner.id, scope) is not None


def _object_of(facts: Facts, given: ast.expr, homes: tuple[Scope, ...]) -> ast.Name | None:
    """The `data` of `data.x[i]`, which no network is: those have theirs placed with them."""
    while isinstance(given, (ast.Attribute, ast.Subscript)):
        given = given.value
    made = [
        m for home in homes if isinstance(given, ast.Name) and (m := made_network(facts, given.id, home)) is not None
    ]
    return given if isinstance(given, ast.Name) and all(_is_plain(facts, m) for m in made) else None


def _is_plain(facts: Facts, made: ast.expr) -> bool:
    """Whether an object is of a class of the file that is no module: one may have an `eval()` of its own."""
    name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
    own = [c for c in facts.walk(ast.ClassDef) if c.name == name]
    return bool(own) and not any(c in facts.classes.modules for c in own)


def tensor_of_object(facts: Facts, chunks: list[Chunk]) -> ast.expr | None:
    """A tensor that an object of the project keeps, and that the loop works with, or a method that it gives something:
    what makes it, or what the loop reads where another file does.
    """
    for a in (a for chunk in chunks for s in chunk.statements for a in walk(s, ast.Attribute)):
        of = a.value if isinstance(a.ctx, ast.Load) and isinstance(a.value, ast.Name) else None
        there, c = class_there(facts, of) if of is not None else (facts, None)
        if c is None or c in there.classes.modules:
            continue
        up = facts.scopes.parents.get(a)
        if isinstance(up, ast.Call) and up.func is a:
            read = read_from(there, there.classes.methods(c), a.attr) if given_to(up) else set()
        else:
            read = {a.attr} if _is_worked_with(facts, a) else set()
        tensor = _kept_by(there, c, read)
        if tensor is not None:
            return tensor if there is facts else a
    return None


def _is_worked_with(facts: Facts, a: ast.Attribute) -> bool:
    """`x @ held.vectors.t()`, `torch.cdist(x, held.centres)`, `x.mm(held.vectors)`"""
    node: ast.AST = a
    while (up := facts.scopes.parents.get(node)) is not None:
        called = isinstance(up, ast.Attribute) and up.attr in (VIEW_METHODS | VIEWS) - MOVES
        if not (called or isinstance(up, ast.UnaryOp) or (isinstance(up, ast.Call) and up.func is node)):
            break
        node = up
    if isinstance(up, ast.BinOp):
        return _is_placed(facts, up.right if node is up.left else up.left)
    if not isinstance(up, ast.Call):
        return False
    full, f = facts.names.resolve(up.func), up.func
    others = [x for x in given_to(up) if x is not node] + ([f.value] if isinstance(f, ast.Attribute) else [])
    meets = any(_is_placed(facts, x) for x in others)
    of_tensors = isinstance(f, ast.Attribute) and f.attr in METHODS
    return facts.loops.is_model_call(up) or (meets and (of_tensors if full is None else full.startswith("torch.")))


def _is_placed(facts: Facts, other: ast.expr) -> bool:
    """Whether what it meets is where the model is, and not a number, or brought to the CPU."""
    there = facts.placed.by_runtime(other) and bool(list(walk(other, ast.Name)))
    return there and not any(n.attr in ("cpu", "item", "numpy") for n in walk(other, ast.Attribute))


def _kept_by(facts: Facts, c: ast.ClassDef, read: set[str]) -> ast.expr | None:
    """A tensor that the methods of a class set, of those by these names."""
    for store in (a for name in sorted(read) for a in facts.stores_of(name)):
        s = facts.scopes.parents.get(store)
        own_class = c in facts.scopes.ancestors(store)
        if own_class and isinstance(s, (ast.Assign, ast.AnnAssign)) and facts.tensors.is_tensor(s.value):
            return None if isinstance(s.value, ast.Call) and is_number(s.value) else s.value
    return None


def _between_epochs(r: Rewriter) -> Iterator[ast.stmt]:
    """The statements before and after the batches of an epoch, but for those that read a batch or what a step made."""
    steps = (s for chunk in r.chunks if chunk.hook in STEPS for s in chunk.statements)
    passes = [p for p in (r.recipe.train, r.recipe.evaluate) if p is not None]
    made = {n.id for s in steps for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Store)}
    made |= {n.id for p in passes for n in names_of(p.target)}
    for s in (s for chunk in r.chunks if chunk.hook not in STEPS for s in chunk.statements):
        if not any(isinstance(n.ctx, ast.Load) and n.id in made for n in walk(s, ast.Name)):
            yield s


def _read_of_script(facts: Facts, chunks: list[Chunk]) -> Iterator[str]:
    """The names of the script that a loop in a function reads."""
    for n in (n for chunk in chunks for s in chunk.statements for n in walk(s, ast.Name)):
        if isinstance(n.ctx, ast.Load) and facts.scopes.scope_of(n).lookup(n.id) is facts.scopes.module:
            yield n.id


def _read_with_batches(facts: Facts, chunks: list[Chunk]) -> Iterator[str]:
    """The names that functions read to which the loop gives something: `scaled(x)`."""
    calls = (c for chunk in chunks for s in chunk.statements for c in walk(s, ast.Call))
    for call in calls:
        f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
        if f is not None and any(isinstance(n, ast.Name) for a in call.args for n in walk(a)):
            yield from sorted(
                names_below(facts, f) - {*facts.scopes.by_node[f].params, *facts.scopes.by_node[f].stores}
            )
