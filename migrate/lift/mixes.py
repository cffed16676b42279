"""Whether a training step mixes the samples of its batch: a process with a part of it then computes something else."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ..facts.batch_operations import DECOMPOSED
from ..facts.batch_values import BATCH, Flow, Value, replace
from ..facts.loops import last_part
from ..facts.nodes import walk
from ..facts.one_number_items import one_number_places
from ..facts.script import Facts
from .loaders import values_of
from .nodes import is_call_of, walk_here
from .reads import stored
from .recipe import CannotLift, DataPass
from .scalar_loss import is_mean_along, is_the_loss

COMPARES = re.compile(  # no network, and nothing that makes the samples
    r"(?!.*(net|model|encoder|transforms?|augmentations?|data_?set|sampler|loader|views?)$)(?!transform|augment)"
    r".*(sup_?con|nt_?xent|info_?nce|contrast|sim_?clr|barlow|vicreg|n_?pair|clip_?loss)",
    re.IGNORECASE,
)

A_LOSS = re.compile(r"loss|criterion|entropy|(^|_)(ce|nll|ohem)(_|$)", re.IGNORECASE)
# which node is of which graph, and what puts the nodes of one together
POOLS = re.compile(r"\.batch\b(?!\s*=[^=])|\bbatch=|\.ptr\b|global_\w+_pool|[Pp]ooling\b|Aggregation\b|[Rr]eadout")
WEIGHTS = ("weight", "weights", "class_weight", "class_weights")  # a number weighs the loss as a whole
# what a network has that mixes, or that a test asks of all samples: without any of it none is followed
MAY_MIX = (
    ".t()", ".T", "@ ", "matmul", "mm(", "cdist", "pdist", "einsum", "dim=0", "dim=(0", "axis=0", "axis=(0", "(0)",
    " 0)", ",0)", "perm(", "roll(", "flip(", "sort", "register_buffer", "LSTM", "GRU", "RNN", "Transformer",
    "MultiheadAttention", "mean()", "sum()", "max()", "min()", "norm()", "any()", "all()", "item()",
)  # fmt: skip
LEFT_OUT = ("ignore_index", "ignore_label")
# what takes matrices with as many rows as columns: a batch is none
OF_SQUARES = {"eig", "eigh", "eigvals", "eigvalsh", "slogdet", "logdet", "det", "inv", "cond"}
STRAIGHT = replace(BATCH, straight=True)


def mixes_samples(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: the first operation that mixes samples on the way to what is differentiated."""
    flow = flow_of(facts, train)
    feeds = feeding(train.body)
    elsewhere = _compares_elsewhere(facts)
    if elsewhere is not None:
        says = f"`{facts.short(elsewhere)}` is made in another file, and by its name compares the samples of a batch"
        return CannotLift(elsewhere, says)
    if _is_of_nodes(facts, train):
        says = (
            "every graph has nodes of its own number, and nothing here shows that the loss is one number for each graph"
        )
        return CannotLift(train.loop, says)
    weighed = _weighs_elsewhere(facts)
    if weighed is not None:
        says = f"`{facts.short(weighed)}` is made in another file, and is told which targets count in its mean"
        return CannotLift(weighed, says)
    if _has_networks_that_may(facts):
        flow = flow_of(facts, train, into_networks=True)
    found = (n for n in flow.mixes if any(up in feeds for up in (n, *facts.scopes.ancestors(n))))
    node = next((n for n in found if not (is_mean_along(facts, n) and is_the_loss(facts, n, train.body))), None)
    if node is None:
        return _decided(facts, flow, feeds) or _may_decompose(facts, flow, feeds)
    inner = flow.within.get(node)
    where = f": {flow.there[node]}" if node in flow.there else ""
    where = f": `{facts.short(inner)}` in {_place(facts, inner)}" if inner is not None else where
    return CannotLift(node, f"`{facts.short(node)}` mixes the samples of a batch{where}")


def _may_decompose(facts: Facts, flow: Flow, feeds: set[ast.stmt]) -> CannotLift | None:
    """`torch.svd(out)`: of the one matrix that all samples are the rows of, where no more dimensions show."""
    for node in flow.may_mix:
        decomposed = isinstance(node, ast.Call) and last_part(node.func) in DECOMPOSED - OF_SQUARES
        if decomposed and any(up in feeds for up in (node, *facts.scopes.ancestors(node))):
            says = f"`{facts.short(node)}` may mix the samples of a batch: how many dimensions it has does not show"
            return CannotLift(node, says)
    return None


def _decided(facts: Facts, flow: Flow, feeds: set[ast.stmt]) -> CannotLift | None:
    """What is differentiated by a test of all samples together: `if loss.item() > 1: loss = loss / 2`."""
    for node, test in flow.decided.items():
        if any(up in feeds for up in (node, *facts.scopes.ancestors(node))):
            where = f": {flow.there[test]}" if test in flow.there else ""
            says = f"`{facts.short(test)}` decides by the values of the batch what is differentiated{where}"
            return CannotLift(node, says)
    return None


def _has_networks_that_may(facts: Facts) -> bool:
    """Whether there are networks to follow, here or in other files, with anything in them that mixes."""
    texts = [facts.text.text] if facts.classes.modules else []
    texts += [o.text for o in facts.others if "Module" in o.text]
    return any(word in text for text in texts for word in MAY_MIX)


