"""What is known of a value in a step, and of a function that values were followed through."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .nodes import walk


@dataclass(frozen=True)
class Value:
    """What is known of a value: `dim` counts the samples (None where no dimension does any more).

    `views` samples of each stand one view after another (0: how many is not known), as after `torch.cat([a, b])`.
    """

    kind: str = "plain"  # plain: not of the batch; batch: a value per sample; reduced: of all samples together
    dim: int = 0
    views: int = 1
    holds: bool = False  # a tuple, list or dictionary of such values
    order: bool = False  # a random order, as of randperm
    vector: bool = False  # one number per sample, as after `.sum(1)`: its mean is that of the parts, weighted
    flat: bool = False  # no other dimension, as after `.view(-1)`: its last is its first
    listed: str = ""  # the name of the list that the views came from, where their number is not known
    picked: bool = False  # how many samples there are goes by their values, or by their places
    cut: str = ""  # the slice that was taken of the samples: `x[1:]`
    apart: bool = False  # a new dimension stands behind that of the samples: `x[:, None]`
    rank: int = 0  # how many dimensions it has, where that shows: 2 after `.flatten(1)`, 3 for three and more
    last: bool = False  # `dim` is the last dimension, as after `x.permute(1, 2, 0)`
    turned: bool = False  # one tensor, by the name that a permutation of its dimensions was given
    rows: bool = False  # the samples are the rows of matrices, as after `x.permute(2, 3, 1, 0, 4)`
    merged: bool = False  # more than the samples are counted along `dim`, as after `x.flatten(0, 1)`
    width: str = ""  # the size of the last dimension, where the layer that gave it shows: `5` of nn.Linear(6, 5)
    own: str = ""  # the source of what this is the transpose of, by the last two dimensions, whichever those are
    counts: bool = False  # plain: how many samples there are, or the number of one
    met: ast.AST | None = None  # a product with a transpose, by the last two dimensions, of another value
    bent: ast.AST | None = None  # reduced: what was made of a mean that is not a mean of the parts', as its root
    root: bool = False  # reduced: a norm, of which the square is a sum again
    sorts: ast.AST | None = None  # the places of a sort along the last dimension, which may be the samples'
    host: bool = False  # no tensor, or made of what is none: `y.tolist()`
    places: str = ""  # plain: the numbers of the samples, one each; what batch_numbers.py says of them
    alike: bool = False  # plain: one number a sample, the same for each, as of `torch.ones(len(x))`
    buffer: bool = False  # plain: a buffer of a module, by whatever name
    loose: bool = False  # what a module or an unknown function gave: a tensor, or several
    straight: bool = False  # its dimensions stand as those of the loop's batch do, the samples' first
    items: tuple[tuple[object, Value], ...] = ()  # of what holds several, where they are written out: by key or place

    def is_per_sample(self) -> bool:
        """Whether it holds values along the samples, and nothing else."""
        if self.holds and self.items:
            return all(v.is_per_sample() and v.views == self.views for _, v in self.items)
        return self.kind == "batch" and self.dim == 0 and not self.host

    def has_names(self) -> bool:
        """Whether it is a dictionary whose values are known by their keys."""
        return self.holds and any(isinstance(k, str) for k, _ in self.items)

    def all_bent(self) -> list[ast.AST]:
        """What was made of means in it, or in what it holds."""
        own = [self.bent] if self.bent is not None else []
        return [*own, *(n for _, v in self.items for n in v.all_bent())]

    def of_places(self) -> Value:
        """Without what has a name: of a dictionary the loss alone counts, of a tuple any may be one."""
        return replace(self, items=tuple((k, v) for k, v in self.items if isinstance(k, int)))

    def bent_by(self, call: ast.AST) -> Value:
        """The same with all of that in a call."""
        items = tuple((k, v.bent_by(call)) for k, v in self.items)
        return replace(self, items=items, bent=None if self.bent is None else call)

    def item(self, key: object) -> Value | None:
        return dict(self.items).get(key) if self.holds else None


def replace(value: Value, **changes: Any) -> Value:
    """What `dataclasses.replace` makes of a value, which would ask for each of its thirty fields.

    What holds nothing any more has no items: kept, those of a network of joined branches were as many as its paths.
    """
    if changes.get("holds") is False:
        changes["items"] = ()
    new = object.__new__(Value)
    vars(new).update(vars(value), **changes)
    return new


PLAIN, REDUCED, BATCH = Value(), Value("reduced"), Value("batch")
BUFFER = Value(buffer=True)


@dataclass
class Flow:
    """A function followed from its batch on: the operations that mix, and what each name is after each statement."""

    mixes: list[ast.AST] = field(default_factory=list)
    kept: list[ast.AST] = field(default_factory=list)  # of those, what gives a buffer values of the samples
    decided: dict[ast.AST, ast.AST] = field(default_factory=dict)  # what is done where a test asks for all samples
    may_mix: list[ast.AST] = field(default_factory=list)  # where the number of dimensions, which does not show, decides
    returned: list[Value] = field(default_factory=list)
    logged: list[Value] = field(default_factory=list)
    within: dict[ast.AST, ast.AST] = field(default_factory=dict)  # of a call that mixes, the operation that does
    there: dict[ast.AST, str] = field(default_factory=dict)  # likewise one in another file, as a text
    after: dict[ast.stmt, dict[str, Value]] = field(default_factory=dict)

    def first(self, body: list[ast.stmt], mixes: list[ast.AST] | None = None) -> int | None:
        """The place of the first statement of a block that mixes."""
        inside = set(self.mixes if mixes is None else mixes)
        return next((i for i, s in enumerate(body) if any(n in inside for n in walk(s))), None)
