"""T1: a `.cuda()` that nobody's placing makes needless goes where there is CUDA: elsewhere it would end the result.

`x.cuda()` -> `x.to("cuda" if torch.cuda.is_available() else "cpu")`

It is planned on the result, once all is known of what the runtime places. Without a number: each process has its card.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.asked_machine import asks_machine
from ..facts.script import Facts
from ..facts.storages import is_storage
from ._lengths import in_file
from .argument_rewrites import to_argument
from .base import Change, Codemod
from .rewrites import unwrap

KEYWORDS = ("non_blocking", "memory_format")
OWN = "def cuda("  # of a class of the project's own, which may have no `to`
TOLD = ": nothing here shows which it should be"  # what is said of such a call, and is answered then


class LeftCuda(Codemod):
    code = "PTM115"
    name = "left-cuda"

    def __init__(self, unplaced: bool = False) -> None:
        self.unplaced = unplaced  # nothing places the networks of a script, which stay on the CPU

    def plan(self, facts: Facts) -> Iterator[Change]:
        calls = facts.calls_of("cuda")
        if not calls or _has_own(facts):
            return
        torch, insertion = in_file(facts)
        for call in calls:
            if not _goes_anywhere(call) or _stays(facts, call):
                continue
            if self.unplaced:
                says = f"`{facts.short(call)}`: it stays on the CPU with the networks, which nothing here places"
                yield Change(call, self.edit(facts, call, says), unwrap, (*call.args, *call.keywords))
            else:
                says = f"`{facts.short(call)}` goes where there is CUDA, and stays on the CPU elsewhere"
                assert isinstance(call.func, ast.Attribute)
                change = _where(torch, is_storage(facts, call.func.value))
                yield Change(call, self.edit(facts, call, says), change, (), insertion)


def goes_with_networks(facts: Facts, call: ast.Call) -> bool:
    """Whether a call goes from a script that has nothing on a device."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
    return named and _goes_anywhere(call) and not _stays(facts, call) and not _has_own(facts)


def _has_own(facts: Facts) -> bool:
    return any(OWN in text for text in (facts.text.text, *(o.text for o in facts.others)))


def _goes_anywhere(call: ast.Call) -> bool:
    """To the card that the process has, and not to one by its number."""
    return not call.args and all(k.arg in KEYWORDS for k in call.keywords)


def _stays(facts: Facts, call: ast.Call) -> bool:
    """What only runs with CUDA: where it is asked for, on a stream of its own, for apex's amp; or cannot be told."""
    assert isinstance(call.func, ast.Attribute)
    if facts.is_fixed(call) or facts.placed.on_a_stream(call) or facts.placed.is_for_apex(call.func.value):
        return True
    around = [up.test for up in facts.scopes.ancestors(call) if isinstance(up, (ast.If, ast.IfExp))]
    return any(asks_machine(facts, test) for test in around)


def _where(torch: str, by_name: bool) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        there = to_argument(cst.parse_expression(f'"cuda" if {torch}.cuda.is_available() else "cpu"'), by_name)
        return updated.with_changes(func=updated.func.with_changes(attr=cst.Name("to")), args=[there, *updated.args])

    return rewrite
