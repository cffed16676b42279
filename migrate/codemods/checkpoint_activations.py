"""T12: activations that are computed again in backward instead of being kept, with batch norm counted once.

`--checkpoint NAME` asks for it by the attribute of a module, which gets FairScale's wrapper. A call of torch's
`checkpoint` stays one, without re-entering autograd, which DistributedDataParallel does not go with; where batch norm
may run in it, the second run does not count into its statistics (`context_fn=batch_norm_once`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ..facts.gradients import Gradients
from ..facts.normalised import Normalised
from ..facts.script import Facts
from ..report import Note
from ._asked_checkpoints import AskedModule, NotWrapped
from .argument_rewrites import set_keyword
from .base import Change, Codemod, Insertion
from .rewrites import source

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
SEGMENTS = "torch.utils.checkpoint.checkpoint_sequential"
TORCH_WRAPPER = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper"
APPLIED = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing"
NORMS = re.compile(r"batch_?norm|torchvision|timm", re.IGNORECASE)
IMPORT = "from fairscale.nn import checkpoint_wrapper"
HOW = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop", "segments")
ONCE, OWN_SEGMENTS = NAMES = ("batch_norm_once", "checkpoint_segments")


class CheckpointActivations(Codemod):
    code = "PTM520"
    name = "checkpoint-activations"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for c in facts.classes.modules if facts.checkpoint else ():
            for name in sorted(facts.checkpoint):
                yield from self._wrap(facts, c, name)
        if "checkpoint" not in facts.text.text:
            return
        for call in facts.walk(ast.Call):
            full, given = self._called(facts, call)
            if full not in (CHECKPOINT, SEGMENTS, TORCH_WRAPPER) or facts.is_fixed(call):
                continue
            if any(k.arg is None for k in call.keywords) or (given and isinstance(given[0], ast.Starred)):
                self._tell_unseen(facts, call, given)
            elif full == TORCH_WRAPPER:
                yield from self._torch_wrapper(facts, call, given)
            else:
                yield from self._own_checkpoint(facts, call, full, given)
        for kind in (ast.Name, ast.Attribute):
            for n in facts.walk(kind):
                if facts.names.resolve(n) in (CHECKPOINT, SEGMENTS) and self._is_handed_on(facts, n):
                    self._tell(facts, n, "where it is called is not seen: use_reentrant=False goes with any strategy")
                wraps = facts.names.resolve(n) in (TORCH_WRAPPER, APPLIED) and NORMS.search(facts.text.text) is not None
                if wraps and self._is_handed_on(facts, n, True):
                    self._tell(facts, n, "batch norm in what it wraps counts its statistics twice")

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, f"`{facts.short(node)}`: {says}"))

    def _may_be_fairscales(self, facts: Facts, call: ast.Call) -> bool:
        """`try: from fairscale.nn import checkpoint_wrapper` with torch's in its `except`."""
        named = getattr(call.func, "id", "")
        imports = [s for s in facts.walk(ast.ImportFrom) if (s.module or "").startswith("fairscale")]
        return any((a.asname or a.name) == named for s in imports for a in s.names)

    def _tell_unseen(self, facts: Facts, call: ast.Call, given: list[ast.expr]) -> None:
        """A call whose arguments are not all written there."""
        how = next((k.value for k in call.keywords if k.arg == "use_reentrant"), None)
        if how is None or not _is_false(how):
            self._tell(facts, call, "its arguments are not seen: use_reentrant=False goes with any strategy")
        elif Normalised(facts).may_have(given[0] if given else facts.tree):
            self._tell(facts, call, "its arguments are not seen: without context_fn batch norm counts twice in it")

    # -- the wrapper that is asked for by name -------------------------------------------------------------------

    def _wrap(self, facts: Facts, c: ast.ClassDef, name: str) -> Iterator[Change]:
        module = AskedModule(facts, c, name)
        given = module.given()
        try:
            parts = [(value, part) for value in given for part in module.parts(value)]
            if not parts and given:
                raise NotWrapped("it is wrapped already, or given nothing")
            if parts and self._means_another(facts):
                raise NotWrapped("`checkpoint_wrapper` means something else here")
        except NotWrapped as why:
            self._tell_asked(facts, given[0], name, str(why))
            return
        if parts and any(part is value for value, part in parts) and not module.is_run():
            self._tell_asked(facts, given[0], name, "its layers are called one by one, and it never as a whole")
            return
        for value, part in parts:
            statement = facts.scopes.statement_of(value)
            says = f"`self.{name}` is wrapped in checkpoint_wrapper (asked for): its activations are computed again"
            needs = Insertion(1, "", [IMPORT]) if not self._imported(facts) else None
            yield Change(part, self.edit(facts, statement, says), _wrapped, (), needs)

    def _tell_asked(self, facts: Facts, node: ast.AST, name: str, why: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, f"`self.{name}` is asked for, and not wrapped: {why}"))

    def _means_another(self, facts: Facts) -> bool:
        """Whether the file has a checkpoint_wrapper of another kind."""
        stores = facts.scopes.module.stores.get("checkpoint_wrapper", [])
        return bool(stores) and not self._imported(facts)

    def _imported(self, facts: Facts) -> bool:
        every = (s for s in facts.walk(ast.ImportFrom) if (s.module or "").startswith("fairscale.nn"))
        return any(a.name == "checkpoint_wrapper" and a.asname is None for s in every for a in s.names)

    # -- torch's checkpoint ------------------------------------------------------------------------------------

    def _called(self, facts: Facts, call: ast.Call) -> tuple[str | None, list[ast.expr]]:
        """What a call calls, and what it gives by place: through functools.partial too."""
        full = facts.names.resolve(call.func)
        if full == "functools.partial" and call.args:
            return facts.names.resolve(call.args[0]), call.args[1:]
        return full, call.args

    def _is_handed_on(self, facts: Facts, n: ast.AST, wraps: bool = False) -> bool:
        """Read, and neither called there nor given a name that is resolved where that is called.

        `wraps`: torch's wrapper, also where `apply_activation_checkpointing(model)` takes it by default.
        """
        up = facts.scopes.parents.get(n)
        if wraps and isinstance(up, ast.Call) and facts.names.resolve(n) == APPLIED:
            return up.func is n and len(up.args) < 2 and all(k.arg != "checkpoint_wrapper_fn" for k in up.keywords)
        if not isinstance(getattr(n, "ctx", None), ast.Load) or (isinstance(up, ast.Call) and up.func is n):
            return False
        if isinstance(up, ast.Call) and facts.names.resolve(up.func) == "functools.partial" and up.args[0] is n:
            return False
        return not (isinstance(up, ast.Assign) and all(isinstance(t, ast.Name) for t in up.targets))

    def _own_checkpoint(self, facts: Facts, call: ast.Call, full: str, given: list[ast.expr]) -> Iterator[Change]:
        of = "functions" if full == SEGMENTS else "function"
        part = next((k.value for k in call.keywords if k.arg == of), given[0] if given else None)
        keywords = {k.arg: k.value for k in call.keywords}
        if "context_fn" in keywords:
            return
        counts = Normalised(facts).may_have(part if part is not None else facts.tree)
        how = keywords.get("use_reentrant", given[3] if full == SEGMENTS and len(given) > 3 else None)
        stays = how is not None and (_is_false(how) or not (counts and facts.ours))
        inputs = [*given[2 if full == SEGMENTS else 1 :], *(v for k, v in keywords.items() if k not in (of, *HOW))]
        if counts and facts.ours and self._means_something_else(facts, call, full):
            return
        if not stays and not any(Gradients(facts).needed(v) for v in inputs):
            says = "where no input of it needs a gradient, its parameters had none so far; now they have"
            self._tell(facts, call, says)
        if counts and facts.ours:
            yield from self._counted_once(facts, call, full)
            return
        if counts:
            self._tell(facts, call, "batch norm counts its statistics twice; use FairScale's checkpoint_wrapper")
        if how is None:
            says = f"`{facts.short(call)}`: use_reentrant=False, which goes with DistributedDataParallel"
            yield Change(call, self.edit(facts, call, says), set_keyword("use_reentrant", "False"))

    def _means_something_else(self, facts: Facts, call: ast.Call, full: str) -> bool:
        name = OWN_SEGMENTS if full == SEGMENTS else ONCE
        if facts.scopes.scope_of(call).lookup(name) is None:
            return False
        self._tell(facts, call, f"batch norm counts its statistics twice; `{name}` means something else here")
        return True

    def _counted_once(self, facts: Facts, call: ast.Call, full: str) -> Iterator[Change]:
        name = OWN_SEGMENTS if full == SEGMENTS else ONCE
        if full == SEGMENTS:
            says = f"`{facts.short(call)}`: {name}, in which batch norm counts its statistics once"
            func = call.args[0] if facts.names.resolve(call.func) != SEGMENTS else call.func
            yield Change(func, self.edit(facts, call, says), source(name), (func,))
            return
        says = f"`{facts.short(call)}`: use_reentrant=False, and batch norm counts its statistics once"
        yield Change(call, self.edit(facts, call, says), _once)

    def _torch_wrapper(self, facts: Facts, call: ast.Call, given: list[ast.expr]) -> Iterator[Change]:
        """`checkpoint_wrapper(module, checkpoint_impl=..., checkpoint_fn=..., **what checkpoint gets)` of torch."""
        keywords = {k.arg: k.value for k in call.keywords}
        part = keywords.get("module", given[0] if given else None)
        if {"context_fn", "checkpoint_fn"} & set(keywords) or len(given) > 2:
            return
        if not Normalised(facts).may_have(part if part is not None else facts.tree):
            return
        if self._may_be_fairscales(facts, call):
            self._tell(
                facts, call, "batch norm counts its statistics twice where it is torch's; FairScale's counts once"
            )
            return
        how = keywords.get("checkpoint_impl", given[1] if len(given) > 1 else None)
        reenters = how is not None and not ast.unparse(how).endswith("NO_REENTRANT")
        if reenters or not facts.ours or facts.scopes.scope_of(call).lookup(ONCE) is not None:
            self._tell(facts, call, "batch norm counts its statistics twice; use FairScale's checkpoint_wrapper")
            return
        says = f"`{facts.short(call)}`: batch norm counts its statistics once"
        yield Change(call, self.edit(facts, call, says), set_keyword("context_fn", ONCE))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _wrapped(original: Any, updated: Any) -> Any:
    import libcst as cst

    return cst.Call(cst.Name("checkpoint_wrapper"), [cst.Arg(updated)])


def _once(original: Any, updated: Any) -> Any:
    return set_keyword("context_fn", ONCE)(original, set_keyword("use_reentrant", "False")(original, updated))
