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

from ..data.combined import leaves
from .readings import MIXED
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
LAYERS = {"native_dropout", *(name for name in MAY_DRAW if "dropout" in name)}  # what acts on activations
FUSED_RECURRENT = {"_cudnn_rnn": 11, "miopen_rnn": 9}  # where their dropout stands; whether they train follows
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
VIEWS = ("cat", "concat", "concatenate", "repeat")
MOVES = ("transpose", "permute", "movedim", "swapaxes", "swapdims", "moveaxis")
BACKWARD = {"gradient", "retain_graph", "create_graph", "inputs"}  # what Tensor.backward hands on
DIFFERENTIATE = ("backward", "grad")
LARGEST = 2**28  # numbers drawn at once for a whole batch; what needs more is drawn for the rank's own rows
WATCHED = {*MAY_DRAW, *DIFFERENTIATE, *VIEWS, *MOVES}


class WholeDraws(TorchFunctionMode):
    """Functions that may draw do so for the whole batch; `parameters`: the module's."""

    def __init__(self, rows: Rows, rank: int, parameters: Sequence[torch.Tensor]):
        super().__init__()
        self.rows, self.operators = rows, _WholeOperators(rows, rank)
        self.parameters, self.fixed = parameters, {parameter.shape for parameter in parameters}
        self.batch: Any = None  # what the step was given
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
        elif whole := name in MAY_DRAW and not self.of_parameters(name, args):
            self.again = self.again or _drawn_again()
        if not whole:
            made = func(*args, **kwargs)
            if name in VIEWS:
                self.note_views(name, args, kwargs)
            elif name in MOVES and args[0].dim() > 2 and args[0].shape[0] == self.rows.count:
                self.rows.moved = self.rows.moved or made.stride(0) != args[0].stride(0)
            return made
        with self.operators as operators:
            operators.only = 0 if name == "multi_head_attention_forward" else 1 if name in RECURRENT else None
            if name in RECURRENT and _packed(args):
                return operators.own(func, args, kwargs, "of sequences of several lengths")
            return func(*args, **kwargs)

    def note_views(self, name: str, args: Sequence, kwargs: Any) -> None:
        """Views of the batch, one behind the other: `torch.cat([x, y])`, `x.repeat(2, 1)`."""
        if name == "repeat":
            first, times = args[0].shape[:1], args[1] if len(args) > 1 else None
            number = times[0] if isinstance(times, (tuple, list, torch.Size)) and times else times
        else:
            tensors = args[0] if args else kwargs.get("tensors")
            dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
            lengths = {tensor.shape[:1] for tensor in tensors} if isinstance(tensors, (tuple, list)) else set()
            first, number = lengths.pop() if len(lengths) == 1 and dim == 0 else (), len(tensors or ())
        if tuple(first) == (self.rows.count,) and isinstance(number, int) and number > 1:
            self.rows.views.add(number)

    def __enter__(self) -> Any:
        self.again = False
        return super().__enter__()

    def of_parameters(self, name: str, args: Sequence) -> bool:
        """Noise for weights, not samples: a parameter, its gradient, or its like where nothing is differentiated."""
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is None:
            return False
        if isinstance(first, torch.nn.Parameter):
            return True
        if not first.is_nested and first.shape in self.fixed:
            gradients = (p.grad for p in self.parameters if p.grad is not None)
            if any(first.data_ptr() == gradient.data_ptr() for gradient in gradients):
                return True
        if torch.is_grad_enabled() or name in LAYERS or first.shape not in self.fixed:
            return False
        if any(first.shape == leaf.shape for leaf in leaves(self.batch) if isinstance(leaf, torch.Tensor)):
            return any(first.data_ptr() == parameter.data_ptr() for parameter in self.parameters)
        return True


