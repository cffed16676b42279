"""NumPy's draws for the whole batch, of which a rank keeps its rows."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .readings import MIXED
from .rows import Rows

SIZE_AT = {
    "normal": 2, "uniform": 2, "randint": 2, "laplace": 2, "logistic": 2, "gumbel": 2, "lognormal": 2, "beta": 2,
    "binomial": 2, "gamma": 2, "exponential": 1, "poisson": 1, "standard_normal": 0, "random": 0, "random_sample": 0,
    "standard_exponential": 0, "ranf": 0, "sample": 0, "choice": 1,
}  # fmt: skip
BY_DIMENSIONS = ("rand", "randn")
ORDERS = ("permutation", "shuffle")


class WholeArrays:
    """Between `open` and `close` what a step calls of `numpy.random` draws for the whole batch."""

    def __init__(self, rows: Rows, enter: Callable[[], bool]):
        self.rows, self.enter = rows, enter  # `enter` says whether a step runs, which then draws from rank 0's stream
        self.saved: dict[str, Any] = {}

    def open(self) -> None:
        numpy = sys.modules.get("numpy")
        if numpy is None or self.saved:
            return
        for name, at in [*SIZE_AT.items(), *((name, None) for name in BY_DIMENSIONS)]:
            self.saved[name] = function = getattr(numpy.random, name)
            setattr(numpy.random, name, self.whole(function, at))
        for name in ORDERS:
            self.saved[name] = function = getattr(numpy.random, name)
            setattr(numpy.random, name, self.order(function))

    def close(self) -> None:
        for name, function in self.saved.items():
            setattr(sys.modules["numpy"].random, name, function)
        self.saved.clear()

    def whole(self, function: Callable[..., Any], at: int | None) -> Callable[..., Any]:
        """`function`, whose size is its argument number `at`, or all of its arguments."""

        @functools.wraps(function)
        def draw(*args: Any, **kwargs: Any) -> Any:
            if not self.enter():
                return function(*args, **kwargs)
            name = f"numpy.random.{function.__name__}"
            if at is None:
                size: Any = args
            else:
                size = args[at] if len(args) > at else kwargs.get("size")
            shape = (size,) if isinstance(size, int) else size
            given = [*args[:at], *(value for key, value in kwargs.items() if key != "size")]
            if not size:
                self.rows.single(name)
            whole_numbers = isinstance(shape, (tuple, list)) and all(isinstance(n, int) for n in shape)
            arrays = at is not None and any(getattr(value, "shape", ()) for value in given)
            if function.__name__ == "choice":
                arrays = not kwargs.get("replace", args[2] if len(args) > 2 else True)
            place = self.rows.place(shape, name) if whole_numbers and not arrays else None
            if place is None:
                return function(*args, **kwargs)
            if at is None:
                drawn = function(*place.shape(shape))
            elif len(args) > at:
                drawn = function(*args[:at], place.shape(shape), *args[at + 1 :], **kwargs)
            else:
                drawn = function(*args, **{**kwargs, "size": place.shape(shape)})
            numpy = sys.modules["numpy"]
            pieces = [numpy.take(drawn, range(start, start + length), place.dim) for start, length in place.pieces]
            return numpy.concatenate(pieces, place.dim)

        return draw

    def order(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, which puts the samples into an order: only those of this process, which is told."""

        @functools.wraps(function)
        def draw(x: Any) -> Any:
            length = x if isinstance(x, int) else len(x) if hasattr(x, "__len__") else None
            if self.enter() and self.rows.divided and length == self.rows.count:
                self.rows.readings.say(MIXED.format(f"numpy.random.{function.__name__}"))
            return function(x)

        return draw
