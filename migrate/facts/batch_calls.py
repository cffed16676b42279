"""A call in a step: which dimension of its result counts the samples, and whether it mixes them."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from .arguments import argument_at, entry, is_false, is_separate, is_static
from .batch_autograd import function_applied
from .batch_buffers import keep, refill
from .batch_builtins import PASSES, groups, pairs_up, passed
from .batch_choices import applied, around, as_if, one_of_several, run_each, with_views
from .batch_elsewhere import followed_there, made_by_functions
from .batch_functions import constants, held, is_own, makers, target_of
from .batch_handed import handed_on
from .batch_layers import layered, normalises_by_batch, reads_as_series
from .batch_losses import by_place, loss_of
from .batch_numbers import ALIKE, SPACED, alike, by_their_number, carried, meets, numbered
from .batch_operations import (
    ADDED_PRODUCTS,
    ALIKE_ALONE,
    ALONG,
    ALWAYS_MIXES,
    AS_TENSORS,
    BENDS,
    BY_INDEX,
    CHOOSES,
    DECOMPOSED,
    JOINS,
    KEEPS_SHAPE,
    LAST_BY_DEFAULT,
    LOSS,
    MIXUP,
    NO_VALUES,
    NOT_ADDED_UP,
    OF_A_SAMPLE,
    ORDERS,
    OTHER_ORDER,
    OVER,
    PAIRED,
    PAIRS,
    PARTS,
    PER_SAMPLE_LOSS,
    PICKS,
    PRODUCTS,
    RANDOM_ORDERS,
    REDUCES,
    ROWS,
    SAME_ORDER,
    SHUFFLES,
    SIZES,
    SWAPS,
    TIMES,
    TO_HOST,
    TRIANGLES,
    bends,
    brings_together,
    steps_by_error,
)
from .batch_pairs import distance
from .batch_patterns import as_text, contracted, rearranged, text_of
from .batch_values import PLAIN, REDUCED, Value, replace
from .batch_views import moved_by, numbers, one_each
from .batch_vmap import mapped
from .spelled import spelled

if TYPE_CHECKING:
    from .mixing import Run

MANY = 5  # dimensions


class BatchCall:
    """One call, with what its arguments are."""

    def __init__(self, run: Run, call: ast.Call) -> None:
        self.run, self.call, self.facts = run, call, run.facts
        self.full = self.facts.names.resolve(call.func)
        func = call.func
        self.last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if self.full is not None and self.full.startswith("torch."):
            self.last = self.full.rpartition(".")[2]  # by whatever name it was imported
        self.args = with_views(run, call, [run.value(a) for a in call.args])
        self.keywords = {k.arg: run.value(k.value) for k in call.keywords}

    def value(self) -> Value:
        func, run = self.call.func, self.run
        everything = [*self.args, *self.keywords.values()]
        if isinstance(func, ast.Attribute) and func.attr in ("log", "log_dict") and is_own(func):
            run.flow.logged += everything
        if isinstance(func, ast.Attribute) and func.attr.endswith("_"):
            keep(run, self.call, func.value, run.joined(everything))  # self.bank.index_copy_(0, y, z)
            refill(run, func.value, func.attr, run.joined(self.args[:1]))
        if isinstance(func, ast.Attribute) and self.full is None and not is_own(func):
            of_it = self._method(func, everything)
            if of_it is not None:
                return of_it
        if self.full in RANDOM_ORDERS:
            return Value(order=True)
        if "vmap" in self.facts.text.text and (found := mapped(run, self.call, self.args)) is not None:
            return self._mixes(found[0]) if found[1] else found[0]
        if self.full in SHUFFLES and self.call.args and isinstance(self.call.args[0], ast.Name) and self.args[0].counts:
            run.env[self.call.args[0].id] = Value(order=True)
        if self.full == "torch.distributions.kl_divergence":
            return run.joined(everything)  # of each sample
        if self.last in AS_TENSORS and self.args and self.args[0].order:
            return self.args[0]  # torch.from_numpy(np.random.permutation(len(x)))
        if self.full is not None and self.full.startswith("torch."):
            return self._operation(self.last, self.args[0] if self.args else run.joined(everything), 1, everything)
        of_batch = run.joined([*everything, *around(run, func)])
        if (self.full or "").startswith("einops.") and of_batch.kind == "batch":
            return self._patterned(of_batch)
        chosen = applied(run, self.call, self.full, self.args) or run_each(run, self.call)
        if chosen is not None:
            return chosen
        if isinstance(func, ast.Name) and (self.full or func.id) in PASSES:
            return passed(run, self.call, func.id, self.args)
        if pairs_up(self.full, everything):
            return self._mixes()
        if self.full in ("numpy.arange", "numpy.linspace"):
            return numbered(self.call, self.last, everything)
        if bends(self.full or self.last, of_batch.kind):
            return replace(REDUCED, bent=self.call)  # math.sqrt(loss), max(losses), f1_score(y, z.argmax(1))
        if of_batch.kind == "plain" or (isinstance(func, ast.Name) and func.id in NO_VALUES):
            return PLAIN
        return self._other(of_batch)

    def _method(self, func: ast.Attribute, everything: list[Value]) -> Value | None:
        """A method of a value of the step; None where the value says nothing of it."""
        run = self.run
        owner = run.value(func.value)
        if self.last in ("append", "extend") and groups(run, func.value, everything):
            return self._mixes()
        if owner.order or owner.counts or owner.places or owner.alike:
            if self.last in SAME_ORDER:
                return owner
            if self.last in OTHER_ORDER:
                return Value(order=True)  # torch.arange(len(x)).flip(0)
            if (owner.places or owner.alike) and not meets(self.last.rstrip("_"), [owner, *everything]):
                return carried(self.last, owner)
        if meets(self.last.rstrip("_"), [owner, *everything]):
            return self._mixes(run.joined([owner, *everything]))
        if self._adds_to(owner.kind == "batch"):
            return self._mixes()
        if owner.kind == "batch" or owner.kind == "reduced":
            return self._operation(self.last, owner, 0, everything)
        if self.last in ALIKE_ALONE:
            return owner  # self.alpha.type_as(x)
        if self.last in ("append", "extend") and isinstance(func.value, ast.Name):
            run.env[func.value.id] = run.held(everything)
            return PLAIN
        return None

    def _patterned(self, of_batch: Value) -> Value:
        """`rearrange(x, "b t d -> (b t) d")`"""
        if self.last == "einsum":
            return self._product("einsum", of_batch, 1)
        text = text_of(self.run, self.call)
        if self.last not in ("rearrange", "reduce", "repeat") or text is None or not self.args:
            return self._by_name(self.last, of_batch)
        return rearranged(self.run, self.call, self.args[0], text)

    def _adds_to(self, per_sample: bool) -> bool:
        """`sums.index_add_(0, y, z)`: what is not of the samples is given theirs, by classes or the like."""
        by_index = self.last.rstrip("_") in BY_INDEX - {"gather"} and not per_sample
        return by_index and self._dims(0) == [0] and any(v.kind == "batch" for v in self.args)

    def _mixes(self, result: Value = REDUCED) -> Value:
        self.run.flow.mixes.append(self.call)
        return result

    # -- functions of the file, modules and what is not known -------------------------------------------------

    def _other(self, of_batch: Value) -> Value:
        func, mixing = self.call.func, self.run.mixing
        target = target_of(self.run, self.call) if of_batch.kind != "plain" else None
        if target is not None:
            f, holder = target.f, target.holder
            names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
            names = names[1:] if holder is not None and not is_static(f) else names
            names = names[len(target.first) :]
            given = {**self.given_to(names), **{k: v for k, v in self.keywords.items() if k}}
            if f.args.vararg is not None:
                given[f.args.vararg.arg] = self.run.held(self.args[len(names) :])
            if holder is None and self.facts.scopes.scope_of(f) is not self.facts.scopes.module:
                given = {**self.run.env, **given}  # a function in a function reads what that has
            inside = mixing.flow(f, given, holder, constants(self.call, f, names) | target.keywords)
            if mixing.networks is not None and holder is not None:
                inside.mixes[:] = mixing.networks.mixing(holder, inside.mixes)
            if inside.decided:
                self.run.flow.decided.setdefault(self.call, next(iter(inside.decided.values())))
            if inside.mixes:
                self.run.flow.within[self.call] = inside.within.get(inside.mixes[0], inside.mixes[0])
                return self._mixes(self.run.joined(inside.returned) if inside.returned else REDUCED)
            found = self.run.joined(inside.returned) if inside.returned else of_batch
            for bent in found.all_bent():
                self.run.flow.within[self.call] = inside.within.get(bent, bent)
            return found.bent_by(self.call)
        follows = (partial(function_applied, of_batch=of_batch), followed_there, one_of_several, handed_on)
        for follow in (*follows, made_by_functions):
            if (there := follow(self)) is not None:
                return there
        made = makers(self.run, func)
        if made:
            return self._made_module(made[0], of_batch, made)
        return self._by_name(self.full or self.last, of_batch)

    def given_to(self, names: list[str]) -> dict[str, Value]:
        """What the parameters of a function are given; those of `f(*net(x))` the parts of what it gives."""
        given: dict[str, Value] = {}
        for i, (a, v) in enumerate(zip(self.call.args, self.args, strict=False)):
            if isinstance(a, ast.Starred):
                parts = ((name, v.item(at)) for at, name in enumerate(names[i:]))
                return given | {name: replace(v, holds=False) if part is None else part for name, part in parts}
            if i < len(names):
                given[names[i]] = v
        return given

    def _made_module(self, made: ast.Call, of_batch: Value, others: list[ast.Call]) -> Value:
        """`self.criterion = nn.CrossEntropyLoss()` called."""
        full = self.facts.names.resolve(made.func) or spelled(made.func)
        if full == "functools.partial" and made.args:
            full = self.facts.names.resolve(made.args[0]) or spelled(made.args[0])
        kind = full.rpartition(".")[2]
        if full == "torch.nn.Sequential" and all(isinstance(part, ast.Call) for part in made.args):
            networks = self.run.mixing.networks
            for part in made.args:
                if networks is not None and networks.called(part) is not None:
                    of_batch = as_if(self.run, self.call, ast.Call(part, self.call.args, self.call.keywords))
                else:
                    of_batch = self._made_module(part, of_batch, [])  # type: ignore[arg-type]
            return of_batch
        if kind in ("Softmax", "LogSoftmax", "Softmin") and of_batch.kind == "batch":
            return self._mixes(of_batch) if of_batch.dim in self._made_with_dim(made) else of_batch
        if kind in ("CosineSimilarity", "PairwiseDistance") and len(self.args) > 1:
            found = self.run.combine(self.call, self.args[0], self.args[1])
            if kind == "PairwiseDistance":
                return distance(made, found)
            return self._mixes(found) if found.kind == "batch" and found.dim in self._made_with_dim(made) else found
        if full in PER_SAMPLE_LOSS:
            return REDUCED
        if is_separate(made):
            return replace(of_batch, flat=kind in OF_A_SAMPLE)
        series = self.args[0] if self.args else of_batch
        if reads_as_series(self.facts, made, series) and (series.straight or self.run.mixing.networks is None):
            self._mixes()  # in a network the samples may be in another dimension by then
        found = self._by_name(full, of_batch, [made, *others])
        layer = found.loose and full.startswith("torch.nn.")
        return layered(self.facts, made, of_batch, found) if layer else found

    def _made_with_dim(self, made: ast.Call) -> list[int]:
        dim = argument_at(made, "dim", 0)
        return numbers(self.run.constant(dim)) if dim is not None else []

    def _by_name(self, name: str, of_batch: Value, made: list[ast.Call] | None = None) -> Value:
        last = name.rpartition(".")[2]
        if steps_by_error(name, self.call):
            return self._mixes(of_batch) if of_batch.kind == "batch" else of_batch
        if brings_together(name):
            return self._mixes() if of_batch.kind == "batch" else of_batch
        if MIXUP.search(last) and not LOSS.search(last) and of_batch.kind == "batch":
            return self._mixes(replace(of_batch, holds=False))
        if LOSS.search(last):
            return loss_of(self.run, self.call, made or [], [*self.args, *self.keywords.values()])
        host = of_batch.host and not is_own(self.call.func)
        of_batch = replace(of_batch, holds=False, rank=0, apart=False, own="", last=False, straight=False)
        return replace(of_batch, loose=True, host=host)

    # -- torch's own operations --------------------------------------------------------------------------------

    def _operation(self, name: str, of: Value, offset: int, everything: list[Value]) -> Value:
        name = name.rstrip("_") if name not in KEEPS_SHAPE else name
        if name in SIZES or name in ("randperm", "arange"):
            at = numbers(self.call.args[offset]) if name == "size" and len(self.call.args) > offset else []
            sized = of.kind == "batch" and not of.holds and at == [of.dim]
            if name == "arange" and len(self.call.args) == 3 and any(v.counts for v in everything):
                return Value(order=True)  # torch.arange(len(x) - 1, -1, -1)
            return numbered(self.call, name, everything) if name == "arange" else replace(PLAIN, counts=sized)
        if name == "scaled_dot_product_attention" and of.rows:
            return self._mixes(of)
        if name in ALIKE and (found := alike(self.run, self.call)) is not None:
            return found
        if name in SPACED:
            return numbered(self.call, name, everything)
        if offset and meets(name, everything):
            return self._mixes(self.run.joined(everything))
        if self.full == "torch.autograd.grad":
            inputs = self.keywords.get("inputs", self.args[1] if len(self.args) > 1 else PLAIN)
            of_parameters = inputs.kind == "plain" and self.run.joined(self.args[:1]).kind != "plain"
            return REDUCED if of_parameters else self.run.held([inputs])
        if name == "batch_norm" and of.kind == "batch" and normalises_by_batch(self.call):
            return self._mixes(of)
        if name in JOINS or name in ("stack", "hstack"):
            return self._joins(name, of)
        if name in PAIRS or name in PRODUCTS or name == "einsum":
            return self._product(name, of, offset)
        own = of.kind == "batch"
        if not own:
            of = self.run.joined([of, *everything])
        if of.kind == "reduced" and name in BENDS | CHOOSES:
            squares = name == "square" or (name == "pow" and numbers(self.call.args[-1]) == [2])
            return REDUCED if of.root and squares else replace(of, bent=self.call, root=False)
        if of.kind == "reduced" and name in TIMES | OVER and (factors := [of, *self.args][offset:])[1:]:
            by = ast.Mult() if name in TIMES else ast.Div()
            return self.run.combine(self.call, factors[0], factors[1], by)
        if of.kind != "batch":
            return carried(name, of)
        return self._of_batch(name, of, offset, own, everything)

    def _of_batch(self, name: str, of: Value, offset: int, own: bool, everything: list[Value]) -> Value:
        """An operation of torch's on what holds the samples; `own`: its method, or given it first."""
        others = [v for v in everything if v.kind == "batch" and not v.order]
        if name in TO_HOST:
            return replace(of, host=True)
        if name == "scaled_dot_product_attention" and of.rank == 2:
            return self._mixes(of)  # of matrices: each sample attends to the others
        if name in DECOMPOSED and not of.holds:
            return self._of_matrices(of, REDUCED)
        if name in ALWAYS_MIXES or (own and name in BY_INDEX and self._dims(offset) == [of.dim]):
            return self._mixes(of)
        if name in ADDED_PRODUCTS:
            return REDUCED
        if name == "renorm":  # which makes each slice along a dimension shorter by itself
            return of if self._dims(1 + offset) in (None, [of.dim]) else self._mixes(of)
        if name in TRIANGLES and not of.holds:
            return self._of_matrices(of, of)
        if name in PICKS:
            return self._picked(name, of, offset)
        if name == "cosine_similarity":
            for other in others:
                of = self.run.combine(self.call, of, other)
            return self._mixes() if self._dims(1 + offset) == [of.dim] else of
        if name == "pairwise_distance":
            for other in others:
                of = self.run.combine(self.call, of, other)
            return distance(self.call, of)
        if name in KEEPS_SHAPE or name in REDUCES:
            return self._along(name, of, offset)
        if name in PARTS:
            return self._parts(name, of, offset)
        if (moved := moved_by(self.run, self.call, name, of, offset)) is not None:
            return replace(moved, straight=moved.straight and self._stands(name, offset))
        if LOSS.search(name) and offset:
            if is_separate(self.call):
                by_place(self.run, self.call, everything)
                return replace(of, flat=name in OF_A_SAMPLE)
            return loss_of(self.run, self.call, [], everything)
        for other in others:
            of = self.run.combine(self.call, of, other)
        return of

    def _stands(self, name: str, offset: int) -> bool:
        """Whether the samples are where they are said to be: `x.view(a, b, -1)` may have them anywhere."""
        first = next(iter(self.call.args[offset:]), None)
        counted = first is not None and self.run.value(first).counts
        return name in (*SWAPS, "permute", "t", "unsqueeze", "squeeze") or (name in ("view", "reshape") and counted)

    def _picked(self, name: str, of: Value, offset: int) -> Value:
        """Some of the values; along another dimension than the samples' there are as many samples as before."""
        along_another = name in ALONG and self._dims(offset) not in (None, [of.dim])
        if not along_another and any(v.order for v in self.args):
            return self._mixes(of)  # x.index_select(0, torch.randperm(n))
        return of if along_another else replace(of, picked=True)

    def _dims(self, place: int) -> list[int] | None:
        """The numbers given for `dim`; None where none is given, or where it is no number (`torch.max(a, b)`)."""
        given = next((k.value for k in self.call.keywords if k.arg in ("dim", "dims", "axis")), None)
        spread = [held(self.run, k.value) for k in self.call.keywords if k.arg is None]
        given = given or next((v for d in spread if d is not None and (v := entry(d, "dim")) is not None), None)
        if given is None and len(self.call.args) > place:
            given = self.call.args[place]
        return None if given is None else (numbers(self.run.constant(given)) or _all_from(given) or None)

    def _is_told(self, place: int) -> bool:
        """Whether anything is given for `dim`."""
        return len(self.call.args) > place or any(k.arg in ("dim", "dims") for k in self.call.keywords)

    def _along(self, name: str, of: Value, offset: int) -> Value:
        found = self._along_dimension(name, of, offset)
        given = self._dims(KEEPS_SHAPE.get(name, REDUCES.get(name, 0)) + offset) is not None
        paired = PAIRED.get(name) == "always" or (name in PAIRED and given)
        return replace(found, holds=True) if paired and found.kind == "batch" else found

    def _of_matrices(self, of: Value, mixed: Value) -> Value:
        """Of a matrix a sample these are its own; the rows of one matrix of samples they bring together."""
        if of.rank == 2:
            return self._mixes(mixed)
        if of.dim == 0 and not of.rank and not of.apart:
            self.run.flow.may_mix.append(self.call)
        return of

    def _counted(self, dims: list[int] | None, of: Value) -> list[int] | None:
        """Dimensions counted from the end, by their places where the rank shows."""
        if dims is None or of.holds:
            return dims
        if of.rank == 2:
            return [d + 2 if d < 0 else d for d in dims]
        if of.last:
            return [of.dim if d == -1 else d for d in dims]
        images = {-1, -2} <= set(dims)  # of two dimensions both would be named by none
        if of.dim == 0 and not of.rank and not of.apart and any(d < -1 for d in dims) and not images:
            self.run.flow.may_mix.append(self.call)
        return dims

    def _along_dimension(self, name: str, of: Value, offset: int) -> Value:
        place = KEEPS_SHAPE.get(name, REDUCES.get(name, 0)) + offset
        dims = self._counted(self._dims(place), of)
        if name == "roll" and not of.holds and not self._is_told(place):
            return self._mixes(of)  # of all values as one row
        if of.vector and not (of.rank or of.flat or of.holds) and (dims == [-1] or (dims is None and name in ORDERS)):
            self.run.flow.may_mix.append(self.call)  # x.sum(1).softmax(-1): of two dimensions one is left
        if (
            name in ("topk", "kthvalue")
            and dims is None
            and not of.holds
            and by_their_number(self.run, self.call, offset)
        ):
            return self._mixes(of)
        if of.flat:
            if name in LAST_BY_DEFAULT or name in ORDERS:
                return self._mixes(of)
            dims = (
                None if dims in ([0], [-1]) and name in REDUCES else [0 if d == -1 else d for d in dims or []] or None
            )
        if name in KEEPS_SHAPE:
            if name == "normalize" and dims is None:
                dims = [1]
            if dims is None and name in ORDERS and not of.rank and of.dim == 0:
                return replace(of, sorts=self.call)
            return self._mixes(of) if dims is not None and of.dim in dims else of
        if dims is None:
            if len(self.call.args) > place and name in ("max", "min"):
                other = self.args[place]
                return self.run.combine(self.call, of, other) if other.kind == "batch" else of
            if name in LAST_BY_DEFAULT or of.holds:
                if of.vector and not of.rank and not of.holds:
                    self.run.flow.may_mix.append(self.call)  # x.sum(1).topk(3)
                return of
            if name in ("norm", "vector_norm"):
                return self._norm(offset)
            parts = name in NOT_ADDED_UP or (of.picked and name in ("mean", "nanmean"))  # l[mask].mean()
            return self._mixes() if parts else REDUCED
        if of.dim in dims:
            return REDUCED if of.vector and name in ("mean", "sum") else self._mixes()
        kept = any(k.arg == "keepdim" and not is_false(k.value) for k in self.call.keywords)
        vector = of.dim == 0 and (1 in dims or -1 in dims)
        left = of.dim - sum(0 <= d < of.dim for d in dims)
        flat, apart = vector and of.rank == 2, of.apart and of.dim + 1 not in dims
        found = replace(of, dim=left, vector=vector, flat=flat, rank=max(of.rank - 1, 0), apart=apart)
        return of if kept else found

    def _norm(self, offset: int) -> Value:
        """Of everything: a sum with p=1, the root of one with 2."""
        order = next((k.value for k in self.call.keywords if k.arg in ("p", "ord")), None)
        if order is None and len(self.call.args) > offset:
            order = self.call.args[offset]
        frobenius = isinstance(order, ast.Constant) and order.value == "fro"
        p = [2] if order is None or frobenius else numbers(order)
        return REDUCED if p == [1] else replace(REDUCED, bent=self.call, root=p == [2])

    def _joins(self, name: str, of: Value) -> Value:
        dims = self._dims(1) or [0]
        if of.kind != "batch":
            return of
        listed = self.call.args[0] if self.call.args else None
        if name == "stack":
            return replace(of, dim=of.dim + (0 <= dims[0] <= of.dim), holds=False, rank=of.rank and 3, width="")
        if name == "hstack" or dims[0] != of.dim:
            return replace(of, holds=False)
        if not isinstance(listed, (ast.List, ast.Tuple)) or any(isinstance(x, ast.Starred) for x in listed.elts):
            listed = one_each(listed)
            name = listed.id if isinstance(listed, ast.Name) and of.views == 1 else ""
            return replace(of, views=0, holds=False, listed=name)
        return replace(of, views=len(listed.elts) if of.views == 1 else 0, holds=False)

    def _parts(self, name: str, of: Value, offset: int) -> Value:
        dims = self._dims(PARTS[name] + offset) or [0]
        if dims[0] != of.dim:
            gone = name == "unbind" and 0 <= dims[0] < of.dim
            return replace(of, holds=True, dim=of.dim - gone)
        if of.views == 1:
            return self._mixes(replace(of, holds=True))  # halves of a batch are other pairs than those of its parts
        return replace(of, views=1, holds=True)

    def _product(self, name: str, of: Value, offset: int) -> Value:
        given = zip(self.args, self.call.args, strict=True)
        operands = [v for v, a in given if not isinstance(a, ast.Constant) and as_text(self.run, a) is None]
        operands = operands if name == "einsum" else ([of] if not offset else []) + self.args
        tainted = [v for v in operands if v.kind == "batch"]
        if name == "einsum":
            found, mixes = contracted(self.run, self.call, operands)
            return self._mixes(found) if mixes else found
        if name in PAIRS:
            shown = self.run.expects(self.call) == 3 or any(v.rank == 3 for v in tainted)  # a matrix a sample
            each = shown or all(v.apart and v.dim == 0 and not v.vector and not v.flat for v in tainted)
            return self._mixes(tainted[0]) if len(tainted) > 1 and not each else self.run.joined(operands)
        sources = ([] if offset else [getattr(self.call.func, "value", self.call)]) + self.call.args
        if name == "addmm":
            operands, sources = operands[1:], sources[1:]
        if len(operands) < 2:
            return self.run.joined(operands)
        left, right = operands[0], operands[1]
        if (name in ROWS or (name == "bmm" and left.dim == 1)) and len(tainted) > 1:
            return self._mixes(left)
        return left if name == "bmm" else self.run.product(self.call, left, right, sources[0])


def _all_from(e: ast.expr) -> list[int]:
    """The dimensions of `tuple(range(1, x.dim()))`, as many as images and their like have."""
    counted = e.args[0] if isinstance(e, ast.Call) and spelled(e.func) in ("tuple", "list") and e.args else e
    if not isinstance(counted, ast.Call) or spelled(counted.func) != "range" or len(counted.args) != 2:
        return []
    first = numbers(counted.args[0])
    return list(range(first[0], first[0] + MANY)) if first and first[0] >= 0 else []
