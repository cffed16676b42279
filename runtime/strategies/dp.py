"""One process, several devices: each batch is cut among them, and what they give is gathered on the first.

The copies of the module are made anew for every batch. On GPUs that is torch's replicate and parallel_apply
(Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014); CPU devices are one and the same
memory, so there the module itself works on the pieces, one after another and in order, which keeps a run repeatable.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from ..hooks import overridden
from ..whole import runs_once
from .base import Strategy, with_step_end
from .ddp import DDPStrategy
from .needs import features_of
from .pieces import Piece, Recorder, gather, is_number, replay, scatter, whole_loss
from .registry import register
from .unchanged import Unchanged

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer


class _OverDevices(Strategy):
    """How dp and ddp2 run a step of the module."""

    needs_processes = True
    one_process_a_node = True
    refuses = {  # noqa: RUF012
        "16": "loss scaling does not work over several devices of one process; use bf16, or ddp",
        "manual": "training_step runs once on every device, and each would step the optimizers; use ddp",
        "kept": "the loop has no training_step that could run on a part of the batch; use ddp",
    }

    def describe(self, batch: int | None, whole: bool) -> str | None:
        nodes, count = self.runtime.world_size, len(self.devices)
        size = f"of {batch} " if batch else ""
        kind = self.runtime.device.type
        if nodes == 1:
            way = "computed whole on the first" if whole else "cut among them"
            return f"{self.name} on {count} devices ({kind}), batches {size}{way}"
        way = "cut among all" if self.runtime.global_batch else f"for each node, {(batch or 1) * nodes} samples a step"
        return f"{self.name} on {nodes} nodes of {count} devices ({kind}), batches {size}{way}"

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        """The step on every device's piece; then `name_end` on the gathered outputs. Where the module has no
        `name_end`, the loss is that of the whole batch.
        """
        from ..module import Module as Base

        reduction = module.loss_reduction
        devices = self.devices[:1] if self._whole(module, name) else self.devices
        ends = overridden(module, f"{name}_end", Base)
        unchanged = Unchanged(module, name, "runs once on every device")

        def on_all_devices(batch: Any, *rest: Any) -> Any:
            pieces = scatter(batch, devices)
            recorders = [Recorder(piece.size) for piece in pieces]
            with unchanged.checked(several=len(pieces) > 1):
                outputs = run_pieces(module, name, pieces, rest, recorders)
            replay(recorders, module.log, [loss_in(output) for output in outputs], reduction)
            sizes[:] = [piece.size for piece in pieces]
            gathered = gather(outputs, devices[0])
            if ends or name == "predict_step" or not is_number(loss_in(outputs[0])):
                return gathered
            return with_loss(gathered, whole_loss(loss_in(gathered), sizes, reduction))

        def ended(*args: Any) -> Any:
            outputs = end(*args)
            if getattr(loss_in(outputs), "shape", None) != (len(sizes),):
                return outputs
            return with_loss(outputs, whole_loss(loss_in(outputs), sizes, reduction))  # a step_end that gave all losses

        sizes: list[int] = []
        end = with_step_end(module, name, on_all_devices)
        return ended if ends and name == "training_step" else end

    @staticmethod
    def _whole(module: Module, name: str) -> bool:
        """Does this step need the samples of a batch together?"""
        validates = name == "validation_step" and module.trainer.state == "fit"
        kept = name in ("validation_step", "test_step") and adds_up(module, name)
        once = name == "training_step" and runs_once(module)
        return module.trainer.whole or once or kept or (validates and not module.divide_validation)

    @property
    def devices(self) -> list[torch.device]:
        settings = self.runtime.settings
        if settings.kind == "cpu":
            return [torch.device("cpu")] * len(settings.numbers)
        return [torch.device(settings.kind, number) for number in settings.numbers]


@register("dp")
class DataParallelStrategy(_OverDevices):
    """All devices of one machine, driven by one process."""

    refuses = {  # noqa: RUF012
        **_OverDevices.refuses,
        "nodes": "it is one process on one machine; use ddp2 or ddp",
        "manual": f"{_OverDevices.refuses['manual']}, or divide_batches = False in the module: the first device then "
        "computes whole batches",
    }

    def check_run(self, trainer: Trainer, module: Module, stage: str, resumes: bool) -> None:
        features = features_of(trainer, module, stage, resumes)
        self.check({**features, "manual": features.get("manual", False) and not runs_once(module)})


@register("ddp2")
class DDP2Strategy(_OverDevices, DDPStrategy):
    """dp inside a node, ddp across nodes: every node gets whole batches, so that a step_end sees all of the node's
    samples. The effective batch is batch times nodes.
    """

    draws_alike = False

    @classmethod
    def instead(cls, devices: int, processes: int) -> str | None:
        return None if processes > 1 else "dp" if devices > 1 else "single"


def adds_up(module: Module, name: str) -> bool:
    """Does the step keep numbers of a batch in attributes, or calls of `in_order`? Of a batch's mean, `self.total +=
    loss.item()`, pieces would add several; and what a step assigns on a GPU's copy is lost.
    """
    code = getattr(getattr(module, name), "__code__", None)
    return code is not None and (
        "in_order" in code.co_names or any(each.opname == "STORE_ATTR" for each in dis.get_instructions(code))
    )


def run_pieces(
    module: Module, name: str, pieces: Sequence[Piece], rest: tuple, recorders: Sequence[Recorder]
) -> list[Any]:
    """The outputs of `module.name(piece, *rest)` on every piece's device."""
    if pieces[0].device.type != "cpu":
        return _run_on_gpus(module, name, pieces, rest, recorders)
    begun = [buffer.clone() for buffer in module.buffers()] if len(pieces) > 1 else []
    outputs = []
    for number, (piece, recorder) in enumerate(zip(pieces, recorders, strict=True)):
        with standing_for(module, piece, recorder), own_buffers(module, begun) if number else nullcontext():
            outputs.append(getattr(module, name)(piece.batch, *rest))
    return outputs


@contextmanager
def standing_for(module: Module, piece: Piece, recorder: Recorder) -> Iterator[None]:
    """Inside, `module` is the copy of a device: its `device`, `share` and `log` are those of the piece."""
    module.__dict__.update(_piece=piece, log=recorder.log)
    try:
        yield
    finally:
        del module.__dict__["_piece"], module.__dict__["log"]


@contextmanager
def own_buffers(module: torch.nn.Module, begun: Sequence[torch.Tensor] | None = None) -> Iterator[None]:
    """Inside, buffers (running statistics) are copies: those of the first device are kept, as with GPUs. `begun`: what
    `module.buffers()` were when the step began, where that is not what they are.
    """
    values = dict(zip(module.buffers(), begun, strict=True)) if begun is not None else {}
    kept = [
        (part._buffers, name, buffer)
        for part in module.modules()
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]
    for buffers, name, buffer in kept:
        buffers[name] = values.get(buffer, buffer).clone()
    try:
        yield
    finally:
        for buffers, name, buffer in kept:
            buffers[name] = buffer


class _Method(torch.nn.Module):
    """A method of a module as a forward, which is what parallel_apply calls."""

    def __init__(self, module: Module, name: str):
        super().__init__()
        self.module, self.name = module, name

    def forward(self, *args: Any) -> Any:
        return getattr(self.module, self.name)(*args)


def _run_on_gpus(
    module: Module, name: str, pieces: Sequence[Piece], rest: tuple, recorders: Sequence[Recorder]
) -> list[Any]:
    from torch.nn.parallel import parallel_apply, replicate

    devices = [piece.device for piece in pieces]
    copies = replicate(module, devices, detach=not torch.is_grad_enabled())
    for copy, piece, recorder in zip(copies, pieces, recorders, strict=True):
        copy.__dict__.update(_piece=piece, log=recorder.log)
    before = [dict(copy.__dict__) for copy in copies]
    methods = [_Method(copy, name) for copy in copies]
    outputs = parallel_apply(methods, [(piece.batch, *rest) for piece in pieces], devices=devices)
    for copy, known in zip(copies, before, strict=True):
        _refuse_lost(copy, known, name)
    return outputs


def _refuse_lost(copy: torch.nn.Module, known: dict[str, Any], name: str) -> None:
    """What a step assigns to `self` goes with the copy."""
    for attribute, value in copy.__dict__.items():
        if known.get(attribute, copy) is not value:
            raise RuntimeError(
                f"{name} assigned self.{attribute}: under dp it runs on copies of the module, and this would be lost; "
                f"return it, and assign it in {name}_end"
            )


def with_loss(outputs: Any, loss: torch.Tensor) -> Any:
    return {**outputs, "loss": loss} if isinstance(outputs, dict) else loss


def loss_in(outputs: Any) -> Any:
    """The loss in what a step gave: the item "loss" of a dict, or the output itself."""
    return outputs.get("loss") if isinstance(outputs, dict) else outputs
