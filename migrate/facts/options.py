"""The options that a script declares: names, defaults, and which are flags."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .script import Facts

FLAGS = {"store_true": False, "store_false": True}


@dataclass(frozen=True)
class Option:
    call: ast.Call
    name: str  # as it is read: args.name
    default: Any  # None where none is given, or none shows
    given: ast.expr | None  # the source of the default
    is_flag: bool


def options(facts: Facts) -> Iterator[Option]:
    for call in facts.walk(ast.Call):
        name = option_name(call)
        if name is None:
            continue
        given = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
        negative = next((k.value for k in call.keywords if k.arg == "default"), None)
        default = given.get("default")
        if isinstance(negative, ast.UnaryOp) and isinstance(negative.operand, ast.Constant):
            default = -negative.operand.value  # type: ignore[operator]
        flag = str(given.get("action")) in FLAGS
        yield Option(
            call, name, FLAGS[str(given["action"])] if flag else default, negative, flag or isinstance(default, bool)
        )


def option_name(node: ast.expr) -> str | None:
    """The name under which `parser.add_argument("--gpu", ...)` is read."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
        return None
    dest = next((k.value for k in node.keywords if k.arg == "dest"), None)
    if dest is not None:
        return dest.value if isinstance(dest, ast.Constant) and isinstance(dest.value, str) else None
    names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    long = next((n for n in names if n.startswith("--")), None)
    return long[2:].replace("-", "_") if long else None
