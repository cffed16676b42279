"""Functions that train and that nothing calls: they are taken out while the loop is read, and put back as they were.

One kept beside the one that is used (`train_teacher_forcing()`) would count as a second training.
"""

from __future__ import annotations

import ast
import re

from ..facts.nodes import walk
from ..facts.script import Facts
from .recipe import CannotLift

STUB = "def {name}():  # taken out {number}\n{lines}    return {names}"


def uncalled(facts: Facts) -> list[ast.FunctionDef]:
    """The functions that call backward() and that no other line names, where another place calls it, too."""
    calls = facts.calls_of("backward")
    training = {up for a in facts.attributes.get("backward", ()) for up in facts.scopes.ancestors(a)}
    found = [s for s in facts.tree.body if isinstance(s, ast.FunctionDef) and s in training and not s.decorator_list]
    found = [f for f in found if (f.end_lineno or 0) - f.lineno >= 2 and _is_named_once(facts, f.name)]
    inside = {c for f in found for c in walk(f, ast.Call)}
    return found if found and any(c not in inside for c in calls) else []


def taken_out(facts: Facts) -> tuple[Facts, dict[str, str]]:
    """The facts of the text without the bodies of these, line for line; and what stands for each, with its source."""
    text, stubs = facts.text.text, dict[str, str]()
    if "backward" not in facts.attributes:
        return facts, stubs
    for number, f in enumerate(reversed(uncalled(facts))):
        start, stop = facts.text.span(f)
        lines = "\n" * ((f.end_lineno or f.lineno) - f.lineno - 1)
        stub = STUB.format(name=f.name, number=number, lines=lines, names=_read(facts, f))
        stubs[stub] = text[start:stop]
        text = text[:start] + stub + text[stop:]
    return (facts.after(text), stubs) if stubs else (facts, stubs)


def put_back(text: str, stubs: dict[str, str]) -> str:
    """The text with the functions in it again; CannotLift where one is not as it was left."""
    for stub, source in stubs.items():
        if text.count(stub) != 1:
            raise CannotLift(ast.Pass(lineno=1), f"`{source.partition(chr(10))[0]}` trains, too, and nothing calls it")
        text = text.replace(stub, source)
    return text


def _read(facts: Facts, f: ast.FunctionDef) -> str:
    """The names of the script that a function reads, which have to stay where it finds them."""
    module = facts.scopes.module
    read = {n.id for n in walk(f, ast.Name) if facts.scopes.scope_of(n).lookup(n.id) is module and n.id != f.name}
    return ", ".join(sorted(read)) or "None"


def _is_named_once(facts: Facts, name: str) -> bool:
    """Whether the word is in the text once, and in no other file of the project."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return len(word.findall(facts.text.text)) == 1 and not any(word.search(o.text) for o in facts.others)
