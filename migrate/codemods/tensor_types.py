"""T11: types that name a device: `set_default_tensor_type`, and `Tensor = torch.cuda.FloatTensor if cuda else ...`.

The type of the CPU stays, and what is made with it or turned into it goes where its surroundings are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.cpu_types import DTYPES
from ..facts.effects import only_asks
from ..facts.nodes import children, walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.types_elsewhere import NAMES_TYPE, reads_of_types
from ..facts.unplaced import meets_unplaced
from ..report import Note
from ._typed_branches import typed_branches
from .argument_rewrites import DropArgument
from .base import Change, Codemod
from .branch_rewrites import body_only, else_only
from .place_like_inputs import PlaceLikeInputs
from .rewrites import source

FLOATING = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor")


class TensorTypes(Codemod):
    code = "PTM108"
    name = "tensor-types"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        yield from self._of_others(facts)
        if not any(name in DTYPES for name in facts.attributes) and not any(
            isinstance(k.value, str) and k.value.rpartition(".")[2] in DTYPES for k in facts.walk(ast.Constant)
        ):
            return
        for call in facts.called.get("torch.set_default_tensor_type", ()):
            if len(call.args) == 1:
                yield from self._default(facts, call)
        inside: set[ast.AST] = set()
        attributes = [a for a in facts.walk(ast.Attribute) if _cuda_type(facts, a)]
        texts = [text for text in facts.walk(ast.Constant) if _cuda_type(facts, text)]
        if attributes or texts:
            yield from self._named(facts, inside)
            yield from self._kept(facts, inside)
            for branch in typed_branches(facts, lambda call: self._place(facts, call) is not None):
                says = f"`if {facts.short(branch.test)}:` removed: its branches differ by a device alone"
                yield Change(branch, self.edit(facts, branch, says), body_only, (branch.test, *branch.orelse))
        for choice in facts.walk(ast.IfExp):
            if {facts.names.resolve(choice.body), facts.names.resolve(choice.orelse)} == {"torch.cuda", "torch"}:
                self._tell(facts, choice, f"`{facts.short(choice)}` names a device: use torch, and a tensor's device")
            if choice not in inside and kind_of(facts, choice) is not None and _has_cuda(facts, choice):
                inside.update(walk(choice))
                self._tell(
                    facts, choice, f"`{facts.short(choice)}` names a device: use a dtype, and the device of a tensor"
                )
        for a in attributes:
            if a not in inside:
                yield from self._used(facts, a, a.attr)
        for text in texts:  # x.type("torch.cuda.FloatTensor")
            up = facts.scopes.parents.get(text)
            if text not in inside and isinstance(up, ast.Call) and _is_type(up):
                yield from self._used(facts, text, str(text.value).rpartition(".")[2])

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    # -- the default -------------------------------------------------------------------------------------------

    def _default(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`set_default_tensor_type(torch.DoubleTensor)` is `set_default_dtype(torch.float64)`."""
        given = call.args[0]
        full = str(given.value if isinstance(given, ast.Constant) else facts.names.resolve(given))
        kind = full.removeprefix("torch.").removeprefix("cuda.")
        torch = torch_of(facts)
        if kind not in FLOATING or not full.startswith("torch.") or torch is None:
            self._tell(facts, call, f"`{facts.short(call)}`: use {torch or 'torch'}.set_default_dtype")
            return
        if full.startswith("torch.cuda."):
            says = f"`{facts.short(call)}`: makes tensors on the GPU; use torch.set_default_dtype"
            self._tell(facts, call, says)
            return
        new = f"{torch}.set_default_dtype({torch}.{DTYPES[kind]})"
        says = f"`{facts.short(call)}` became `{new}`"
        yield Change(call, self.edit(facts, call, says), source(new), (call,))

    # -- a type by a name --------------------------------------------------------------------------------------

    def _named(self, facts: Facts, inside: set[ast.AST]) -> Iterator[Change]:
        """`Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`, as a statement too, and other names for it.

        `inside` is given what these changes see to.
        """
        torch, named = torch_of(facts), TypeNames(facts)
        if torch is None:
            return
        for branch in facts.walk(ast.If):
            yield from self._branch(facts, branch, named)
        for (scope, name), kind in named.kinds.items():
            for value in named.values(scope, name):
                inside.update(walk(value))
                if isinstance(value, ast.Name) or not _has_cuda(facts, value):
                    continue
                new = f'"torch.{kind}"' if _is_text(value) else f"{torch}.{_on_cpu(facts, value, kind)}"
                says = f"`{facts.short(value)}` became `{new}`: what is made with it is placed where it is used"
                gone = tuple(children(value)) if _chosen(value) else ()
                yield Change(value, self.edit(facts, value, says), source(new), gone)
            for read in facts.scopes.reads(name, scope):
                if read not in named.other_names:
                    yield from self._used(facts, read, kind)

    def _of_others(self, facts: Facts) -> Iterator[Change]:
        """`from settings import Tensor`, which is a type of the CPU there now."""
        reads = list(reads_of_types(facts)) if facts.others else []
        kinds = _types_there(facts) if reads else {}
        for read, key in reads:
            if key in kinds:
                yield from self._used(facts, read, kinds[key])

    def _kept(self, facts: Facts, inside: set[ast.AST]) -> Iterator[Change]:
        """`self.Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`, and what is made with it."""
        torch = torch_of(facts)
        for name, stores in _own_stores(facts).items():
            values = [s.value for s in stores if isinstance(s, ast.Assign)]
            kinds = {kind_of(facts, v) for v in values}
            kind = kinds.pop() if len(kinds) == 1 and len(values) == len(stores) else None
            branched = any(isinstance(facts.scopes.parents.get(s), ast.If) for s in stores if s is not None)
            if kind is None or torch is None or branched or name in facts.read_elsewhere:
                continue
            for value in values:
                inside.update(walk(value))
                if _has_cuda(facts, value):
                    new = f"{torch}.{_on_cpu(facts, value, kind)}"
                    says = f"`{facts.short(value)}` became `{new}`: what is made with it is placed where it is used"
                    gone = tuple(children(value)) if _chosen(value) else ()
                    yield Change(value, self.edit(facts, value, says), source(new), gone)
            for read in facts.attributes.get(name, ()):
                if isinstance(read.ctx, ast.Load):
                    yield from self._used(facts, read, kind)

    def _branch(self, facts: Facts, branch: ast.If, named: TypeNames) -> Iterator[Change]:
        """`if cuda: Tensor = torch.cuda.FloatTensor` `else: Tensor = torch.FloatTensor`, or without the second."""
        up = facts.scopes.parents.get(branch)
        chained = isinstance(up, ast.If) and up.orelse == [branch]
        given = named.given_by(branch.body)
        if chained or not given or not only_asks(facts.names, branch.test):
            return
        if not branch.orelse and all(named.given_before(branch, name) for name, _ in given):
            says = f"`if {facts.short(branch.test)}:` removed: the type is the same on any device"
            yield Change(branch, self.edit(facts, branch, says), None, (branch,))
        elif branch.orelse and given == named.given_by(branch.orelse):
            says = f"`if {facts.short(branch.test)}:` removed: its branches differ by a device alone"
            on_cpu = not any(_has_cuda(facts, s) for s in branch.body)
            rewrite, other = (body_only, branch.orelse) if on_cpu else (else_only, branch.body)
            yield Change(branch, self.edit(facts, branch, says), rewrite, (branch.test, *other))

    def _used(self, facts: Facts, read: ast.expr, kind: str) -> Iterator[Change]:
        """`Tensor(shape)` and `x.type(Tensor)`."""
        up = facts.scopes.parents.get(read)
        if isinstance(up, ast.Call) and up.func is read and not facts.is_fixed(up):
            at = next((i for i, k in enumerate(up.keywords) if k.arg == "device"), None)
            if at is not None:  # a type of the CPU takes no other device
                given = facts.text.get(up.keywords[at].value)
                says = f"`{facts.short(up)}` is placed by `.to({given})`"
                change = _placed("to", given, kind, torch_of(facts), DropArgument(len(up.args) + at))
                yield Change(up, self.edit(facts, up, says), change)
                return
            if up in facts.buffered or facts.placed.is_registered(up):
                says = f"`{facts.short(up)}`: a buffer is placed with its module, and a parameter"
                if _cuda_type(facts, read):
                    yield Change(read, self.edit(facts, up, says), source(f"{torch_of(facts) or 'torch'}.{kind}"))
                return
            where = self._place(facts, up)
            if where is None and facts.cuda_asked and not meets_unplaced(facts, up):
                says = f"`{facts.short(up)}` goes where there is CUDA, as its type said"
                yield Change(up, self.edit(facts, up, says), _placed("cuda", "", kind, torch_of(facts)))
                return
            if where is None:
                self._tell(facts, up, f"`{facts.short(up)}` names a device: nothing here shows which it should be")
                return
            says = f"`{facts.short(up)}` is placed by `.to({where})`"
            yield Change(up, self.edit(facts, up, says), _placed("to", where, kind, torch_of(facts)))
        elif isinstance(up, ast.Call) and read in up.args and _is_type(up) and torch_of(facts) is not None:
            dtype = f"{torch_of(facts)}.{DTYPES[kind]}"
            placed = self._is_placed(facts, _typed(up)) or (facts.handle is None and facts.placed.becomes_module(up))
            place = "" if placed else self._place(facts, up)
            there = place is None and facts.cuda_asked and not meets_unplaced(facts, up)
            if there:
                place = ""
            elif place is None:
                self._tell(facts, up, f"`{facts.short(up)}` names a device: nothing here shows which it should be")
                if facts.tensors.made(_typed(up)):
                    return
            where = f"{place}, " if place else ""
            new = f".to({where}{dtype}){'.cuda()' if there else ''}"
            yield Change(up, self.edit(facts, up, f"`{facts.short(up)}` became `{new}`"), _cast(new), tuple(up.args))
        elif not isinstance(up, ast.IfExp):
            self._tell(facts, read, f"`{facts.short(read)}` names a device")

    def _is_placed(self, facts: Facts, value: ast.expr | None) -> bool:
        """Whether a tensor is where the model is before it is cast: a batch, or what is computed from one."""
        if value is None or facts.handle is not None or facts.tensors.made(value):
            return False
        return facts.placed.by_runtime(value)

    def _place(self, facts: Facts, call: ast.Call) -> str | None:
        if facts.handle is not None:
            return f"{facts.handle}.device"
        where = PlaceLikeInputs()._place(facts, call)
        return f"{where}.device" if where is not None else None


