"""What a function shows of its values anywhere: how many dimensions each has, and what is a tuple.

`b, t, d = x.shape`, `d.min(dim=2)`, `q.transpose(1, 2)` and `m[:, :, 0]` say three; `z.t()` and `torch.mm(z, w)` two.
A name that is given a value more than once shows nothing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from .batch_operations import KEEPS_SHAPE, REDUCES, SWAPS
from .batch_tensors import tensors_of
from .batch_values import Value, replace
from .batch_views import numbers
from .nodes import walk

ALONG = {*KEEPS_SHAPE, *REDUCES} - {"norm", "renorm", "roll", "quantile", "topk", "kthvalue"}
MATRICES = {"t", "mm", "addmm"}


class Shapes:
    def __init__(
        self, body: list[ast.stmt], resolve: Callable[[ast.expr], str | None], losses: set[str] | None = None
    ) -> None:
        self.resolve = resolve
        self._body, self._losses = body, losses or set()
        self._ranks: dict[str, set[int]] = defaultdict(set)
        self._widths: dict[str, str] = {}
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

    @cached_property
    def _tensors(self) -> set[str]:
        return tensors_of(self._body, self.resolve, self._losses)

    def rank(self, name: str) -> int:
        """2, or 3 for three and more; 0 where nothing shows it."""
        found = self._ranks.get(name, set()) if name in self._once else set()
        return found.copy().pop() if len(found) == 1 else 0

    def is_tensor(self, e: ast.expr) -> bool:
        """A name that is one tensor in any case."""
        return isinstance(e, ast.Name) and e.id in self._tensors

    def is_tuple(self, name: str) -> bool:
        """`x[0]` and `x[1]`: nobody asks a batch for its first two samples by one each."""
        return name in self._once and len(self._parts.get(name, ())) > 1

    def shown(self, name: str, value: Value) -> Value:
        """A value with what is shown of the name that it is given."""
        if value.loose and name in self._tensors:
            value = replace(value, loose=False)
        if value.kind != "batch" or value.dim != 0:
            several = value.kind == "batch" and value.loose and self.is_tuple(name)
            return replace(value, holds=True) if several else value
        rank = self.rank(name)
        if rank and not value.items and (value.holds or not value.rank):
            return replace(value, holds=False, rank=rank)  # what has dimensions is no tuple
        return replace(value, holds=True) if self.is_tuple(name) else value

    def is_width(self, of: ast.expr, size: ast.expr) -> bool:
        """Whether a size is that of the last dimension: `z.shape[-1]`, `z.size(1)`, the `d` of `b, d = z.shape`."""
        if isinstance(of, ast.Name) and isinstance(size, ast.Name):
            return size.id in self._once and self._widths.get(size.id) == of.id
        asked = size.value if isinstance(size, ast.Subscript) else getattr(size, "func", None)
        place = size.slice if isinstance(size, ast.Subscript) else next(iter(getattr(size, "args", ())), None)
        named = isinstance(asked, ast.Attribute) and asked.attr in ("shape", "size") and place is not None
        if not named or ast.unparse(asked.value) != ast.unparse(of):  # type: ignore[union-attr]
            return False
        return numbers(place) in ([-1], [1])  # type: ignore[arg-type]

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
        last = target.elts[-1]
        if isinstance(value, ast.Attribute) and value.attr == "shape" and not starred:
            self._shows(value.value, len(target.elts))
            if isinstance(last, ast.Name) and isinstance(value.value, ast.Name):
                self._widths[last.id] = value.value.id
        sized = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "size"
        if sized and not value.args and not starred:  # type: ignore[attr-defined]
            self._shows(value.func.value, len(target.elts))  # type: ignore[attr-defined]
