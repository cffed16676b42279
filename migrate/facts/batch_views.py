"""Operations that move the dimensions of a value, add some or take some: where the samples are counted behind them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_operations import SWAPS
from .batch_values import Value, replace

if TYPE_CHECKING:
    from .mixing import Run


def moved_by(run: Run, call: ast.Call, name: str, of: Value, offset: int) -> Value | None:
    """What changes the order of the dimensions; None for all else."""
    given = call.args[offset:]
    keywords = [k.value for k in call.keywords if k.arg and k.arg.startswith("dim")]
    args = [n for a in (*given, *keywords) for n in numbers(a)]
    counting = [run.value(a).counts for a in given] if name in ("expand", "repeat", "repeat_interleave") else []
    if any(c for i, c in enumerate(counting) if i != of.dim or name != "expand"):
        run.flow.mixes.append(call)  # z[:, None].expand(n, n, d)
    if name == "repeat_interleave" and of.dim == 0 and numbers(_dim_of(call, given, 1)) == [0]:
        return replace(of, merged=True)
    if name == "t":
        return replace(of, dim=1 - of.dim, rank=2) if of.dim < 2 else of
    if name == "adjoint" or (name in SWAPS and sorted(args) == [-2, -1]):
        source = call.args[0] if offset and call.args else getattr(call.func, "value", call)
        return run.turned(of, source)
    if name in SWAPS and len(args) == 2:
        to = args[1] if of.dim == args[0] else args[0] if of.dim == args[1] else of.dim
        return replace(of, last=False, rows=False, dim=to, loose=False)  # which a tensor alone has
    if name == "permute" and of.dim in args:
        rows = len(args) > 3 and args[-2] == of.dim
        return replace(of, dim=args.index(of.dim), last=args[-1] == of.dim, rows=rows, loose=False)
    if name == "unsqueeze" and args:
        of = replace(of, flat=False, last=False, apart=args[0] > of.dim or args[0] < 0, rank=of.rank and 3)
        return replace(of, dim=of.dim + (0 <= args[0] <= of.dim))
    if (name in ("view", "reshape") and args == [-1] and len(given) == 1) or (
        name in ("flatten", "ravel") and not given and not call.keywords
    ):
        if of.dim == 0 and not of.holds:  # not `x.view(x.size(0), -1)`
            return replace(of, flat=True, apart=False, rank=0, last=False)
        return replace(of, flat=of.dim == 0)
    if name in ("view", "reshape") and len(given) > 1:
        if of.dim == 0 and not of.holds and (n := numbers(given[0])) and n[0] > 1:
            return _in_groups(run, call, of, n[0], len(given))
        if _regroups(run, call, of, given, offset):
            run.flow.mixes.append(call)  # z.view(-1, 2, 5) of z with 5 columns
        if of.dim == 0 and numbers(given[0]) == [1]:
            return replace(of, flat=False, dim=1, rank=min(len(given), 3))  # y.view(1, -1)
        column = numbers(given[1]) == [1] and (len(given) == 2 or run.value(given[0]).counts)
        merged = len(given) == 2 and of.rank != 2 and (numbers(given[0]) == [-1] or _is(given[0], ast.Mult))
        apart = column and of.dim == 0
        return replace(of, flat=False, apart=apart, rank=min(len(given), 3), merged=merged, width="", last=False)
    if name == "squeeze" and args[:1] == [0] and of.dim > 0:
        return replace(of, dim=of.dim - 1, rank=max(of.rank - 1, 0) if of.rank < 3 else 0)
    if name == "squeeze" and args[:1] != [0]:
        return replace(of, apart=False, rank=0)
    if name == "unflatten":
        return replace(of, flat=False, rank=3 if args and args[0] > of.dim else 0, width="")
    if name in ("view", "reshape", "expand", "stack"):
        return replace(of, flat=False, rank=0)
    if name == "flatten" and args in ([1], [2]):
        return replace(of, flat=False, rank=args[0] + 1, width="")
    if name == "flatten" and args in ([0, 1], [0, -2]):
        return replace(of, flat=False, rank=2 if args[1] < 0 else 0, merged=True)
    if name == "repeat" and given and of.dim == 0 and (times := numbers(given[0])[:1]) != [1]:
        return replace(of, views=times[0] if times and of.views == 1 else 0)
    return None


def _dim_of(call: ast.Call, given: list[ast.expr], place: int) -> ast.expr:
    found = next((k.value for k in call.keywords if k.arg == "dim"), None)
    return found or (given[place] if len(given) > place else call)


def _in_groups(run: Run, call: ast.Call, of: Value, n: int, rank: int) -> Value:
    """`z.view(2, -1, 5)`: the views that stand one after another, or the halves of a batch."""
    if of.views not in (0, n):
        run.flow.mixes.append(call)
    return replace(of, dim=1, views=1, flat=False, apart=False, rank=min(rank, 3), merged=False)


def _regroups(run: Run, call: ast.Call, of: Value, given: list[ast.expr], offset: int) -> bool:
    """Whether rows come together with others: the columns stay as they are, and there are less rows."""
    if of.dim != 0 or of.holds or of.merged or of.views != 1 or of.rank == 3:
        return False
    if _is(given[0], ast.FloorDiv):
        return run.value(given[0].left).counts  # type: ignore[attr-defined]  # len(z) // 2
    if len(given) != 3 or numbers(given[0]) != [-1] or numbers(given[1]) == [1]:
        return False
    source = call.args[0] if offset else getattr(call.func, "value", call)
    return run.shapes.is_width(source, given[2]) or (of.width != "" and of.width == last_name(given[2]))


def last_name(e: ast.expr) -> str:
    """`dim` of `self.hparams.dim`: by what a size goes in the constructor and in the step."""
    return e.attr if isinstance(e, ast.Attribute) else ast.unparse(e)


def _is(e: ast.expr, op: type[ast.operator]) -> bool:
    return isinstance(e, ast.BinOp) and isinstance(e.op, op)


def one_each(listed: ast.expr | None) -> ast.expr | None:
    """What a comprehension has an element for each of: `views` of `[self(v) for v in views]`."""
    if isinstance(listed, (ast.ListComp, ast.GeneratorExp)):
        g = listed.generators[0]
        return g.iter if len(listed.generators) == 1 and not g.ifs else None
    return listed


def numbers(node: ast.expr) -> list[int]:
    """The whole numbers that an expression such as `0`, `-1` or `(0, 2)` holds; none for any other."""
    if isinstance(node, ast.Constant):
        return [node.value] if type(node.value) is int else []
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return [-n for n in numbers(node.operand)]
    if not isinstance(node, (ast.UnaryOp, ast.Tuple, ast.List)):
        return []
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v for v in values if type(v) is int]