def _is_of_nodes(facts: Facts, train: DataPass) -> bool:
    """Whether the batches are graphs whose nodes nothing puts together: a mean over them is no mean over the graphs.

    https://pytorch-geometric.readthedocs.io/en/latest/advanced/batching.html
    """
    loader = train.loader
    if isinstance(loader, ast.Name) and (home := facts.scopes.scope_of(loader).lookup(loader.id)) is not None:
        values = values_of(facts, loader.id, home)
        loader = values[0] if len(values) == 1 else loader
    full = facts.names.resolve(loader.func) if isinstance(loader, ast.Call) else None
    if full is None or not full.startswith("torch_geometric.") or not full.endswith(".DataLoader"):
        return False
    return not any(POOLS.search(text) for text in (facts.text.text, *(o.text for o in facts.others)))


def _place(facts: Facts, node: ast.AST) -> str:
    """The function that a node stands in, with its class: `Net.forward()`."""
    ups = [up for up in facts.scopes.ancestors(node) if isinstance(up, (ast.FunctionDef, ast.ClassDef))]
    names = [up.name for up in ups[: 1 + (len(ups) > 1 and isinstance(ups[1], ast.ClassDef))]]
    return f"{'.'.join(reversed(names))}()"


def flow_of(facts: Facts, train: DataPass, into_networks: bool = False) -> Flow:
    """The step followed from its batch on; `into_networks`: and into the networks that it calls."""
    given = _batch(facts, train)
    return (facts.following if into_networks else facts.mixing).flow(train.loop, given, None)  # type: ignore[arg-type]  # only its body is followed


def _batch(facts: Facts, train: DataPass) -> dict[str, Value]:
    """The names that a loop gives its batch, with what a dataset of the project shows of it."""
    target = train.target
    if not isinstance(target, ast.Name):
        given = {n.id: STRAIGHT for n in walk(target, ast.Name)}
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        columns = {n.id for i in one_number_places(facts, len(parts)) if isinstance(n := parts[i], ast.Name)}
        return {name: replace(value, apart=name in columns) for name, value in given.items()}
    unpacked = (s for n in train.body for s in walk(n, ast.Assign) if _is_named(s.value, target.id))
    width = next((len(t.elts) for s in unpacked for t in s.targets if isinstance(t, (ast.Tuple, ast.List))), 0)
    places = one_number_places(facts, width)
    items = tuple((i, replace(STRAIGHT, apart=i in places)) for i in range(width)) if places else ()
    return {target.id: replace(STRAIGHT, holds=True, items=items)}


def _is_named(e: ast.expr, name: str) -> bool:
    return isinstance(e, ast.Name) and e.id == name


def _compares_elsewhere(facts: Facts) -> ast.Call | None:
    """A loss that this file imports under the name of one that compares samples: what it does cannot be followed."""
    return next(iter(_named_elsewhere(facts, COMPARES.match)), None)


def _weighs_elsewhere(facts: Facts) -> ast.Call | None:
    """A loss that this file imports and gives class weights, or a target that is left out: shares differ in those."""
    for call in _named_elsewhere(facts, A_LOSS.search):
        said = {k.arg: k.value.value if isinstance(k.value, ast.Constant) else ... for k in call.keywords}
        if any(said.get(a) is ... for a in WEIGHTS) or any(said.get(a) is not None for a in LEFT_OUT):
            return call
    return None


def _named_elsewhere(facts: Facts, fits: Callable[[str], re.Match[str] | None]) -> list[ast.Call]:
    """The calls of what other libraries than torch give by a last name that fits, in the order of the text."""
    found = [
        call
        for full, calls in facts.called.items()
        if not full.startswith("torch.") and fits(full.rpartition(".")[2])
        for call in calls
    ]
    return sorted(found, key=facts.text.key)


def changed(s: ast.stmt) -> set[str]:
    """What a statement changes a part of: `centres[c] = z.mean(0)`, `centres[c].mul_(0.9)`."""
    targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AugAssign) else []
    parts: list[ast.expr] = [t.value for t in targets if isinstance(t, ast.Subscript) and not _is_key(t.slice)]
    if isinstance(s, ast.Expr):
        funcs = [c.func for c in walk(s, ast.Call)]
        parts = [f.value for f in funcs if isinstance(f, ast.Attribute) and f.attr.endswith("_")]
    names = set()
    for of in parts:
        while isinstance(of, (ast.Subscript, ast.Attribute, ast.Call)):
            of = of.func if isinstance(of, ast.Call) else of.value
        names.add(of.id if isinstance(of, ast.Name) else "")
    return names - {"self", ""}


def _is_key(place: ast.expr) -> bool:
    """The "spread" of `stats["spread"]`: another entry is none of the loss."""
    return isinstance(place, ast.Constant) and isinstance(place.value, str)


def feeding(body: list[ast.stmt]) -> set[ast.stmt]:
    """The simple statements that what is differentiated depends on; metrics on the way are none of them."""
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
    simple = [n for s in body for n in walk_here(s) if isinstance(n, kinds)]
    calls = [n for s in body for n in walk_here(s) if is_call_of(n, "backward")]
    needed = {x.id for c in calls for x in walk(c, ast.Name)}
    found: set[ast.stmt] = {s for s in body if any(c in set(walk(s)) for c in calls) and isinstance(s, ast.Expr)}
    for _ in range(len(simple) + 1):
        before = len(found)
        for s in simple:
            if s not in found and {x.id for x in walk(s, ast.Name)} & needed & (stored([s]) | changed(s)):
                found.add(s)
                needed |= {x.id for x in walk(s, ast.Name)}
        if len(found) == before:
            break
    return found