class _WholeOperators(TorchDispatchMode):
    def __init__(self, rows: Rows, rank: int):
        super().__init__()
        self.rows, self.rank = rows, rank
        self.only: int | None = None  # the batch's dimension, where the function has one

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
        if name in UNEVEN:
            return self.uneven(func, args, kwargs)
        if _drops(name, args, kwargs):
            return self.own(func, args, kwargs, "in a kernel of the GPU's own")
        return func(*args, **kwargs)

    def made(self, func: Any, args: Sequence, kwargs: Any, at: int) -> Any:
        """A new tensor of a size that was given."""
        name, at = func.overloadpacket.__name__, at % len(args) if at < 0 else at
        place = self.rows.place(args[at], name) if len(args) > at else None
        if place is None:
            if len(args) > at and _numbers(args[at]) == 1:
                self.rows.single(name)
            return func(*args, **kwargs)
        shape = place.shape(args[at])
        if _numbers(shape) > LARGEST:
            return self.own(func, args, kwargs, "of more numbers than are drawn at once")
        return _kept(func(*args[:at], shape, *args[at + 1 :], **kwargs), place)

    def like(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """What is drawn for each element of a tensor, or for each row."""
        name, tensors = func.overloadpacket.__name__, [arg for arg in args if isinstance(arg, torch.Tensor)]
        if any(tensor.is_nested or tensor.layout is not torch.strided for tensor in tensors):
            return func(*args, **kwargs)
        shape = max((tensor.shape for tensor in tensors), key=len)
        if name == "multinomial" and len(shape) == 1:
            return self.chosen(func, args, kwargs)
        place = self.rows.place(shape, name, True, self.only)
        if place is None:
            if _numbers(shape) == 1:
                self.rows.single(name)
            return func(*args, **kwargs)
        if _numbers(place.shape(shape)) > LARGEST:
            return self.own(func, args, kwargs, "of more numbers than are drawn at once")
        fill = len(tensors) > 1 or name not in IN_PLACE  # does it read the values?
        whole = [
            _widened(arg, place, fill) if isinstance(arg, torch.Tensor) and arg.shape == shape else arg for arg in args
        ]
        drawn = func(*whole, **kwargs)
        return tuple(_kept(each, place) for each in drawn) if isinstance(drawn, tuple) else _kept(drawn, place)

    def chosen(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """Numbers by one row of weights."""
        place = self.rows.place(args[1:2], "multinomial")
        if place is None or not kwargs.get("replacement", args[2] if len(args) > 2 else False):
            return func(*args, **kwargs)
        return _kept(func(args[0], place.whole, *args[2:], **kwargs), place)

    def uneven(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """How much is drawn depends on values: on one and the same for all samples (expanded), or on theirs."""
        name, first = func.overloadpacket.__name__, args[0]
        shape = first.shape[:-1] if name == "_sample_dirichlet" else first.shape  # its last dimension is one draw
        place = self.rows.place(shape, name, True)
        if place is None:
            if _numbers(shape) == 1:
                self.rows.single(name)
            return func(*args, **kwargs)
        same = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.shape == first.shape]
        if place.views > 1 or not all(self.rows.readings.expanded(name, arg, place.dim) for arg in same):
            return self.own(func, args, kwargs, "depending on values")
        wide = place.shape(first.shape)
        whole = [
            arg.narrow(place.dim, 0, 1).expand(wide)
            if isinstance(arg, torch.Tensor) and arg.shape == first.shape
            else arg
            for arg in args
        ]
        return _kept(func(*whole, **kwargs), place)

    def permutation(self, func: Any, args: Sequence, kwargs: Any) -> Any:
        """An order of this rank's samples: that of its part of one for the whole batch."""
        place = self.rows.place(args[:1], "randperm")
        if place is None:
            return func(*args, **kwargs)
        self.rows.readings.say(MIXED.format("randperm"))
        return _kept(func(place.whole, *args[1:], **kwargs), place).argsort()

    def own(self, func: Any, args: Sequence, kwargs: Any, why: str) -> Any:
        """What this rank draws for its own samples."""
        self.rows.readings.say(f"{func.__name__.split('.')[0]}, {why}")
        with self.apart():
            return func(*args, **kwargs)

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
    if name in FUSED_RECURRENT:
        at = FUSED_RECURRENT[name]
        given, train = args[at : at + 2]
        return bool(given and train)
    return fused and bool(given)


def _widened(own: torch.Tensor, place: Place, fill: bool) -> torch.Tensor:
    """As one process would hold it, in the same order of memory; with `fill` this rank's rows, and copies of its first
    around them.
    """
    shape = place.shape(own.shape)
    order = sorted(
        range(own.dim()), key=lambda dim: (own.stride(dim), own.size(dim)), reverse=True
    )  # one sample: inner
    whole = own.new_empty([shape[dim] for dim in order])
    if order != list(range(own.dim())):
        whole = whole.permute([order.index(dim) for dim in range(own.dim())])
    if fill:
        whole.copy_(own.narrow(place.dim, 0, 1).expand(shape))
        _put(own, whole, place)
    return whole


def _put(own: torch.Tensor, whole: torch.Tensor, place: Place) -> None:
    at = 0
    for start, length in place.pieces:
        whole.narrow(place.dim, start, length).copy_(own.narrow(place.dim, at, length))
        at += length


def _kept(whole: torch.Tensor, place: Place) -> torch.Tensor:
    """This rank's rows, in memory of their own."""
    pieces = [whole.narrow(place.dim, start, length) for start, length in place.pieces]
    return pieces[0].clone() if len(pieces) == 1 else torch.cat(pieces, place.dim)


def _packed(args: Sequence) -> bool:
    """Is this a recurrent network over packed sequences that draws? (data, batch sizes, state, weights, ...)"""
    return len(args) > 7 and isinstance(args[3], (tuple, list)) and bool(args[6]) and bool(args[7])
