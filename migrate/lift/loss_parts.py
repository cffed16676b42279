"""Which of several values that are given together a step takes: `loss, parts = losses(x)`, `found["loss"]`."""

from __future__ import annotations

import ast
from functools import cached_property

from .counted import Counted

Key = int | str


def key_of(index: ast.expr) -> Key | None:
    """The place or the name that an index is written out as."""
    negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
    constant = index.operand if negative else index  # type: ignore[attr-defined]
    value = constant.value if isinstance(constant, ast.Constant) else None
    if isinstance(value, str):
        return None if negative else value
    return (-value if negative else value) if isinstance(value, int) and not isinstance(value, bool) else None


def element(e: ast.expr, key: Key) -> ast.expr | None:
    """That part of a tuple, a list or a dictionary that is written out; None where it does not show."""
    if isinstance(e, (ast.Tuple, ast.List)) and isinstance(key, int):
        plain = not any(isinstance(x, ast.Starred) for x in e.elts)
        return e.elts[key] if plain and -len(e.elts) <= key < len(e.elts) else None
    if isinstance(e, ast.Dict) and None not in e.keys:
        found = [v for k, v in zip(e.keys, e.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
        return found[-1] if found else None
    return None


def same_places(e: ast.expr) -> ast.expr | None:
    """`found[:2]`: what has the same parts in the same places, as far as it goes."""
    cut = e.slice if isinstance(e, ast.Subscript) else None
    if not isinstance(cut, ast.Slice) or cut.step is not None or (cut.lower is not None and key_of(cut.lower) != 0):
        return None
    return e.value  # type: ignore[attr-defined]


def sets(n: ast.AST) -> Key | None:
    """The key of `losses["a"] = loss`."""
    target = n.targets[0] if isinstance(n, ast.Assign) else None
    return key_of(target.slice) if isinstance(target, ast.Subscript) else None


class Parts(Counted):
    """What gives the names of a step their values, as wholes and in parts."""

    def gives(self, name: str) -> list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]:
        """The assignments that give a name its value, in order; and which part of a value that is."""
        whole = [(n, s, value, None) for n, s, value in self.stored.get(name, ())]
        parts = self._unpacked.get(name)
        return sorted([*whole, *parts], key=lambda g: (g[0].lineno, g[0].col_offset)) if parts else [*whole]

    @cached_property
    def _unpacked(self) -> dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]]:
        """By name: the assignments that give it a part of a value, `loss, out = f(x)`, and which."""
        found: dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr, Key | None]]] = {}
        for n, s in self._assignments:
            for t in n.targets if isinstance(n, ast.Assign) else ():
                if not isinstance(t, (ast.Tuple, ast.List)) or isinstance(n.value, (ast.Tuple, ast.List)):
                    continue
                star = next((i for i, x in enumerate(t.elts) if isinstance(x, ast.Starred)), len(t.elts))
                for i, x in enumerate(t.elts):
                    if isinstance(x, ast.Name):
                        found.setdefault(x.id, []).append((n, s, n.value, i if i < star else i - len(t.elts)))
        return found

    @cached_property
    def held(self) -> dict[str, list[tuple[ast.AST, ast.stmt, ast.expr]]]:
        """By name: what puts values into lists and dictionaries, the statements of the body, and the values."""
        found: dict[str, list[tuple[ast.AST, ast.stmt, ast.expr]]] = {}
        for n, s in self.nodes():
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "append" and n.args:
                holder, value = n.func.value, n.args[0]
            elif isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Subscript):
                holder, value = n.targets[0].value, n.value
            else:
                continue
            if isinstance(holder, ast.Name):
                found.setdefault(holder.id, []).append((n, s, value))
        return found
