"""Batches that are padded as long as their longest sample: a share of one may be shorter, and what a network makes of
the padding (a mean over a sequence, the last state of an LSTM) is another thing then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .loaders import values_of
from .nodes import local_function
from .recipe import CannotLift
from .worked_with import read_from

PADS = {"torch.nn.utils.rnn.pad_sequence"}
OTHERS_PADS = re.compile(r"transformers\.(data\.\w+\.)?DataCollator\w*")
# a network that is told what is padding does not go by it
PACKS = re.compile(r"pack_padded_sequence|pack_sequence|padding_mask|attention_mask|nested_tensor")
TOLD = re.compile(r"mask|len(gth)?s\b|seq_len|_len\b")
PLACE = 6  # of collate_fn, among what a DataLoader is given


def padded_batches(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: a collate_fn of the project pads to what is longest in its batch."""
    texts = [facts.text.text, *(o.text for o in facts.others)]
    if not any("collate_fn" in text for text in texts) or any(PACKS.search(text) for text in texts):
        return None
    for given in collating(facts):
        if _pads(facts, given, 0) and not _networks_are_told(facts):
            return CannotLift(given, f"`{facts.short(given)}` pads a batch to its longest sample")
    for other in facts.others:
        there = other.facts() if "collate_fn" in other.text else None
        for given in collating(there) if there is not None else ():
            if there is not None and _pads(there, given, 0) and not _networks_are_told(facts):
                says = f"`{there.short(given)}` in {other.stem} pads a batch to its longest sample"
                return CannotLift(facts.tree.body[0], says)
    return None


