"""torch's draws for the whole batch, of which a rank keeps its rows.

Two modes, so that a step pays little: the outer one sees torch's functions and methods, and lets those that may draw
run under the inner one, which sees the operators below them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .rows import Place, Rows

FACTORIES = {"rand": 0, "randn": 0, "randint": -1, "normal": 2}  # the place of `size`; the last one of randint's
IN_PLACE = {
    *("bernoulli_", "normal_", "uniform_", "exponential_", "random_", "log_normal_", "cauchy_", "geometric_"),
}  # fmt: skip
OF_TENSORS = {
    *("rand_like", "randn_like", "randint_like", "bernoulli", "normal", "multinomial", "native_dropout"),
}  # fmt: skip
UNEVEN = {
    *("poisson", "binomial", "rrelu_with_noise", "rrelu_with_noise_", "_standard_gamma", "_sample_dirichlet"),
}  # fmt: skip  # how much these draw depends on values
MAY_DRAW = {
    *(*FACTORIES, *IN_PLACE, *OF_TENSORS, *UNEVEN, "randperm"),
    *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "alpha_dropout_"),
    *("feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"),
    *("gumbel_softmax", "rrelu", "rrelu_", "multi_head_attention_forward", "scaled_dot_product_attention"),
    *("lstm", "gru", "rnn_tanh", "rnn_relu", "_transformer_encoder_layer_fwd"),
}  # fmt: skip
BACKWARD = {"gradient", "retain_graph", "create_graph", "inputs"}  # what Tensor.backward hands on
DIFFERENTIATE = ("backward", "grad")
LARGEST = 2**28  # numbers drawn at once for a whole batch; what needs more is drawn for the rank's own rows
WATCHED = {*MAY_DRAW, *DIFFERENTIATE}


class WholeDraws(TorchFunctionMode):
    """Functions that may draw do so for the whole batch; `fixed`: shapes of the module's parameters."""

    def __init__(self, rows: Rows, rank: int, fixed: set[torch.Size]):
        super().__init__()
        self.fixed, self.operators = fixed, _WholeOperators(rows, rank)
        self.again = False  # an activation checkpoint draws the step's numbers once more, in backward

    def __torch_function__(self, func: Callable, types: Any, args: Sequence = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if not kwargs and name not in WATCHED:  # most of them
            return func(*args)
        kwargs = kwargs or {}
        if kwargs.keys() >= BACKWARD:  # a tensor's method, which who watches it may have replaced: not a second time
            func, name, args = torch.autograd.backward, "backward", (args[0], kwargs["gradient"])
            kwargs = {key: value for key, value in kwargs.items() if key != "gradient"}
        if name in DIFFERENTIATE:
            whole = self.again
        elif whole := name in MAY_DRAW and not self.of_parameters(args):
            self.again = self.again or _drawn_again()
        if not whole:
            return func(*args, **kwargs)
        with self.operators as operators:
            operators.heads = name == "multi_head_attention_forward"
            return func(*args, **kwargs)

    def __enter__(self) -> Any:
        self.again = False
        return super().__enter__()

    def of_parameters(self, args: Sequence) -> bool:
        """Noise for weights, not for samples: a parameter, or its like where nothing is differentiated."""
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is None:
            return False
        return isinstance(first, torch.nn.Parameter) or (not torch.is_grad_enabled() and first.shape in self.fixed)


class _WholeOperators(TorchDispatchMode):
    def __init__(self, rows: Rows, rank: int):
        super().__init__()
        self.rows, self.rank, self.heads = rows, rank, False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here; torch's guard against that costs as much as all else

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in FACTORIES and not isinstance(args[0], torch.Tensor):
            return self.made(func, args, kwargs, FACTORIES[name])
        if name in IN_PLACE:
            drawn = self.like(func, args, kwargs)
            return args[0] if drawn is args[0] else args[0].copy_(drawn)
        if name in OF_TENSORS:
            return self.like(func, args, kwargs)
        if name == "randperm":
            return self.permutation(func, args, kwargs)
        if name in UNEVEN and self.rows.place(args[0].shape, flat=True):
            with self.apart():
                return func(*args, **kwargs)
        if _drops(name, args, kwargs):
            with self.apart():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    def made(self, func: Any, args: Sequence, kwargs: Any, at: int) -> Any:
        """A new tensor of a size that was given."""
        at = at % len(args) if at < 0 else at
        place = self.rows.place(args[at]) if len(args) > at else None
        if place is None:
            return func(*args, **kwargs)
        shape = place.shape(args[at])
        if _numbers(shape) > LARGEST:
            with self.apart():
                return func(*args, **kwargs)
        return _kept(func(*args[:at], shape, *args[at + 1 :], **kwargs), place)

    def like(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """What is drawn for each element of a tensor, or for each row."""
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if any(tensor.is_nested or tensor.layout is not torch.strided for tensor in tensors):
            return func(*args, **kwargs)
        shape = max((tensor.shape for tensor in tensors), key=len)
        place = self.rows.place(shape, True, self.heads)
        if place is None:
            return func(*args, **kwargs)
        if _numbers(place.shape(shape)) > LARGEST:
            with self.apart():
                return func(*args, **kwargs)
        fill = len(tensors) > 1 or func.overloadpacket.__name__ not in IN_PLACE  # does it read the values?
        whole = [
            _widened(arg, place, fill) if isinstance(arg, torch.Tensor) and arg.shape == shape else arg for arg in args
        ]
        drawn = func(*whole, **kwargs)
        return tuple(_kept(each, place) for each in drawn) if isinstance(drawn, tuple) else _kept(drawn, place)

    def permutation(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """An order of this rank's samples: that of its part of one for the whole batch."""
        place = self.rows.place(args[:1])
        if place is None:
            return func(*args, **kwargs)
        return _kept(func(place.whole, *args[1:], **kwargs), place).argsort()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is drawn inside differs by rank, and leaves the stream where one draw leaves it."""
        seed = int(torch.empty((), dtype=torch.int64).random_())
        devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(seed + self.rank)
            yield


def _drawn_again() -> bool:
    """Is this inside of an activation checkpoint, perhaps? One runs without gradients, or saves nothing."""
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return not torch.is_grad_enabled() or hooks is None or hooks(False) is not None


def _numbers(shape: Sequence[int]) -> int:
    return torch.Size(shape).numel()


def _drops(name: str, args: Sequence, kwargs: Any) -> bool:
    """A fused kernel that draws inside: attention or a recurrent network on a GPU."""
    fused = "dot_product" in name and "attention" in name and not name.endswith("backward")
    given = kwargs.get("dropout_p", args[3] if len(args) > 3 and isinstance(args[3], float) else 0.0)
    return (fused and bool(given)) or name in ("_cudnn_rnn", "miopen_rnn")


def _widened(own: torch.Tensor, place: Place, fill: bool) -> torch.Tensor:
    """As one process would hold it, in the same order of memory; with `fill` this rank's rows, and copies of its first
    around them.
    """
    shape = place.shape(own.shape)
    order = sorted(range(own.dim()), key=own.stride, reverse=True)
    whole = own.new_empty([shape[dim] for dim in order])
    if order != list(range(own.dim())):
        whole = whole.permute([order.index(dim) for dim in range(own.dim())])
    if fill:
        whole.copy_(own.narrow(place.dim, 0, 1).expand(shape))
        whole.narrow(place.dim, place.start, place.stop - place.start).copy_(own)
    return whole


def _kept(whole: torch.Tensor, place: Place) -> torch.Tensor:
    """This rank's rows, in memory of their own."""
    return whole.narrow(place.dim, place.start, place.stop - place.start).clone()
