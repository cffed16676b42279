"""`self.log`: what was logged in the current loop, by name.

A step appends to lists. Over an epoch the pairs (sum, weight) of all ranks are brought together once, by one message
that also shows whether the ranks logged the same names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..collectives import broadcast_object, gather_objects
from ..data.move import batch_size_of
from ..errors import unknown_name
from .entry import Entry, joined

if TYPE_CHECKING:
    from ..trainer import Trainer

REDUCE = {"mean": "mean", "avg": "mean", "sum": "sum", "min": "min", "max": "max"}
FUNCTIONS = {
    torch.mean: "mean",
    torch.sum: "sum",
    torch.min: "min",
    torch.max: "max",
    sum: "sum",
    min: "min",
    max: "max",
}


EPOCH = "epoch"  # logged outside of the batches


class Name:
    """A name's settings, decided when it is first logged."""

    __slots__ = ("bar", "entry", "key", "logger", "metric", "on_epoch", "on_step", "source", "step_key", "step_sync")

    def __init__(self, key: str, on_step: bool, on_epoch: bool, bar: bool, logger: bool):
        self.key, self.on_step, self.on_epoch, self.bar, self.logger = key, on_step, on_epoch, bar, logger
        self.step_key = f"{key}_step" if on_step and on_epoch else key
        self.entry: Entry | None = None
        self.metric: Any = None
        self.step_sync = False
        self.source: Any = EPOCH

    @property
    def epoch_key(self) -> str:
        return f"{self.key}_epoch" if self.on_step and self.on_epoch else self.key


class Report(NamedTuple):
    """What one rank tells the others at the end of an epoch."""

    states: dict[str, Any]
    batches: Counter
    metrics: dict[str, str | None]


