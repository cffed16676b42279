"""Texts of expressions that become parts of others: in parentheses where what stands around would take them apart."""

from __future__ import annotations

import ast
from collections.abc import Iterable

# how tightly an expression holds together; a part has to hold at least as tightly as its place asks for
ANY, CHOICE, OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, TERM, FACTOR, SIGNED, POWER, ATOM = range(15)
_KINDS: dict[type, int] = {
    ast.NamedExpr: ANY, ast.Lambda: CHOICE, ast.IfExp: CHOICE, ast.Yield: ANY, ast.YieldFrom: ANY,
    ast.Tuple: ANY, ast.Starred: ANY, ast.Or: OR, ast.And: AND, ast.Not: NOT, ast.Compare: COMPARISON,
    ast.BitOr: BIT_OR, ast.BitXor: BIT_XOR, ast.BitAnd: BIT_AND, ast.LShift: SHIFT, ast.RShift: SHIFT, ast.Add: TERM,
    ast.Sub: TERM, ast.Pow: POWER, ast.Await: POWER, ast.UAdd: SIGNED, ast.USub: SIGNED, ast.Invert: SIGNED,
}  # fmt: skip


def closed(text: str, place: int) -> str:
    """The text of an expression as a part that has to hold as tightly as `place` says."""
    return f"({text})" if tightness(text) < place or not _is_alone(text) else text


def joined(texts: Iterable[str], word: str) -> str:
    """Conditions that hold together: `word` is "and" or "or". One alone is not changed."""
    parts = list(texts)
    place = AND if word == "and" else OR
    return f" {word} ".join(closed(t, place) for t in parts) if len(parts) > 1 else parts[0]


def negated(text: str) -> str:
    """The opposite of a condition: `not a` is `a` again."""
    if tightness(text) == NOT:
        return text[4:].lstrip()
    return f"not {closed(text, ATOM)}"


def tightness(text: str) -> int:
    """How tightly the text of an expression holds together, its own parentheses read too."""
    node = ast.parse(f"(\n{text}\n)", mode="eval").body
    if isinstance(node, ast.Tuple):  # whose place in the text is that of its parentheses
        return ATOM if text[0] == "(" and isinstance(ast.parse(f"(f{text})", mode="eval").body, ast.Call) else ANY
    if (node.lineno, node.col_offset) != (2, 0):
        return ATOM  # it stands in parentheses
    kind = type(getattr(node, "op", node))
    return _KINDS.get(kind, FACTOR if isinstance(node, ast.BinOp) else ATOM)


def _is_alone(text: str) -> bool:
    """Whether it is an expression outside of all parentheses, too, over however many lines."""
    if "\n" not in text:
        return True
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
