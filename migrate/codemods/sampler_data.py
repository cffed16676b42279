"""T4: what a sampler and its DataLoader have to agree on before one of them can go: the data, and who shuffles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.effects import does_more
from ..facts.nodes import walk
from ..facts.script import Facts
from .argument_rewrites import change_call, change_dict
from .base import Change, Codemod
from .restored_shuffle import said_by, spread_over
from .sampler_entries import told_off
from .sampler_phases import by_phase, phases
from .sampler_uses import Use, is_loader, is_none, is_text, loaders_of, spread_into_loader

TOLD = "`shuffle=False` removed: a DataLoader that had a sampler shuffles by itself"


def why_not(facts: Facts, use: Use) -> str:
    """Why a sampler that is used for DataLoaders alone stays; nothing where it can go."""
    drawn = [d for call in use.made if (d := argument_at(call, "dataset", 0)) is not None]
    for loader in _loaders(facts, use):
        own = argument_at(loader, "dataset", 0)
        if own is not None and drawn and not any(_is_same(facts, data, own) for data in drawn):
            return f"it is of `{facts.short(drawn[0])}`, its DataLoader of `{facts.short(own)}`"
    test = next((t for t in _conditions(facts, use) if does_more(facts, t)), None)
    if test is not None:
        return f"`{facts.short(test)}` does more than ask"
    off = told_off(facts, use)
    for call in use.made:
        given = argument_at(call, "shuffle", 3)
        unseen = spread_over(facts, call)[1] if given is None else None
        if unseen is not None:
            return f"whether `**{facts.short(unseen)}` has it shuffle does not show"
        later = [s for s in off if s.lineno > call.lineno]  # `shuffle = False`, which goes with the sampler
        if given is not None and said_by(facts, call) is not None and _changes(facts, given, later):
            return f"`{facts.short(given)}` has another value later"
        if given is None and any(_is_for_both(facts, loader) for loader in _loaders(facts, use)):
            return "training and evaluation get their DataLoaders here alike"
    return ""


def _conditions(facts: Facts, use: Use) -> Iterator[ast.expr]:
    """The conditions that go with a sampler and of which no statement can be left."""
    others = any(not is_none(a) for a in use.alternatives)
    chosen = [*use.handed, *(getattr(s, "value", None) for s in use.statements if others)]
    yield from (choice.test for choice in chosen if isinstance(choice, ast.IfExp))
    ups = (facts.scopes.parents.get(s) for s in use.statements if others)
    yield from (up.test for up in ups if isinstance(up, ast.If))


def told_not_to(facts: Facts) -> bool:
    """Whether the Trainer is asked to leave the samplers alone."""
    return any(
        k.arg in ("replace_sampler_ddp", "use_distributed_sampler")
        and isinstance(k.value, ast.Constant)
        and k.value.value is False
        for k in facts.walk(ast.keyword)
    )


def _is_for_both(facts: Facts, loader: ast.Call) -> bool:
    """Whether a call makes loaders for training and for evaluation, and no name there says which shuffles."""
    said = argument_at(loader, "shuffle", 2)
    return (
        (said is None or isinstance(said, ast.Constant))
        and len(phases(facts, loader)) > 1
        and by_phase(facts, loader) == "True"
    )


def _loaders(facts: Facts, use: Use) -> list[ast.Call]:
    found: list[ast.Call] = []
    for holder in holders(facts, use):
        if isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Subscript):
            found += loaders_of(facts, holder.targets[0].value)
        elif isinstance(holder, ast.Call) and is_loader(facts, holder):
            found.append(holder)
        else:
            spread = (spread_into_loader(facts, n) for n in (holder, *_reads_of(facts, holder)))
            found += [c for c in spread if c is not None]
    return found


def holders(facts: Facts, use: Use) -> list[ast.AST]:
    """The calls, dictionaries and entries that the sampler is given to."""
    ups = [facts.scopes.parents[r] for r in use.handed]
    return [facts.scopes.parents[up] if isinstance(up, ast.keyword) else up for up in ups]


def _reads_of(facts: Facts, made: ast.AST) -> list[ast.Name]:
    """Where the name of what is made is read."""
    up = facts.scopes.parents.get(made)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
    return list(facts.scopes.reads(target.id, scope)) if scope is not None else []  # type: ignore[union-attr]


# -- the data --------------------------------------------------------------------------------------------------


def _is_same(facts: Facts, data: ast.expr, own: ast.expr) -> bool:
    """Whether both name one thing, as far as names tell: what another function calls its own is not known."""
    one, other = _named(facts, data), _named(facts, own)
    if ast.unparse(one) == ast.unparse(other):
        return True
    return facts.scopes.scope_of(data) is not facts.scopes.scope_of(own)


def _named(facts: Facts, node: ast.expr, depth: int = 0) -> ast.expr:
    """What a name or an attribute that is assigned once is another name of; itself where it is of nothing."""
    stores: list[ast.AST] = []
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        stores = list(scope.stores.get(node.id, ())) if scope is not None and node.id not in scope.params else []
    elif isinstance(node, ast.Attribute):
        same = [a for a in facts.attributes.get(node.attr, ()) if not isinstance(a.ctx, ast.Load)]
        stores = [a for a in same if ast.unparse(a) == ast.unparse(node)]
    up = facts.scopes.parents.get(stores[0]) if len(stores) == 1 else None
    value = up.value if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and depth < 4:
        return _named(facts, value, depth + 1)
    return node


def _changes(facts: Facts, given: ast.expr, gone: list[ast.stmt]) -> bool:
    """Whether a name in an expression is given its value in several places, but for those of statements that go."""
    for n in walk(given):
        scope = facts.scopes.scope_of(n).lookup(n.id) if isinstance(n, ast.Name) else None
        if scope is None:
            continue
        stores = [s for s in scope.stores.get(n.id, ()) if facts.scopes.parents.get(s) not in gone]  # type: ignore[attr-defined]
        if len(stores) + (n.id in scope.params) > 1:  # type: ignore[attr-defined]
            return True
    return False


# -- who shuffles ----------------------------------------------------------------------------------------------


def without_false(codemod: Codemod, facts: Facts, holder: ast.AST) -> Iterator[Change]:
    """`shuffle=False` that other keywords of the same DataLoader bring along goes: it said so beside the sampler."""
    for made in (m for m in _beside(facts, holder) if m is not holder):
        keys = zip(made.keys, made.values, strict=True) if isinstance(made, ast.Dict) else ()
        off = [v for k, v in keys if is_text(k, "shuffle")]
        off += [k.value for k in getattr(made, "keywords", ()) if k.arg == "shuffle"]
        if off and all(isinstance(v, ast.Constant) and v.value is False for v in off):
            rewrite = change_dict({"shuffle"}, {}) if isinstance(made, ast.Dict) else change_call((), {"shuffle"}, {})
            yield Change(made, codemod.edit(facts, off[0], TOLD), rewrite, tuple(off))


def brought(facts: Facts, holder: ast.AST) -> ast.expr | None:
    """`**options` of a DataLoader that may say `shuffle`, too, which would then be given twice."""
    spread = [k.value for k in holder.keywords if k.arg is None] if isinstance(holder, ast.Call) else []
    return next((e for e in spread if not _is_silent(facts, e)), None)


def _is_silent(facts: Facts, e: ast.expr) -> bool:
    """Whether all that a dictionary holds shows, and says nothing of `shuffle` but False, which goes."""
    if isinstance(e, (ast.IfExp, ast.BinOp)):
        return all(
            _is_silent(facts, x) for x in ((e.body, e.orelse) if isinstance(e, ast.IfExp) else (e.left, e.right))
        )
    if isinstance(e, ast.Dict):
        return all(
            _is_silent(facts, v) if k is None else isinstance(k, ast.Constant) and _is_known(k.value, v)
            for k, v in zip(e.keys, e.values, strict=True)
        )
    if isinstance(e, ast.Call) and ast.unparse(e.func) == "dict":
        known = all(_is_known(k.arg, k.value) if k.arg else _is_silent(facts, k.value) for k in e.keywords)
        return known and all(_is_silent(facts, x) for x in e.args)
    scope = facts.scopes.scope_of(e).lookup(e.id) if isinstance(e, ast.Name) else None
    if scope is None or not isinstance(e, ast.Name):
        return False
    if e.id in scope.params:
        f = scope.node
        calls = facts.devices.uses_of_function(f) if isinstance(f, ast.FunctionDef) else []
        own = f.args.kwarg is scope.params[e.id] if isinstance(f, ast.FunctionDef) else False
        given = [k.arg for c in calls for k in getattr(c, "keywords", [ast.keyword(arg=None, value=e)])]
        return own and bool(calls) and None not in given and "shuffle" not in given
    values = facts.devices.assigned(e.id, scope)
    return bool(values) and all(v is not e and _is_silent(facts, v) for v in values or ())


def _is_known(key: object, value: ast.expr) -> bool:
    return key != "shuffle" or isinstance(value, ast.Constant)


def _beside(facts: Facts, holder: ast.AST) -> list[ast.expr]:
    """The displays whose keywords come to those of a holder: `{..., **others}` and `d.update(others)`."""
    spread: list[ast.expr] = []
    loaders = (spread_into_loader(facts, n) for n in (holder, *_reads_of(facts, holder)))
    for made in (holder, *(c for c in loaders if c is not None)):
        spread += [k.value for k in getattr(made, "keywords", ()) if k.arg is None]
        if isinstance(made, ast.Dict):
            spread += [v for k, v in zip(made.keys, made.values, strict=True) if k is None]
    for read in _reads_of(facts, holder):
        f = facts.scopes.parents[read]
        call = facts.scopes.parents[f] if isinstance(f, ast.Attribute) and f.attr == "update" else None
        spread += [call, *call.args] if isinstance(call, ast.Call) else []
    return [d for s in spread for d in ([s] if not isinstance(s, ast.Name) else _displays(facts, s))]


def _displays(facts: Facts, name: ast.Name) -> list[ast.expr]:
    scope = facts.scopes.scope_of(name).lookup(name.id)
    values = facts.devices.assigned(name.id, scope) if scope is not None else None
    return [v for v in values or () if isinstance(v, ast.Dict) or getattr(getattr(v, "func", None), "id", "") == "dict"]
