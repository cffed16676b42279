"""Where a script asks for batch norm over all processes, which is the Trainer's `sync_batchnorm=`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .nodes import FUNCTIONS, is_main_guard
from .wrapped import CONVERTERS

if TYPE_CHECKING:
    from .script import Facts


def conversions(facts: Facts) -> list[ast.Call]:
    """The calls of `convert_sync_batchnorm` and its like."""
    if "convert_sync" not in facts.text.text:
        return []
    return [c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) in CONVERTERS]


def asked(facts: Facts) -> str | None:
    """The source of when batch norm is to be synchronised: `True`, or the script's condition; None where it never is.

    Whether there are several processes is no part of it: with one there is nothing to synchronise.
    """
    whens = {" and ".join(_conditions(facts, call)) for call in conversions(facts)}
    if not whens:
        return None
    return "True" if "" in whens else " or ".join(sorted(whens))


def _conditions(facts: Facts, call: ast.Call) -> Iterator[str]:
    """What has to hold for a call to be reached, in its own function."""
    child: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            if child in body:
                tests = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else []
                for test in tests or [up.test]:
                    if not (_asks_for_processes(facts, test) or is_main_guard(test)):
                        yield _inside(facts, test)
            elif not _asks_for_processes(facts, up.test):
                yield f"not {_inside(facts, up.test)}"
        child = up


def _asks_for_processes(facts: Facts, test: ast.expr) -> bool:
    return facts.worlds.plain(test) is not None


def _inside(facts: Facts, test: ast.expr) -> str:
    text = " ".join(facts.text.get(test).split())
    return text if isinstance(test, (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
