"""T12: activations that are computed again in backward instead of being kept: checkpoint_wrapper where it is asked for.

`--checkpoint NAME` asks for it by the attribute of a module. A call of torch's `checkpoint` on a part with batch norm
becomes the same wrapper, because computing twice would count its statistics twice; FairScale's counts them once.
Elsewhere torch's `checkpoint` stays, without re-entering autograd, which DistributedDataParallel does not go with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod, Insertion
from .rewrites import set_keyword

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
WRAPPERS = {
    "fairscale.nn.checkpoint_wrapper",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
}
LISTS = {"torch.nn.ModuleList", "torch.nn.ModuleDict"}
OWN_ARGUMENTS = {"use_reentrant", "preserve_rng_state"}
IMPORT = "from fairscale.nn import checkpoint_wrapper"


class CheckpointActivations(Codemod):
    code = "PTM520"
    name = "checkpoint-activations"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        self.replaced: set[ast.Call] = set()
        calls = [c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) == CHECKPOINT and c.args]
        if not calls and not facts.checkpoint:
            return
        for c in facts.classes.modules:
            for name in sorted(facts.checkpoint):
                yield from self._wrap(facts, c, name, "asked for")
            yield from self._parts_with_batch_norm(facts, c, calls)
        for call in calls:
            if call not in self.replaced:
                yield from self._not_reentrant(facts, call)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _made(self, c: ast.ClassDef, name: str) -> list[ast.Assign]:
        return [
            s for s in ast.walk(c) if isinstance(s, ast.Assign) and len(s.targets) == 1 and _own(s.targets[0]) == name
        ]

    # -- the wrapper -------------------------------------------------------------------------------------------

    def _wrap(self, facts: Facts, c: ast.ClassDef, name: str, why: str) -> Iterator[Change]:
        for s in self._made(c, name):
            for part in self._parts(facts, s.value):
                if isinstance(part, ast.Call) and facts.names.resolve(part.func) in WRAPPERS:
                    continue
                says = f"`self.{name}` is wrapped in checkpoint_wrapper ({why}): its activations are computed again"
                needs = Insertion(1, "", [IMPORT]) if not self._imported(facts) else None
                yield Change(part, self.edit(facts, s, says), _wrapped, (), needs)

    def _parts(self, facts: Facts, value: ast.expr) -> list[ast.expr]:
        """The modules to wrap: each of a list of them, or the one that there is."""
        if isinstance(value, ast.Call) and facts.names.resolve(value.func) in LISTS and value.args:
            listed = value.args[0]
            if isinstance(listed, ast.List | ast.Tuple):
                return [e for e in listed.elts if isinstance(e, ast.Call)]
            if isinstance(listed, ast.ListComp | ast.GeneratorExp):
                return [listed.elt]
            if isinstance(listed, ast.Dict):
                return list(listed.values)
        return [value] if isinstance(value, ast.Call) else []

    def _imported(self, facts: Facts) -> bool:
        return any(a.name == "checkpoint_wrapper" for s in facts.walk(ast.ImportFrom) for a in s.names)

    # -- torch's checkpoint ------------------------------------------------------------------------------------

    def _parts_with_batch_norm(self, facts: Facts, c: ast.ClassDef, calls: list[ast.Call]) -> Iterator[Change]:
        """`checkpoint(self.block, x)` of a block with batch norm: the block is wrapped, and called."""
        for name in sorted({_own(call.args[0]) for call in calls} - {""}):
            own = [k for k in calls if _own(k.args[0]) == name and facts.names.nodes.class_of(k) is c]
            if not own or not any(self._has_batch_norm(facts, s.value, 0) for s in self._made(c, name)):
                continue
            reads = [a for a in ast.walk(c) if _own(a) == name and isinstance(a.ctx, ast.Load)]  # type: ignore[attr-defined]
            plain = len(reads) == len(own) and all(self._plain(call) for call in own)
            if not plain or not all(self._parts(facts, s.value) == [s.value] for s in self._made(c, name)):
                line, column, _, _ = facts.text.key(own[0])
                says = f"`{facts.short(own[0])}`: batch norm counts its statistics twice; use FairScale's wrapper"
                self.left.append(Note(line, column + 1, self.code, says))
                continue
            yield from self._wrap(facts, c, name, "its batch norm counts its statistics once so")
            self.replaced.update(own)
            for call in own:
                says = f"`{facts.short(call)}` became a call of `self.{name}`, which is wrapped"
                gone = (call.func, *(k for k in call.keywords))
                yield Change(call, self.edit(facts, call, says), _called, gone)

    def _plain(self, call: ast.Call) -> bool:
        return not any(isinstance(a, ast.Starred) for a in call.args[:1]) and all(
            k.arg in OWN_ARGUMENTS for k in call.keywords
        )

    def _has_batch_norm(self, facts: Facts, value: ast.AST, depth: int) -> bool:
        for n in ast.walk(value):
            if not isinstance(n, ast.Call):
                continue
            full = facts.names.resolve(n.func) or ""
            if full.startswith("torch.nn.") and "BatchNorm" in full:
                return True
            local = [d for d in facts.walk(ast.ClassDef) if isinstance(n.func, ast.Name) and d.name == n.func.id]
            if depth < 4 and any(self._has_batch_norm(facts, d, depth + 1) for d in local):
                return True
        return False

    def _not_reentrant(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        if any(k.arg in ("use_reentrant", None) for k in call.keywords) or facts.in_formatted_string(call):
            return
        says = f"`{facts.short(call)}`: use_reentrant=False, which goes with DistributedDataParallel"
        yield Change(call, self.edit(facts, call, says), set_keyword("use_reentrant", "False"))


def _own(node: ast.AST) -> str:
    """`self.block` by its name; empty for anything else."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""  # type: ignore[attr-defined]


def _wrapped(original: Any, updated: Any) -> Any:
    import libcst as cst

    return cst.Call(cst.Name("checkpoint_wrapper"), [cst.Arg(updated)])


def _called(original: Any, updated: Any) -> Any:
    """`checkpoint(self.block, x, use_reentrant=False)` to `self.block(x)`."""
    import libcst as cst

    given = [a for a in updated.args if a.keyword is None]
    args = given[1:]
    if args:
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return updated.with_changes(func=given[0].value, args=args)
