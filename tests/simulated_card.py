"""A card where there is none: a part of the CPU's memory that tensors have to be moved to, and that nothing mixes.

python tests/simulated_card.py SCRIPT [ARGS...]

runs a script in which CUDA is there, as one card. What it computes is computed by the CPU, so that the numbers are the
CPU's; but where a tensor is, is kept account of, and what raises on a card raises: an operation on tensors of both
places, `.numpy()` of what is on the card, an index that is there for a tensor that is not. Tensors are told apart by
their storage, so that views are where their tensor is.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CARD = torch.device("cuda", 0)
CPU = torch.device("cpu")
# what takes tensors of both places on a real card, too
MIXES = {
    "copy_", "_to_copy", "_local_scalar_dense", "set_", "_foreach_copy_", "lift_fresh", "_foreach_norm", "is_same_size",
    "_has_compatible_shallow_copy_type",
}  # fmt: skip
INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
OF_LENGTHS = {"_pack_padded_sequence", "_pack_padded_sequence_backward"}  # lengths are on the CPU
OF_THE_FIRST = {"copy_", *INDEXES}  # the result is where the first argument is
DOES_NOTHING = ["set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "ipc_collect", "init"]
OF_THE_CARD = {"name": "simulated", "total_memory": 2**34, "major": 8, "minor": 0, "multi_processor_count": 1}
COUNTS = ["memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"]
NEW = ["new_zeros", "new_ones", "new_empty", "new_full"]
_there: dict[int, torch.UntypedStorage] = {}  # the storages on the card; kept, so that no address is given twice
# what autograd makes of nothing, where it takes its tensors to be, which is the CPU: it is where what it meets is
_anywhere: dict[int, torch.UntypedStorage] = {}


def is_there(tensor: torch.Tensor) -> bool:
    key = _key(tensor)
    return key is not None and key in _there


def _key(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # a sparse one, or one of no storage
        return None


def _storages(made: Any) -> dict[int, torch.UntypedStorage]:
    tensors = (t for t in tree_leaves(made) if isinstance(t, torch.Tensor))
    return {key: t.untyped_storage() for t in tensors if (key := _key(t)) is not None}


def _names_card(device: Any) -> bool:
    if isinstance(device, bool) or not isinstance(device, int | str | torch.device):
        return False
    return isinstance(device, int) or torch.device(device).type == "cuda"


class Card(TorchDispatchMode):
    """Keeps account of what is on the card, beneath autograd."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs, name = dict(kwargs or {}), func._schema.name.split("::")[-1]
        asked = kwargs.get("device")
        if asked is not None:
            kwargs["device"] = CPU
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        given = [a for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        if _anywhere and any(is_there(t) for t in given):
            _there.update((key, found) for t in given if (found := _anywhere.pop(key := _key(t), None)) is not None)
        places = [is_there(t) for t in given]
        self._check(name, given, places)
        made = func(*args, **kwargs)
        in_backward = torch._C._current_graph_task_id() != -1
        if in_backward and all(_key(t) in _anywhere for t in given):
            _anywhere.update(_storages(made))
        if name.startswith("new_") and places[:1] == [True]:
            asked = (
                None  # torch itself fills in the device of the tensor, as it sees it; what a script asks for is below
            )
        to_card = (
            _names_card(asked) if asked is not None else places[:1] == [True] if name in OF_THE_FIRST else any(places)
        )
        if to_card:
            placed = made[0] if name in OF_LENGTHS and isinstance(made, tuple) else made
            _there.update(_storages([t for t in tree_leaves(placed) if not any(t is g for g in given)]))
        return made

    @staticmethod
    def _check(name: str, given: list[torch.Tensor], places: list[bool]) -> None:
        if name in OF_LENGTHS:
            if any(places[1:]):
                raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor")
        elif name in INDEXES:
            there = any(p and t.dim() > 0 for t, p in zip(given[1:], places[1:], strict=True))
            if there and not places[0]:
                raise RuntimeError(
                    f"indices should be either on cpu or on the same device as the indexed tensor: {name}"
                )
            if "put" in name and given[-1].dim() > 0 and places[-1] != places[0]:
                raise RuntimeError(f"expected self and value to be on the same device: {name}")
        elif name not in MIXES and any(places) and Card._apart(name, given, places):
            shapes = [(*t.shape, "cuda" if p else "cpu") for t, p in zip(given, places, strict=True)]
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found cuda:0 and cpu: {name} {shapes}"
            )

    @staticmethod
    def _apart(name: str, given: list[torch.Tensor], places: list[bool]) -> bool:
        """Whether one is no number on the CPU, or is to take in what is on the card: `number += tensor`."""
        written = name.endswith("_") and not name.startswith("_foreach") and not places[0]
        return written or any(t.dim() > 0 and not p for t, p in zip(given, places, strict=True))