def collating(facts: Facts) -> Iterator[ast.expr]:
    """What is given as a collate_fn."""
    for call in facts.walk(ast.Call):
        yield from (k.value for k in call.keywords if k.arg == "collate_fn")
        if len(call.args) > PLACE and (facts.names.resolve(call.func) or "").endswith(".DataLoader"):
            yield call.args[PLACE]
    for entries in facts.walk(ast.Dict):
        for key, value in zip(entries.keys, entries.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "collate_fn":
                yield value


def _networks_are_told(facts: Facts) -> bool:
    """Whether a network is given lengths or a mask, which are taken for those of the padding."""
    if any(_is_told(facts, c) for c in facts.classes.modules):
        return True
    there = (o.facts() for o in facts.others if "nn.Module" in o.text and TOLD.search(o.text))
    return any(_is_told(home, c) for home in there if home is not None for c in home.classes.modules)


def _is_told(facts: Facts, c: ast.ClassDef) -> bool:
    """Whether forward(), or another method that runs its layers, speaks of them; or what a class above it may."""
    methods, layers = facts.classes.methods(c), facts.classes.layers(c)
    works = [name for name, f in methods.items() if name == "forward" or _runs_layers(facts, f, layers)]
    run = {m for name in works for m in read_from(facts, methods, name)} if "forward" in methods else set(methods)
    return any(TOLD.search(facts.text.get(methods[name])) for name in run if name in methods)


def _runs_layers(facts: Facts, f: ast.AST, layers: Collection[str]) -> bool:
    """`self(x)`, `self.forward(x)`, `self.cell(x)`"""
    called = [c.func for c in walk(f, ast.Call)]
    own = {func.attr for func in called if isinstance(func, ast.Attribute) and facts.classes.is_self(func.value)}
    return bool(own & {"forward", *layers}) or any(facts.classes.is_self(func) for func in called)


def _pads(facts: Facts, given: ast.expr, depth: int) -> bool:
    """Whether a function pads, by itself or by one of the project that it calls."""
    return depth < 4 and any(_pads_here(home, f, depth) for home, f in functions(facts, given))


def functions(facts: Facts, given: ast.expr) -> Iterator[tuple[Facts, ast.AST]]:
    """What is called where `given` is, with its file's facts: a function, a lambda, what a partial holds, a method, an
    object's `__call__`.
    """
    if isinstance(given, ast.Lambda):
        yield facts, given
    elif isinstance(given, ast.Name):
        f = local_function(facts, given)
        scope = facts.scopes.scope_of(given).lookup(given.id)
        if f is not None:
            yield facts, f
        elif scope is not None:
            for value in values_of(facts, given.id, scope):
                if not isinstance(value, ast.Name):
                    yield from functions(facts, value)
        yield from _there(facts, given, ast.FunctionDef)
    elif isinstance(given, ast.Attribute):
        yield from _methods(facts, None, given.attr)
        yield from _there(facts, given, ast.FunctionDef)
        for other in facts.others:
            there = other.facts() if f"def {given.attr}(" in other.text else None
            yield from _methods(there, None, given.attr) if there is not None else ()
    elif isinstance(given, ast.Call):
        if (facts.names.resolve(given.func) or "").endswith("partial") and given.args:
            yield from functions(facts, given.args[0])
            return
        made: list[tuple[Facts, ast.AST | None]] = [*_there(facts, given.func, ast.FunctionDef)]
        if isinstance(given.func, ast.Name):
            yield from _methods(facts, given.func.id, "__call__")
            made.append((facts, local_function(facts, given.func)))
        for there, c in _there(facts, given.func, ast.ClassDef):
            yield from _methods(there, c.name, "__call__")  # type: ignore[attr-defined]
        for home, maker in made:
            for s in walk(maker, ast.Return) if maker is not None else ():  # `def make(pad): def collate(b): ...`
                if s.value is not None:
                    yield from functions(home, s.value)


def _there(facts: Facts, given: ast.expr, kind: type[ast.AST]) -> Iterator[tuple[Facts, ast.AST]]:
    """The function, or the class, that another file has for a name."""
    found = found_there(facts, given)
    if found is not None and isinstance(found[2], kind):
        yield found[1:]


def _methods(facts: Facts, holder: str | None, name: str) -> Iterator[tuple[Facts, ast.AST]]:
    own = (facts.classes.methods(c) for c in facts.walk(ast.ClassDef) if holder in (None, c.name))
    yield from ((facts, methods[name]) for methods in own if name in methods)


def _pads_here(facts: Facts, f: ast.AST, depth: int) -> bool:
    for call in walk(f, ast.Call):
        full = facts.names.resolve(call.func)
        if full in PADS or (full is not None and OTHERS_PADS.match(full)) or _tokenizes(call) or _takes_longest(call):
            return True
        own = full is None or isinstance(call.func, ast.Name)  # of this file, or of one that an import names
        if own and isinstance(call.func, (ast.Name, ast.Attribute)) and _pads(facts, call.func, depth + 1):
            return True
    return _takes_one_length(f)


def _takes_one_length(f: ast.AST) -> bool:
    """`lengths[0]` of a sorted batch, `sorted(lengths)[-1]`, where `lengths = [len(x) for x in batch]`."""
    listed = {
        t.id
        for s in walk(f, ast.Assign)
        for t in s.targets
        if isinstance(t, ast.Name) and any(map(_lists_lengths, walk(s.value)))
    }
    asked = [n.id if isinstance(n, ast.Name) else n.attr for n in walk(f) if isinstance(n, (ast.Name, ast.Attribute))]
    if not any("sort" in name for name in asked):
        return False  # one of equal lengths
    for taken in walk(f, ast.Subscript):
        of = taken.value.args[0] if _is_sorted(taken.value) else taken.value  # type: ignore[attr-defined]
        one = isinstance(taken.ctx, ast.Load) and isinstance(taken.slice, (ast.Constant, ast.UnaryOp))
        if one and (_lists_lengths(of) or (isinstance(of, ast.Name) and of.id in listed)):
            return True
    return False


def _is_sorted(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sorted" and bool(node.args)
    )


def _lists_lengths(node: ast.AST) -> bool:
    """`[len(x) for x in batch]`, `map(len, batch)`, `[x.size(0) for x in batch]`, `[x.shape[0] for x in batch]`"""
    if isinstance(node, ast.Call):
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        return named == "map" and bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == "len"
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return False
    e = node.elt
    if isinstance(e, ast.Subscript):
        return isinstance(e.value, ast.Attribute) and e.value.attr == "shape"
    f = e.func if isinstance(e, ast.Call) and e.args else None
    return (isinstance(f, ast.Name) and f.id == "len") or (isinstance(f, ast.Attribute) and f.attr == "size")


def _tokenizes(call: ast.Call) -> bool:
    """`tokenizer(texts, padding=True)`"""
    asked = [k.value for k in call.keywords if k.arg == "padding"]
    return any(isinstance(a, ast.Constant) and a.value in (True, "longest") for a in asked)


def _takes_longest(call: ast.Call) -> bool:
    """`max(len(x) for x in batch)`, `max(lengths)`, `max(x.size(0) for x in batch)`, `lengths.max()`"""
    f = call.func
    last = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
    if last not in ("max", "amax"):
        return False
    asked = [*call.args, *([f.value] if isinstance(f, ast.Attribute) else [])]
    words = {
        n.id if isinstance(n, ast.Name) else n.attr
        for a in asked
        for n in walk(a)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    return any(re.fullmatch(r"(\w+_)?(len|lens|lengths?|size|sizes|shape)s?(_\w+)?", w) for w in words)
