"""Parameters, gradients and optimizer state divided among the processes: torch's fully_shard (FSDP2).

Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, VLDB 2023. A step gathers the parameters
of the module, large blocks of it (see `blocks`) one after another; backward brings each gradient to where its part
lives. Parameters that are single numbers stay whole. Evaluation gathers all parameters for as long as it takes, because
ranks evaluate different numbers of batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.distributed as dist

from ..collectives import broadcast_tensors, map_leaves
from ..errors import ConfigurationError
from .averaging import GradientAverager
from .base import Strategy
from .fsdp_manual import WholeSteps
from .fsdp_root import Root, divided_as, is_divided
from .parts import Parts, make_contiguous
from .registry import register
from .together import Together
from .when_asked import WhenAsked

if TYPE_CHECKING:
    from ..module import Module

LEAST_BLOCK = 1_000_000  # parameters; what is smaller is not worth messages of its own
HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
MARKS = ("_is_fsdp_managed_module", "_fsdp_use_orig_params")


@register("fsdp")
class FSDPStrategy(Strategy):
    """`auto_wrap_policy`: the classes of the blocks that are gathered one by one (default: see `blocks`).
    `reshard_after_forward`: free a block's parameters between forward and backward. `cpu_offload`: keep parts on the
    CPU.
    """

    divides_states = True
    needs_processes = draws_alike = True
    refuses: ClassVar[Mapping[str, str]] = {
        "closure": "its step looks at all parameters together, and each process has a part; use 'ddp'",
        "shapes": "each process steps some rows of a parameter; use 'ddp_sharded'",
        "sparse": "fully_shard reduces dense ones; use 'ddp', or make the embedding with sparse=False",
        "kept": "the loop has made its optimizers before the parameters can be divided; use 'ddp'",
    }

    def __init__(
        self,
        auto_wrap_policy: Iterable[type] | None = None,
        *,
        reshard_after_forward: bool = True,
        cpu_offload: bool = False,
    ):
        given = {"auto_wrap_policy": auto_wrap_policy, "cpu_offload": cpu_offload}
        self.options = {name: value for name, value in given.items() if value}
        self.classes = tuple(auto_wrap_policy) if auto_wrap_policy is not None else None
        if not all(isinstance(cls, type) for cls in self.classes or ()):
            raise ConfigurationError("auto_wrap_policy: a set of module classes is needed, as {TransformerBlock}")
        self.reshard_after_forward, self.cpu_offload = reshard_after_forward, cpu_offload
        self._root: Any = None
        self._manual: WholeSteps | None = None
        self._numbers: GradientAverager | None = None  # for parameters of shape ()
        self._accumulating = False
        self._waits = False  # have accumulated batches left gradients that are each rank's own?
        self._gathered = False  # are all parameters on every rank just now, for more than a step?
        self._parts: Parts | None = None
        self._blocks: list[Any] = []
        self._whole: dict[tuple[torch.nn.Module, str], torch.nn.Parameter] = {}

    # -- sharding and its opposite ---------------------------------------------------------------------------------

    def setup_module(self, module: Module) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

        broadcast_tensors([*module.parameters(), *module.buffers()])
        self._manual = None
        own = {name: p for name, p in module.named_parameters() if p._backward_hooks or p._post_accumulate_grad_hooks}
        self._whole = {
            (owner, name): p for owner in module.modules() for name, p in owner._parameters.items() if p is not None
        }
        options: dict[str, Any] = {
            "mesh": init_device_mesh(self.runtime.device.type, (self.runtime.world_size,)),
            "offload_policy": CPUOffloadPolicy() if self.cpu_offload else OffloadPolicy(),
        }
        make_contiguous(module)
        numbers = {p for p in self._whole.values() if p.ndim == 0}  # fully_shard takes none
        options["ignored_params"] = numbers
        self._blocks = blocks(module, self.classes) if module.automatic_optimization else []
        for block in self._blocks:
            fully_shard(block, reshard_after_forward=self.reshard_after_forward, **options)
        self._root = fully_shard(Root(module, self._blocks, Together("fully_shard", self.runtime.group)), **options)
        self._root.leave_states_alone()
        self._hang_hooks(own)
        self._root.note_calls()
        self._parts = Parts(module, is_divided, "strategy 'fsdp'")
        self._when_asked = WhenAsked(module, self._kept_whole)
        parts = {whole: owner._parameters[name] for (owner, name), whole in self._whole.items()}
        self._divided = {whole: part for whole, part in parts.items() if whole is not part}
        if numbers and module.automatic_optimization:
            self._numbers = GradientAverager(self.runtime.world_size, self.runtime.group)
            self._numbers.watch(p for p in module.parameters() if p in numbers)
        if hasattr(self._root, "set_reduce_scatter_unused_params"):  # torch 2.13: ranks may use different parameters
            self._root.set_reduce_scatter_unused_params(True, recurse=False)
        inside = {id(p) for block in self._blocks for p in block.parameters()}
        self._outside = [(name, p) for name, p in module.named_parameters() if id(p) not in inside]
        for whole in self._divided:
            whole.data = whole.data.new_empty(0)  # the memory goes; the object comes back in `teardown`

    def _hang_hooks(self, own: dict[str, torch.nn.Parameter]) -> None:
        """The user's hooks on parameters of his, `own`, are called for those that steps see."""
        parts = [self._root, *self._blocks] if own else ()
        for part in parts:
            part.unshard()
        self._root.hang_hooks(own)
        for part in parts:
            part.reshard()

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        """Optimizers that were made before the module was divided get the parts."""
        for optimizer in optimizers:
            states = dict(optimizer.state)
            for group in optimizer.param_groups:
                group["params"] = [self._divided.get(p, p) for p in group["params"]]
            optimizer.state.clear()
            for parameter, state in states.items():
                optimizer.state[self._divided.get(parameter, parameter)] = self._parts_like(parameter, state)
        self.runtime.precision.share(self.runtime.group)
        if not module.automatic_optimization:
            self._manual = WholeSteps(self._root, module, self.runtime, optimizers)
        return optimizers

    def _parts_like(self, parameter: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        """An optimizer's state of one parameter: what has the parameter's shape is divided as it is."""
        like = self._divided.get(parameter, parameter)
        return {
            name: part_of(value, like) if isinstance(value, torch.Tensor) and value.shape == like.shape else value
            for name, value in state.items()
        }

    def finish(self, module: Module) -> None:
        """The user's own Parameter objects again, whole; fully_shard's marks are taken off."""
        for part in [self._root, *self._blocks]:
            part.reshard()
        self._root.release()
        self._root = None
        if self._manual is not None:
            self._manual.release()
        if self._numbers is not None:
            self._numbers.release()
            self._numbers = None
        filled: set[torch.nn.Parameter] = set()
        with torch.no_grad():
            for (owner, name), whole in self._whole.items():
                if whole not in filled:
                    own: Any = owner._parameters[name]
                    whole.data = gathered(own)
                    whole.requires_grad_(own.requires_grad)
                    filled.add(whole)
                owner._parameters[name] = whole
        for part in module.modules():
            make_plain(part)
        self._blocks, self._whole = [], {}

    def teardown(self) -> None:
        if self._parts is not None:
            self._parts.release()
        self._parts = None

    # -- steps -----------------------------------------------------------------------------------------------------

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        step, root, manual = super().step(module, name), self._root, self._manual
        if root is None:
            return step
        if manual is None:
            return lambda *args: root(step, *args)

        def with_whole_parameters(*args: Any) -> Any:
            with manual.whole():
                return step(*args)

        return with_whole_parameters

    def before_backward(self, loss: torch.Tensor) -> None:
        if self._manual is not None:
            self._manual.averager.expect()
        self._empty = [] if self._manual is not None else [parameter.grad is None for _, parameter in self._outside]

    def after_backward(self) -> None:
        if self._manual is not None:
            self._manual.averager.average()
            self._manual.averager.expects = False
            return
        self._waits = self._accumulating
        if self._accumulating:
            return
        if self._blocks:
            self._root.together.check()
        used = torch.tensor([name in self._root.used for name, _ in self._outside], dtype=torch.uint8)
        dist.all_reduce(used, dist.ReduceOp.MAX, group=self.runtime.group)
        for (_, parameter), was_empty, is_used in zip(self._outside, self._empty, used.tolist(), strict=True):
            if was_empty and not is_used:
                parameter.grad = None
        self._root.used.clear()
        if self._numbers is not None:
            self._numbers.average()

    def check_step(self, optimizer: Any) -> None:
        if self._manual is not None:
            self._manual.averager.check()

    def begin_batch(self, number: int | None) -> None:
        if self._manual is not None:
            self._manual.averager.begin_batch(number)

    def no_sync(self) -> AbstractContextManager:
        return self._manual.no_sync() if self._manual is not None else self._paused()

    def clip(self, module: Module, optimizer: Any, value: float, algorithm: str) -> None:
        """By norm: of parts and of what is whole on every rank together, which torch's own does not mix."""
        if algorithm == "value" or self._numbers is None:
            super().clip(module, optimizer, value, algorithm)
            return
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms = [gathered(torch.linalg.vector_norm(gradient)) for gradient in gradients]
        norm = torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.zeros(())
        scale = (value / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            (gradient.to_local() if is_divided(gradient) else gradient).mul_(scale)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        self._accumulating = True
        self._root.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self._accumulating = False
            self._root.set_requires_gradient_sync(True)

    def zero_grad(self, optimizer: Any) -> None:
        """Also what a window that was cut short has left, or a step's own backward: optimizers know the parts alone."""
        super().zero_grad(optimizer)
        if self._manual is None:
            self._root.forget_gradients(optimizer)
            self._root.used.clear()

    @contextmanager
    def evaluation(self, module: Module) -> Iterator[None]:
        if self._root is None or self._gathered:
            yield
            return
        self._gathered = True
        try:
            with self._manual.whole() if self._manual is not None else self._all_whole():
                yield
        finally:
            self._gathered = False

    @contextmanager
    def _all_whole(self) -> Iterator[None]:
        for part in [self._root, *self._blocks]:
            part.unshard()
        for block in self._blocks:
            block.set_reshard_after_forward(False, recurse=False)
        try:
            yield
        finally:
            for block in self._blocks:
                block.set_reshard_after_forward(self.reshard_after_forward, recurse=False)
            self._root.make_freeable()
            for part in [self._root, *self._blocks]:
                part.reshard()

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def with_whole_parameters(*args: Any) -> Any:
            with self._kept_whole():
                return hook(*args)

        return with_whole_parameters

    def around_batch_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return self._when_asked.around(hook)

    @contextmanager
    def gradients(self) -> Iterator[None]:
        if self._accumulating or self._manual is not None or self._root is None:
            yield
            return
        optimizers = self._root.module.trainer.optimizers
        with self._kept_whole():
            self._root.exchange(optimizers)
            yield

    @contextmanager
    def _kept_whole(self) -> Iterator[None]:
        """Parameters, and gradients, whole; what is done to them stays."""
        if self._root is None or self._gathered:
            yield
            return
        root, automatic = self._root, self._manual is None
        with self.evaluation(root.module):
            if automatic and not self._waits:
                root.take_gradients()
            try:
                yield
            finally:
                with torch.no_grad():
                    root.keep_changes(root.module.trainer.optimizers if automatic else ())
                    if automatic and not self._waits:
                        root.give_gradients()

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state_dict(self, module: Module) -> dict[str, Any]:
        with self._parts_meant():
            return {name: self._kept(value) for name, value in module.state_dict().items()}

    def load_state_dict(self, module: Module, state: Mapping[str, Any], strict: bool = True) -> None:
        with self._parts_meant():
            here = module.state_dict()
        parts = {name: part_of(value, here[name]) if name in here else value for name, value in state.items()}
        module.load_state_dict(parts, strict=strict)

    def _parts_meant(self) -> AbstractContextManager:
        return self._parts.meant() if self._parts is not None else nullcontext()

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        with self._parts_in(optimizer):
            return map_leaves(type(optimizer).state_dict(optimizer), self._kept)

    def _parts_in(self, optimizer: Any) -> AbstractContextManager:
        return self._manual.parts_in(optimizer) if self._manual is not None else nullcontext()

    def load_optimizer_state(self, module: Module, optimizer: Any, state: dict[str, Any]) -> None:
        with self._parts_in(optimizer):
            self._load_parts(optimizer, state)

    def _load_parts(self, optimizer: Any, state: dict[str, Any]) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        numbers = [number for group in state["param_groups"] for number in group["params"]]
        parts = {
            number: self._parts_like(parameter, state["state"][number])
            for number, parameter in zip(numbers, parameters, strict=True)
            if number in state["state"]
        }
        optimizer.load_state_dict({**state, "state": parts})

    def _kept(self, value: Any) -> Any:
        """Whole and on the CPU; every rank has to ask, rank 0 keeps it."""
        if not is_divided(value):
            return value
        whole = gathered(value)
        return whole.cpu() if self.runtime.rank == 0 else None


def blocks(module: torch.nn.Module, classes: tuple[type, ...] | None = None) -> list[torch.nn.Module]:
    """The parts of `module` that are gathered one by one, none inside another.

    Those of the given classes; without any, the items of a ModuleList or Sequential that consist of modules themselves
    and have at least LEAST_BLOCK parameters. A block that shares parameters with what is outside it is none.
    """
    found: list[torch.nn.Module] = []
    inside: set[torch.nn.Module] = set()
    for parent in module.modules():
        for child in parent.children():
            if parent in inside or child in inside:
                inside.add(child)
            elif _is_block(child, parent, classes) and not _shares(child, module):
                found.append(child)
                inside |= set(child.modules())
    return found


def _is_block(child: torch.nn.Module, parent: torch.nn.Module, classes: tuple[type, ...] | None) -> bool:
    if classes is not None:
        return isinstance(child, classes)
    repeated = isinstance(parent, (torch.nn.ModuleList, torch.nn.Sequential)) and any(child.children())
    return repeated and sum(p.numel() for p in child.parameters()) >= LEAST_BLOCK


def _shares(block: torch.nn.Module, module: torch.nn.Module) -> bool:
    mine = set(block.modules())
    outside = {p for owner in module.modules() if owner not in mine for p in owner._parameters.values()}
    return any(p in outside for p in block.parameters())


def gathered(value: Any) -> torch.Tensor:
    return value.detach().full_tensor() if is_divided(value) else value.detach()


def part_of(value: torch.Tensor, like: Any) -> Any:
    """This rank's part of `value`, which every rank has whole, divided as `like` is."""
    return divided_as(like, value) if is_divided(like) and not is_divided(value) else value


def make_plain(module: torch.nn.Module) -> None:
    """Take off what fully_shard has put on: its class, its hooks, its state. torch has no call for this."""
    from torch.distributed import _composable_state as composable
    from torch.distributed.fsdp import FSDPModule

    if isinstance(module, FSDPModule):
        module.__class__ = type(module).__mro__[2]
        composable._module_state_mapping.pop(module, None)
        for key in [key for key in module.__dict__ if key.startswith("__composable_api")]:
            del module.__dict__[key]
    for name in HOOKS:
        hooks = getattr(module, name)
        for number, hook in list(hooks.items()):
            function = getattr(hook, "hook", hook)
            if getattr(function, "__module__", "").startswith("torch.distributed.fsdp"):
                del hooks[number]
                for kind in ("_with_kwargs", "_always_called"):
                    getattr(module, name + kind, {}).pop(number, None)
    for mark in MARKS:
        module.__dict__.pop(mark, None)
