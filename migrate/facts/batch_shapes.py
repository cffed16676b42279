"""What a function shows of its values anywhere: how many dimensions each has, and what is a tuple.

`b, t, d = x.shape`, `d.min(dim=2)`, `q.transpose(1, 2)` and `m[:, :, 0]` say three; `z.t()` and `torch.mm(z, w)` two.
A name that is given a value more than once shows nothing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable

from .batch_operations import KEEPS_SHAPE, REDUCES, SWAPS
from .batch_views import numbers
from .nodes import walk

ALONG = {*KEEPS_SHAPE, *REDUCES} - {"norm", "renorm", "roll", "quantile", "topk", "kthvalue"}
MATRICES = {"t", "mm", "addmm"}


class Shapes:
    def __init__(self, body: list[ast.stmt], resolve: Callable[[ast.expr], str | None]) -> None:
        self.resolve = resolve
        self._ranks: dict[str, set[int]] = defaultdict(set)
        self._parts: dict[str, set[int]] = defaultdict(set)
        stores: dict[str, int] = defaultdict(int)
        for s in body:
            for n in walk(s):
                if isinstance(n, ast.Name):
                    stores[n.id] += not isinstance(n.ctx, ast.Load)
                elif isinstance(n, ast.Call):
                    self._call(n)
                elif isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
                    self._subscript(n, n.value.id)
                elif isinstance(n, ast.Subscript):
                    self._size(n.value, numbers(n.slice))
                elif isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple):
                    self._unpacked(n.targets[0], n.value)
        self._once = {name for name, count in stores.items() if count < 2}

    def rank(self, name: str) -> int:
        """2, or 3 for three and more; 0 where nothing shows it."""
        found = self._ranks.get(name, set()) if name in self._once else set()
        return found.copy().pop() if len(found) == 1 else 0

    def is_tuple(self, name: str) -> bool:
        """`x[0]` and `x[1]`: nobody asks a batch for its first two samples by one each."""
        return name in self._once and len(self._parts.get(name, ())) > 1

    def _shows(self, of: ast.expr, rank: int) -> None:
        if isinstance(of, ast.Name) and rank >= 2:
            self._ranks[of.id].add(min(rank, 3))

    def _call(self, call: ast.Call) -> None:
        full = self.resolve(call.func) or ""
        if full.startswith("torch.") and call.args:
            name, of, given = full.rpartition(".")[2], call.args[0], call.args[1:]
        elif isinstance(call.func, ast.Attribute):
            name, of, given = call.func.attr, call.func.value, call.args
        else:
            return
        keywords = [k.value for k in call.keywords if k.arg and k.arg.startswith("dim")]
        if name in MATRICES:
            self._shows(of, 2)
        elif name == "permute":
            self._shows(of, len([n for a in (*given, *keywords) for n in numbers(a)]))
        elif name in SWAPS or name == "size":
            self._from(of, [n for a in (*given, *keywords) for n in numbers(a)])
        elif name in ALONG:
            self._from(of, [n for a in (*given[:1], *keywords) for n in numbers(a)])

    def _from(self, of: ast.expr, dims: list[int]) -> None:
        if max(dims, default=0) > 1:
            self._shows(of, max(dims) + 1)

    def _size(self, of: ast.expr, places: list[int]) -> None:
        if isinstance(of, ast.Attribute) and of.attr == "shape":
            self._from(of.value, places)

    def _subscript(self, e: ast.Subscript, name: str) -> None:
        if isinstance(e.slice, ast.Tuple):
            parts = [p for p in e.slice.elts if not (isinstance(p, ast.Constant) and p.value in (None, Ellipsis))]
            self._from(e.value, [len(parts) - 1])
        elif isinstance(e.slice, ast.Constant) and type(e.slice.value) is int:
            self._parts[name].add(e.slice.value)

    def _unpacked(self, target: ast.Tuple, value: ast.expr) -> None:
        starred = any(isinstance(t, ast.Starred) for t in target.elts)
        if isinstance(value, ast.Attribute) and value.attr == "shape" and not starred:
            self._shows(value.value, len(target.elts))
        sized = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "size"
        if sized and not value.args and not starred:  # type: ignore[attr-defined]
            self._shows(value.func.value, len(target.elts))  # type: ignore[attr-defined]