class Logs:
    """The names of one loop (training, or one evaluation) since it began its epoch."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.training = True
        self.in_step = False  # inside a batch, where on_step makes sense
        self.batch: Any = None
        self.sized: Any = None  # the batch whose size is known
        self.size = 1
        self.names: dict[Any, Name] = {}
        self.dataloader_idx: int | None = None
        self.published = False  # the epoch's values are known
        self.batches: Counter = Counter()  # how many of each loader

    def start(self, training: bool) -> Any:
        """A loop begins; returns what belongs to the loop around it, for `resume`."""
        _ = self.trainer.callback_metrics  # takes what the loop around it has logged
        self.published = False
        around = self.names, self.training, self.batch, self.in_step, self.dataloader_idx, self.batches
        self.names, self.training, self.batch, self.in_step = {}, training, None, False
        self.dataloader_idx, self.batches = None, Counter()
        return around

    def resume(self, around: Any) -> None:
        self.published = False
        self.names, self.training, self.batch, self.in_step, self.dataloader_idx, self.batches = around

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool | None = None,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: str | Callable = "mean",
        sync_dist: bool = False,
        add_dataloader_idx: bool = True,
        batch_size: int | None = None,
        rank_zero_only: bool = False,
        **_: Any,
    ) -> None:
        """As `Module.log`. ValueError for a value that is no number, unknown_name for an unknown reduction."""
        known = self.names.get((name, self.dataloader_idx))
        if known is None:
            known = self._first(
                name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, sync_dist, add_dataloader_idx
            )
        if known.metric is not None:
            return
        if isinstance(value, torch.Tensor):
            value = value.detach().clone()
        if known.step_sync:
            value = self.trainer.runtime.all_reduce(float(value), "mean")
        if known.entry is not None:
            known.entry.add(value, batch_size if batch_size is not None else self._weight())

    def _first(
        self,
        name: str,
        value: Any,
        prog_bar: bool,
        logger: bool | None,
        on_step: bool | None,
        on_epoch: bool | None,
        reduce_fx: str | Callable,
        sync_dist: bool,
        add_dataloader_idx: bool,
    ) -> Name:
        """Settle a name's defaults: in a training batch on_step, elsewhere on_epoch."""
        if on_step is None:
            on_step = self.training and self.in_step
        if on_epoch is None:
            on_epoch = not (self.training and self.in_step)
        index = self.dataloader_idx
        key = f"{name}/dataloader_idx_{index}" if index is not None and add_dataloader_idx else name
        known = Name(key, on_step, on_epoch, prog_bar, logger is not False)
        known.source = index if self.in_step else EPOCH
        if hasattr(value, "compute") and hasattr(value, "reset"):
            known.metric = value
        elif not isinstance(value, (int, float, torch.Tensor)) and not hasattr(value, "__float__"):
            raise ValueError(f"log({name!r}, {value!r}): a number, a tensor with one element, or a metric is needed")
        elif isinstance(value, torch.Tensor) and value.numel() != 1:
            raise ValueError(f"log({name!r}): a tensor of shape {tuple(value.shape)}; one number is needed")
        reduce = FUNCTIONS.get(reduce_fx, reduce_fx) if callable(reduce_fx) else REDUCE.get(str(reduce_fx).lower())
        if reduce is None:
            raise unknown_name("reduce_fx", reduce_fx, REDUCE)
        known.entry = Entry(reduce, sync_dist)
        known.step_sync = sync_dist and on_step and not on_epoch and self.trainer.world_size > 1
        self.names[(name, index)] = known
        return known

    def _weight(self) -> float:
        """How many samples the current batch has here; outside of a batch, 1."""
        if not self.in_step:
            return 1
        if self.training:
            part = self.trainer.runtime.part
            if part is not None:
                return part[0]
        if self.sized is not self.batch:
            size = batch_size_of(self.batch)
            self.sized, self.size = self.batch, 1 if size is None else size
        return self.size

    # -- what it comes to -----------------------------------------------------------------------------------------

    def step_values(self, bar_only: bool = False) -> dict[str, Any]:
        """The last values of the names that are logged at steps."""
        found = {}
        for known in self.names.values():
            if known.on_step and (known.bar or not bar_only):
                value = known.metric if known.metric is not None else known.entry.last if known.entry else None
                if known.metric is not None:
                    value = getattr(value, "_forward_cache", None)
                if value is not None:
                    found[known.step_key] = value
        return found

    def step_tensors(self) -> dict[str, torch.Tensor]:
        """The last values at steps, under both of their names."""
        found = {}
        for known in self.names.values():
            if known.on_step and known.entry is not None and known.entry.last is not None:
                found[known.key] = found[known.step_key] = torch.as_tensor(known.entry.last)
        return found

    def end_epoch(self) -> tuple[dict[str, float], dict[str, float]]:
        """(all values, those for the loggers) of the epoch; every rank must call it. Raises RuntimeError when
        names differ.
        """
        logged = [known for known in self.names.values() if known.on_epoch]
        states = {known.key: self._state(known) for known in logged if known.metric is None}
        metrics = {known.epoch_key: self._attribute(known.metric) for known in logged if known.metric is not None}
        own = Report(states, self.batches, metrics)
        every = [own]
        if self.trainer.world_size > 1:
            runtime = self.trainer.runtime
            every = runtime.distinct(gather_objects(own, runtime.group, self.trainer.world_size))
            self._check_names(every)
        values: dict[str, float] = {}
        for key, sync, reduce, epoch_key in self._all_names(every):
            mine = every if sync else [own]
            pairs = [report.states[key][0] for report in mine if key in report.states]
            value = joined(reduce, pairs) if isinstance(reduce, str) else self._by_function(key, pairs, every)
            if value is not None:
                values[epoch_key] = value
        values.update(self._metric_values(every))
        plain = {key: values[epoch_key] for key, *_, epoch_key in self._all_names(every) if epoch_key in values}
        return {**values, **plain}, values

    def _state(self, known: Name) -> tuple[tuple[Any, float], bool, str | None, str, Any]:
        assert known.entry is not None
        reduce = known.entry.reduce if isinstance(known.entry.reduce, str) else None
        return known.entry.state(), known.entry.sync, reduce, known.epoch_key, known.source

    def _by_function(self, key: str, pairs: list[tuple[Any, float]], every: list) -> float | None:
        """The value of a name whose reduction is a function; a rank without batches does not have it, and is told."""
        function = next((known.entry.reduce for known in self.names.values() if known.key == key and known.entry), None)
        value = joined(function, pairs) if function is not None else None
        having = [rank for rank, report in enumerate(every) if key in report.states]
        if len(having) == len(every):
            return value
        runtime = self.trainer.runtime
        told = broadcast_object(value, runtime.group, runtime.rank, having[0])
        return told if function is None else value

    def _all_names(self, every: list) -> list[tuple[str, bool, Any, str]]:
        """Names in the order of the first rank that has them; a rank without batches learns them here."""
        found: dict[str, tuple[str, bool, Any, str]] = {}
        for report in every:
            for key, (_, sync, reduce, epoch_key, _) in report.states.items():
                found.setdefault(key, (key, sync, reduce, epoch_key))
        return list(found.values())

    def _check_names(self, every: list) -> None:
        """Ranks that had batches of the same loader must have logged the same names there."""
        sources = {key: source for report in every for key, (*_, source) in report.states.items()}
        for key, source in sources.items():
            busy = [rank for rank, report in enumerate(every) if source == EPOCH or report.batches.get(source)]
            having = [rank for rank in busy if key in every[rank].states]
            if len(having) < len(busy):
                lacking = [rank for rank in busy if rank not in having]
                raise RuntimeError(f"{key!r} was logged on ranks {having} and not on ranks {lacking}; log it on all")

    def _attribute(self, metric: Any) -> str | None:
        """Where the module has this metric object, so that a rank without batches finds its own."""
        module = self.trainer.module
        assert module is not None
        return next((name for name, part in module.named_modules() if part is metric), None)

    def _metric_values(self, every: list[Report]) -> dict[str, Any]:
        """Metric objects bring their own states together; all ranks compute the same ones in the same order."""
        mine = {known.epoch_key: known.metric for known in self.names.values() if known.metric is not None}
        values = {}
        for key, attribute in {key: name for report in every for key, name in report.metrics.items()}.items():
            metric: Any = mine.get(key)
            if metric is None:
                if attribute is None:
                    raise RuntimeError(f"metric {key!r} must be an attribute of the module: some ranks had no batch")
                metric = self.trainer.module.get_submodule(attribute)  # type: ignore[union-attr]
            values[key] = metric.compute()
            metric.reset()
        return values