class _Move(torch.autograd.Function):
    """A copy in the other place, and its gradient back from there."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        ctx.back = CARD if is_there(tensor) else CPU
        return torch.empty_like(tensor, device=device).copy_(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        return moved(gradient, ctx.back), None


def moved(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    return (
        tensor if _names_card(device) == is_there(tensor) else _Move.apply(tensor, CARD if _names_card(device) else CPU)
    )


def install() -> None:
    """From here on there is a card."""
    _tensors()
    _makers()
    _modules()
    _cuda()
    Card().__enter__()


class Type:
    """`torch.cuda.FloatTensor`: called, and given to `.type()`."""

    def __init__(self, name: str) -> None:
        self.of_cpu = getattr(torch, name)
        self.dtype = self.of_cpu.dtype

    def __call__(self, *args: Any) -> torch.Tensor:
        return moved(self.of_cpu(*args), CARD)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and is_there(x) and x.dtype == self.dtype


TYPES = [f"{kind}Tensor" for kind in ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool")]


def _tensors() -> None:
    kind, to, numpy, array = torch.Tensor, torch.Tensor.to, torch.Tensor.numpy, torch.Tensor.__array__
    deepcopy, device, of_type = torch.Tensor.__deepcopy__, torch._C.TensorBase.device, torch.Tensor.type

    def moved_to(self: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        args, where = [*args], options.pop("device", None)
        options.pop("non_blocking", None)
        if args and isinstance(args[0], torch.Tensor):
            where, args[0] = args[0].device, args[0].dtype
        elif args and (isinstance(args[0], str | torch.device | int) or args[0] is None):
            where = args.pop(0)
        args = [a for a in args if not isinstance(a, bool)]
        tensor = self if where is None else moved(self, where)
        return to(tensor, *args, **options) if args or options else tensor

    def typed(self: torch.Tensor, dtype: Any = None, **options: Any) -> Any:
        if dtype is None:
            name: str = of_type(self)
            return name.replace("torch.", "torch.cuda.") if is_there(self) else name
        of_cuda = isinstance(dtype, Type) or (isinstance(dtype, str) and dtype.startswith("torch.cuda."))
        tensor = moved(self, CARD) if of_cuda else self if isinstance(dtype, torch.dtype) else moved(self, CPU)
        if of_cuda:
            dtype = (getattr(torch.cuda, dtype.rsplit(".", 1)[-1]) if isinstance(dtype, str) else dtype).dtype
        return of_type(tensor, dtype)

    def on_host(method: Any) -> Any:
        def asked(self: torch.Tensor, *args: Any, **options: Any) -> Any:
            if is_there(self) and not options.get("force"):
                raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
            return method(self.detach() if options.get("force") else self, *args, **options)

        return asked

    def new(method: Any) -> Any:
        def made(self: torch.Tensor, *args: Any, device: Any = None, **options: Any) -> torch.Tensor:
            return moved(method(self, *args, **options), self.device if device is None else device)

        return made

    def deepcopied(self: torch.Tensor, memo: Any) -> torch.Tensor:
        made = deepcopy(self, memo)
        _there.update(_storages(made) if is_there(self) else {})
        return made

    kind.__deepcopy__ = deepcopied
    for name in NEW:
        setattr(kind, name, new(getattr(kind, name)))
    kind.device = property(lambda self: CARD if is_there(self) else device.__get__(self))  # type: ignore[assignment]
    kind.is_cuda = property(is_there)  # type: ignore[assignment]
    kind.get_device = lambda self: 0 if is_there(self) else -1  # type: ignore[method-assign]
    kind.to = moved_to  # type: ignore[method-assign]
    kind.cuda = lambda self, *_, **__: moved(self, CARD)  # type: ignore[method-assign]
    kind.cpu = lambda self, *_, **__: moved(self, CPU)  # type: ignore[method-assign]
    kind.type_as = lambda self, other: to(moved(self, other.device), other.dtype)  # type: ignore[method-assign]
    kind.numpy, kind.__array__ = on_host(numpy), on_host(array)  # type: ignore[method-assign]
    kind.type = typed  # type: ignore[method-assign,assignment]
    kind.pin_memory = lambda self, *_, **__: self  # type: ignore[method-assign]


def _makers() -> None:
    """What is made of a list or an array: torch asks the device for memory there, beneath what a dispatch mode sees."""

    def placed(maker: Any) -> Any:
        def made(
            data: Any, *args: Any, device: Any = None, requires_grad: bool = False, **options: Any
        ) -> torch.Tensor:
            if device is None:  # a tensor that is given or, by `new_tensor`, asked tells the place
                device = data.device if isinstance(data, torch.Tensor) else CPU
            tensor = moved(maker(data, *args, **options), device)
            return tensor.requires_grad_() if requires_grad else tensor

        return made

    padded = torch._VF._pad_packed_sequence

    def padded_there(data: torch.Tensor, *args: Any, **options: Any) -> Any:
        out, lengths = padded(data, *args, **options)  # it fills in one that it makes by the place of `data`
        _there.update(_storages(out) if is_there(data) else {})
        return out, lengths

    torch._VF._pad_packed_sequence = padded_there
    hot = torch.nn.functional.one_hot
    torch.nn.functional.one_hot = lambda x, *a, **k: moved(hot(moved(x, CPU), *a, **k), x.device)
    torch.tensor, torch.as_tensor = placed(torch.tensor), placed(torch.as_tensor)  # type: ignore[assignment]
    torch.Tensor.new_tensor = placed(torch.Tensor.new_tensor)  # type: ignore[method-assign]


def _modules() -> None:
    kind, to = torch.nn.Module, torch.nn.Module.to

    def moved_to(self: torch.nn.Module, *args: Any, **options: Any) -> torch.nn.Module:
        where = options.pop("device", None)
        options.pop("non_blocking", None)
        if args and isinstance(args[0], str | torch.device | int):
            where, args = args[0], args[1:]
        if where is not None:
            self._apply(lambda t: moved(t, where))
        return to(self, *args, **options) if args or options else self

    kind.to = moved_to  # type: ignore[method-assign]
    kind.cuda = lambda self, *_: self._apply(lambda t: moved(t, CARD))  # type: ignore[method-assign]
    kind.cpu = lambda self: self._apply(lambda t: moved(t, CPU))  # type: ignore[method-assign]


def _cuda() -> None:
    cuda, accelerator = torch.cuda, torch.accelerator
    properties = type("Properties", (), OF_THE_CARD)()
    for module in (cuda, accelerator):
        module.is_available = lambda: True
        module.device_count = lambda: 1
    cuda.current_device = accelerator.current_device_index = lambda: 0  # type: ignore[assignment]
    accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")  # type: ignore[assignment]
    cuda.get_device_name = lambda *_: "simulated"  # type: ignore[assignment]
    cuda.get_device_properties = cuda._get_device_properties = lambda *_: properties  # type: ignore[attr-defined]
    cuda.get_device_capability = lambda *_: (8, 0)  # type: ignore[assignment]
    cuda.is_bf16_supported = lambda *_, **__: True  # type: ignore[assignment]
    cuda.is_initialized = lambda: False
    cuda._lazy_init = lambda: None
    cuda.get_rng_state, cuda.set_rng_state = lambda *_: torch.get_rng_state(), lambda *_: None  # type: ignore[assignment]
    cuda.get_rng_state_all, cuda.set_rng_state_all = lambda: [torch.get_rng_state()], lambda *_: None
    cuda.is_current_stream_capturing = lambda *_: False  # type: ignore[assignment]
    for name in DOES_NOTHING:
        setattr(cuda, name, lambda *_, **__: None)
    for name in TYPES:
        setattr(cuda, name, Type(name))
    for name in COUNTS:
        setattr(cuda, name, lambda *_, **__: 0)
    accelerator.synchronize = lambda *_: None  # type: ignore[assignment]
    torch.optim.Optimizer._accelerator_graph_capture_health_check = lambda self: None  # type: ignore[method-assign]
    loader, connect = torch.utils.data.DataLoader.__init__, torch.distributed.init_process_group

    def without_pins(self: Any, *args: Any, **options: Any) -> None:
        loader(self, *args, **{k: v for k, v in options.items() if k not in ("pin_memory", "pin_memory_device")})

    torch.utils.data.DataLoader.__init__ = without_pins  # type: ignore[method-assign]
    torch.distributed.init_process_group = lambda backend=None, *a, **k: connect("gloo", *a, **k)  # type: ignore[assignment]


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