class TypeNames:
    """Names that are only ever given one type of tensor, on a GPU at one place at least: each with that type."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.kinds: dict[tuple[Scope, str], str] = {}
        self.other_names: set[ast.expr] = set()  # the reads that give the type another name
        found = True
        while found:
            found = False
            for scope in facts.scopes.by_node.values():
                for name in scope.stores:
                    if (scope, name) not in self.kinds and (kind := self._of(scope, name)) is not None:
                        self.kinds[scope, name] = kind
                        self.other_names.update(v for v in self.values(scope, name) if isinstance(v, ast.Name))
                        found = True

    def _of(self, scope: Scope, name: str) -> str | None:
        values = self.values(scope, name)
        if scope.is_class or name in scope.params or not values:
            return None
        kinds = {self._kind(v) for v in values}
        known = len(kinds) == 1 and any(isinstance(v, ast.Name) or _has_cuda(self.facts, v) for v in values)
        return kinds.pop() if known else None

    def values(self, scope: Scope, name: str) -> list[ast.expr]:
        """What assignments give the name; nothing where something else does."""
        parents, values = self.facts.scopes.parents, []
        for store in scope.stores[name]:
            up = parents.get(store)
            value = up.value if isinstance(up, ast.Assign) else None
            outer = parents.get(up) if isinstance(up, ast.Tuple) else None
            if isinstance(up, ast.Tuple) and isinstance(outer, ast.Assign) and isinstance(outer.value, ast.Tuple):
                pairs = zip(up.elts, outer.value.elts, strict=False)
                value = next((v for t, v in pairs if t is store), None)
            if value is None:
                return []
            values.append(value)
        return values

    def _kind(self, value: ast.expr) -> str | None:
        if not isinstance(value, ast.Name) or self.facts.names.resolve(value) is not None:
            return kind_of(self.facts, value)
        scope = self.facts.scopes.scope_of(value).lookup(value.id)
        return self.kinds.get((scope, value.id)) if scope is not None else None

    def given_by(self, block: list[ast.stmt]) -> list[tuple[str, str]]:
        """The names and types that a block gives, and nothing else; empty where it does more."""
        found = []
        for s in block:
            targets = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            for t in targets.elts if isinstance(targets, ast.Tuple) else [targets]:
                scope = self.facts.scopes.scope_of(t).lookup(t.id) if isinstance(t, ast.Name) else None
                kind = self.kinds.get((scope, t.id)) if scope is not None else None  # type: ignore[union-attr]
                if kind is None:
                    return []
                found.append((t.id, kind))  # type: ignore[union-attr]
        return found

    def given_before(self, s: ast.stmt, name: str) -> bool:
        """Whether a statement above, in the same block, gives the name its type."""
        block = self.facts.scopes.block_of(s)
        return any(name in dict(self.given_by([above])) for above in block[: block.index(s)])


def _types_there(facts: Facts) -> dict[str, str]:
    """The types on a GPU that other files of the project give names, by file and name."""
    found: dict[str, str] = {}
    for other in facts.others:
        there = other.facts() if NAMES_TYPE.search(other.text) else None
        if there is None or torch_of(there) is None:
            continue
        kinds = TypeNames(there).kinds
        found |= {f"{other.stem}.{name}": k for (s, name), k in kinds.items() if s is there.scopes.module}
    return found


def kind_of(facts: Facts, value: ast.expr) -> str | None:
    """The name of the type that an expression is on any device: `torch.cuda.IntTensor if c else torch.IntTensor`."""
    if chosen := _chosen(value):
        kinds = {kind_of(facts, v) for v in chosen}
        return kinds.pop() if len(kinds) == 1 else None
    full = value.value if isinstance(value, ast.Constant) else facts.names.resolve(value)
    if full == "torch.Tensor":
        return "FloatTensor"  # as long as that is the default
    package, _, kind = full.rpartition(".") if isinstance(full, str) else ("", "", "")
    return kind if package in ("torch", "torch.cuda") and kind in DTYPES else None


def _on_cpu(facts: Facts, value: ast.expr, kind: str) -> str:
    """What a choice calls the type of the CPU: `torch.cuda.FloatTensor if cuda else torch.Tensor`."""
    return "Tensor" if any(facts.names.resolve(v) == "torch.Tensor" for v in _chosen(value)) else kind


def _chosen(value: ast.expr) -> list[ast.expr]:
    """The a and b of `a if c else b`, and of `c and a or b`; empty for anything else."""
    if isinstance(value, ast.IfExp):
        return [value.body, value.orelse]
    first = value.values[0] if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) else None
    if isinstance(first, ast.BoolOp) and len(value.values) == 2:  # type: ignore[attr-defined]
        return [first.values[-1], value.values[1]]  # type: ignore[attr-defined]
    return []


def _own_stores(facts: Facts) -> dict[str, list[ast.Assign | None]]:
    """What is assigned to attributes of `self` that are given a type on a GPU; None for more than one plain value."""
    found: dict[str, list[ast.Assign | None]] = {}
    for a in facts.walk(ast.Attribute):
        if isinstance(a.ctx, ast.Store):
            up = facts.scopes.parents.get(a)
            plain = isinstance(up, ast.Assign) and len(up.targets) == 1 and ast.unparse(a.value) == "self"
            found.setdefault(a.attr, []).append(up if plain else None)  # type: ignore[arg-type]
    return {n: s for n, s in found.items() if any(x is not None and _has_cuda(facts, x.value) for x in s)}


def _has_cuda(facts: Facts, node: ast.AST) -> bool:
    return any(_cuda_type(facts, n) for n in walk(node))


def _is_text(value: ast.expr) -> bool:
    return _is_text(value.body) if isinstance(value, ast.IfExp) else isinstance(value, ast.Constant)


def _is_type(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "type" and len(call.args) == 1


def _typed(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _cuda_type(facts: Facts, n: ast.AST) -> bool:
    """`torch.cuda.FloatTensor`, and "torch.cuda.FloatTensor"."""
    if isinstance(n, ast.Constant):
        full = n.value if isinstance(n.value, str) else None
    else:
        full = facts.names.resolve(n) if isinstance(n, ast.Attribute) and n.attr in DTYPES else None
    return full is not None and full.startswith("torch.cuda.") and full.rpartition(".")[2] in DTYPES


def torch_of(facts: Facts) -> str | None:
    """What the file calls torch: by its own import, or by a star of a file that has one."""
    for s in facts.walk(ast.Import):
        for a in s.names:
            if a.name == "torch" or (a.name.startswith("torch.") and not a.asname):
                return a.asname or "torch"
    starred = any(s.names[0].name == "*" for s in facts.walk(ast.ImportFrom))
    return next((n.id for n in facts.walk(ast.Name) if facts.names.resolve(n) == "torch"), None) if starred else None


def _placed(method: str, where: str, kind: str, torch: str | None, without: DropArgument | None = None) -> Any:
    """`torch.cuda.FloatTensor(x)` to `torch.FloatTensor(x).to(where)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        call = updated if without is None else without(original, updated)
        call = call.with_changes(lpar=[], rpar=[])
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == kind:
            call = call.with_changes(func=cst.parse_expression(f"{torch or 'torch'}.{kind}"))
        given = [cst.Arg(cst.parse_expression(where))] if where else []
        to = cst.Call(cst.Attribute(call, cst.Name(method)), given)
        return to.with_changes(lpar=updated.lpar, rpar=updated.rpar)

    return rewrite


def _cast(new: str) -> Any:
    """`x.type(Tensor)` to `x` and what is new."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        more = cst.parse_expression(f"x{new.removesuffix('.cuda()')}")
        assert isinstance(more, cst.Call) and isinstance(more.func, cst.Attribute)
        call = updated.with_changes(func=updated.func.with_changes(attr=more.func.attr), args=more.args)
        if not new.endswith(".cuda()"):
            return call
        outer = cst.Call(cst.Attribute(call.with_changes(lpar=[], rpar=[]), cst.Name("cuda")))
        return outer.with_changes(lpar=call.lpar, rpar=call.rpar)

    return rewrite
