"""T11: types that name a device: `set_default_tensor_type`, and `Tensor = torch.cuda.FloatTensor if cuda else ...`.

The type of the CPU stays, and what is made with it or turned into it goes where its surroundings are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .place_like_inputs import PlaceLikeInputs
from .rewrites import source

DTYPES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "LongTensor": "int64",
    "IntTensor": "int32", "ByteTensor": "uint8", "BoolTensor": "bool", "ShortTensor": "int16", "CharTensor": "int8",
    "BFloat16Tensor": "bfloat16",
}  # fmt: skip
FLOATING = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor")


class TensorTypes(Codemod):
    code = "PTM108"
    name = "tensor-types"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        if not any(a.attr in DTYPES for a in facts.walk(ast.Attribute)) and not any(
            isinstance(k.value, str) and k.value.rpartition(".")[2] in DTYPES for k in facts.walk(ast.Constant)
        ):
            return
        for call in facts.walk(ast.Call):
            if facts.names.resolve(call.func) == "torch.set_default_tensor_type" and len(call.args) == 1:
                yield from self._default(facts, call)
        inside: set[ast.AST] = set()
        for choice in facts.walk(ast.IfExp):
            kind = self._kind(facts, choice)
            if kind is not None and choice not in inside:
                inside.update(walk(choice))
                yield from self._chosen(facts, choice, kind)
        for a in facts.walk(ast.Attribute):
            if a not in inside and _cuda_type(facts, a):
                yield from self._used(facts, a, a.attr)

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
        torch = _torch(facts)
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

    # -- a type chosen -----------------------------------------------------------------------------------------

    def _kind(self, facts: Facts, choice: ast.IfExp) -> str | None:
        """The name of the type that both branches have, when one of them is on the GPU."""
        names = [facts.names.resolve(b) or "" for b in (choice.body, choice.orelse)]
        kinds = {n.rpartition(".")[2] for n in names}
        if len(kinds) != 1 or not any(n.startswith("torch.cuda.") for n in names):
            return None
        kind = kinds.pop()
        return kind if kind in DTYPES else None

    def _chosen(self, facts: Facts, choice: ast.IfExp, kind: str) -> Iterator[Change]:
        """`Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`"""
        torch = _torch(facts)
        up = facts.scopes.parents.get(choice)
        if torch is None or not isinstance(up, ast.Assign) or not all(isinstance(t, ast.Name) for t in up.targets):
            self._tell(
                facts, choice, f"`{facts.short(choice)}` names a device: use a dtype, and the device of a tensor"
            )
            return
        name = up.targets[0].id  # type: ignore[attr-defined]
        scope = facts.scopes.scope_of(up.targets[0]).lookup(name)
        assert scope is not None
        new = f"{torch}.{kind}"
        says = f"`{facts.short(choice)}` became `{new}`: what is made with it is placed where it is used"
        yield Change(choice, self.edit(facts, choice, says), source(new), (choice.test, choice.body, choice.orelse))
        for read in facts.scopes.reads(name, scope):
            yield from self._used(facts, read, kind)

    def _used(self, facts: Facts, read: ast.expr, kind: str) -> Iterator[Change]:
        """`Tensor(shape)` and `x.type(Tensor)`."""
        up = facts.scopes.parents.get(read)
        if isinstance(up, ast.Call) and up.func is read and not facts.in_formatted_string(up):
            where = self._place(facts, up)
            if where is None:
                self._tell(facts, up, f"`{facts.short(up)}` names a device: nothing here shows which it should be")
                return
            says = f"`{facts.short(up)}` is placed by `.to({where})`"
            yield Change(up, self.edit(facts, up, says), _placed(where, kind, _torch(facts)))
        elif isinstance(up, ast.Call) and read in up.args and _is_type(up) and _torch(facts) is not None:
            dtype = f"{_torch(facts)}.{DTYPES[kind]}"
            place = self._place(facts, up) if facts.handle is not None or facts.tensors.made(_typed(up)) else ""
            if place is None:
                self._tell(facts, up, f"`{facts.short(up)}` names a device: nothing here shows which it should be")
                return
            where = f"{place}, " if place else ""
            new = f".to({where}{dtype})"
            yield Change(up, self.edit(facts, up, f"`{facts.short(up)}` became `{new}`"), _cast(new), tuple(up.args))
        elif not isinstance(up, ast.IfExp):
            self._tell(facts, read, f"`{facts.short(read)}` names a device")

    def _place(self, facts: Facts, call: ast.Call) -> str | None:
        if facts.handle is not None:
            return f"{facts.handle}.device"
        where = PlaceLikeInputs()._place(facts, call)
        return f"{where}.device" if where is not None else None


def _is_type(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "type" and len(call.args) == 1


def _typed(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _cuda_type(facts: Facts, a: ast.Attribute) -> bool:
    full = facts.names.resolve(a) if a.attr in DTYPES else None
    return full is not None and full.startswith("torch.cuda.")


def _torch(facts: Facts) -> str | None:
    """What the file calls torch."""
    for s in facts.walk(ast.Import):
        for a in s.names:
            if a.name == "torch" or (a.name.startswith("torch.") and not a.asname):
                return a.asname or "torch"
    return None


def _placed(where: str, kind: str, torch: str | None) -> Any:
    """`torch.cuda.FloatTensor(x)` to `torch.FloatTensor(x).to(where)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        call = updated.with_changes(lpar=[], rpar=[])
        if isinstance(call.func, cst.Attribute):
            call = call.with_changes(func=cst.parse_expression(f"{torch or 'torch'}.{kind}"))
        to = cst.Call(cst.Attribute(call, cst.Name("to")), [cst.Arg(cst.parse_expression(where))])
        return to.with_changes(lpar=updated.lpar, rpar=updated.rpar)

    return rewrite


def _cast(new: str) -> Any:
    """`x.type(Tensor)` to `x` and what is new."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        call = cst.parse_expression(f"x{new}")
        assert isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
        return updated.with_changes(func=updated.func.with_changes(attr=call.func.attr), args=call.args)

    return rewrite
