"""Networks that a script brings to another precision: a buffer follows them, a tensor that is an attribute does not."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from .arguments import given_to
from .back_from_cpu import itself
from .script import once_a_file

if TYPE_CHECKING:
    from .script import Facts

SPEAKS = re.compile(r"\.(half|double)\(|float(16|64)|torch\.(half|double)\b")
TYPES = {"float16": "half", "half": "half", "bfloat16": "bfloat16", "float64": "double", "double": "double"}
WHOLE = re.compile(
    r"\b(u?int(8|16|32|64)?|long|bool|short|LongTensor|IntTensor|BoolTensor|ByteTensor|randperm|randint)\b"
)
SAID = {
    "half": re.compile(r"\b(half|float16|HalfTensor)\b"),
    "bfloat16": re.compile(r"\bbfloat16\b"),
    "double": re.compile(r"\b(double|float64|DoubleTensor)\b"),
}


def cast_beside(facts: Facts, made: ast.expr) -> str:
    """The call by which the project brings networks to another precision than that of a tensor, as a report shows it;
    nothing where none does.
    """
    if not (casts := _casts(facts)) or WHOLE.search(text := ast.unparse(made)):
        return ""
    return next((said for said, kind in casts if not SAID[kind].search(text)), "")


@once_a_file
def _casts(facts: Facts) -> list[tuple[str, str]]:
    said = [facts] if SPEAKS.search(facts.text.text) else []
    said += [there for o in facts.others if SPEAKS.search(o.text) and (there := o.facts()) is not None]
    calls = ((there, call) for there in said for call in there.walk(ast.Call))
    return [(there.short(call), kind) for there, call in calls if (kind := _kind(there, call))]


def _kind(facts: Facts, call: ast.Call) -> str:
    """The precision that a call brings a network to."""
    f = call.func
    if not isinstance(f, ast.Attribute) or f.attr not in (*SAID, "to", "type"):
        return ""
    asked = [(facts.names.resolve(a) or "").removeprefix("torch.") for a in given_to(call)]
    kind = f.attr if f.attr in SAID else next((TYPES[a] for a in asked if a in TYPES), "")
    return kind if kind and _is_network(facts, f.value) else ""


def _is_network(facts: Facts, node: ast.expr) -> bool:
    node = itself(node)
    if isinstance(node, ast.Call):
        return facts.placed.is_module(node)
    if isinstance(node, ast.Attribute):
        return facts.loops.is_model_name(node.attr)
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name):
        return False
    own = node.id == "self" and any(up in facts.classes.modules for up in facts.scopes.ancestors(node))
    return own or facts.placed.used_as_module(node.id, scope)
