"""`self.log`: what was logged in the current loop, by name.

A step appends to lists. Over an epoch the pairs (sum, weight) of all ranks are brought together once, by one message
that also shows whether the ranks logged the same names.
"""

from __future__ import annotations

import copy
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ..collectives import broadcast_object, gather_objects
from ..data.move import batch_size_of, weight_of_unknown
from ..errors import ConfigurationError, RanksDiffer, unknown_name
from .entry import Entry, joined
from .name import EPOCH, Name, PerhapsLoss, shown
from .parts import DOUBT, Part, PartEntry, in_doubt, together
from .report import Report, Values, all_states, check_names, put, state_of

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
OWN = ("names", "training", "batch", "in_step", "dataloader_idx", "batches", "metrics", "open")  # a loop's own


class Logs:
    """The names of one loop (training, or one evaluation) since it began its epoch."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.training = True
        self.open = False  # between the start of an epoch and its end
        self.in_step = False  # inside a batch, where on_step makes sense
        self.uneven: str | None = None  # an evaluation's step, where ranks may take it different numbers of times
        self.batch: Any = None
        self.sized: Any = None  # the batch whose size is known
        self.size = 1
        self.names: dict[Any, Name] = {}
        self.metrics: list[Any] = []  # metric objects to reset when the epoch is over
        self.dataloader_idx: int | None = None
        self.published = False  # the epoch's values are known
        self.batches: Counter = Counter()  # how many of each loader
        self.losses: tuple[int, list[torch.Tensor]] = (-1, [])
        self.doubted: set[str] = set()  # names that were told to be in doubt

    def start(self, training: bool) -> Any:
        """A loop begins; returns what belongs to the loop around it, for `resume`."""
        self.trainer.metrics.take_step_values()
        around = tuple(getattr(self, name) for name in OWN)
        self.published, self.open = False, True
        self.names, self.training, self.batch, self.in_step = {}, training, None, False
        self.dataloader_idx, self.batches, self.metrics = None, Counter(), []
        return around

    def resume(self, around: Any) -> None:
        self.published = False
        for name, value in zip(OWN, around, strict=True):
            setattr(self, name, value)

    def check_even(self, what: str) -> None:
        """RanksDiffer where ranks would wait for one another in a step that not all of them come to."""
        if self.uneven is not None and self.in_step and not self.training:
            stage = self.uneven.removesuffix("_step")
            raise RanksDiffer(
                f"{what} in {self.uneven}: its batches go round among the ranks without padding, so some have fewer; "
                f"keep what is needed and call {what} in on_{stage}_epoch_end, or log with sync_dist=True"
            )

    def log(self, name: str, value: Any, known: Name, batch_size: int | None) -> None:
        """One value of a name that is known; `Module.log` looks it up."""
        if known.metric is not None:
            return
        if isinstance(value, torch.Tensor):
            known.dtype = value.dtype
            # reading what is on the CPU waits for nothing, and costs less than a copy
            value = value.item() if value.is_cpu else value.detach().clone()
        known.last = self._of_all_ranks(name, float(value)) if known.step_sync else value
        if known.on_epoch:
            known.entry.add(value, self._weight() if batch_size is None else batch_size)  # type: ignore[union-attr]

    def _of_all_ranks(self, name: str, value: float) -> Any:
        """The mean over the batch of a step's values; of a loss that is a sum over samples, the sum. The name goes
        along as a number, so that ranks do not mix two names.
        """
        trainer, number, weight = self.trainer, zlib.crc32(name.encode()), float(self._weight())
        sums = trainer.cuts_batches and getattr(trainer.module, "loss_reduction", None) == "sum"
        sent = [value * weight, weight, float(number), *[value if weight else 0.0] * sums]
        total, weights, others, *whole = trainer.runtime.reduce_alike(sent)
        if others != number * trainer.world_size:
            names = gather_objects(name, trainer.runtime.group, trainer.world_size, "the name of a value")
            raise RanksDiffer(f"at the same place the ranks logged {names}, in the order of ranks; log alike on all")
        mean = total / weights if weights else value
        return PerhapsLoss(value, mean, whole[0], self.step_losses()[1]) if sums else mean

    def first(
        self,
        name: str,
        value: Any,
        reduce_fx: str | Callable,
        prog_bar: bool,
        logger: bool | None,
        on_step: bool | None,
        on_epoch: bool | None,
        sync_dist: bool,
        add_dataloader_idx: bool,
        rank_zero_only: bool,
    ) -> Name:
        """Settle a name's defaults: in a training batch on_step, elsewhere on_epoch.

        ValueError for a value that is no number, unknown_name for an unknown reduction, ConfigurationError where
        there is no epoch that the value could belong to.
        """
        if not isinstance(name, str) or "/dataloader_idx_" in name:
            raise ConfigurationError(f"log({name!r}): a text without '/dataloader_idx_' is needed as the name")
        if not self.open:
            raise ConfigurationError(
                f"log({name!r}): nothing is collected here; log in a step, or in a hook of an epoch"
            )
        if on_step is None:
            on_step = self.training and self.in_step
        if on_epoch is None:
            on_epoch = not (self.training and self.in_step)
        if not (on_step or on_epoch):
            raise ConfigurationError(f"log({name!r}, on_step=False, on_epoch=False): the value would go nowhere")
        if not self.in_step and (on_step or not on_epoch):
            raise ConfigurationError(
                f"log({name!r}): outside of the batches only on_step=False, on_epoch=True is there"
            )
        index = self.dataloader_idx
        key = f"{name}/dataloader_idx_{index}" if index is not None and add_dataloader_idx else name
        if index is not None and any(each.key == key for each in self.names.values()):
            raise ConfigurationError(f"log({name!r}, add_dataloader_idx=False): another loader has logged under it")
        known = Name(key, on_step, on_epoch, prog_bar, logger is not False)
        known.source = index if self.in_step else EPOCH
        known.everywhere = not rank_zero_only
        if hasattr(value, "compute") and hasattr(value, "reset"):
            known.metric = value
            self.metrics.append(value)
        elif not isinstance(value, (int, float, torch.Tensor)) and not hasattr(value, "__float__"):
            raise ValueError(f"log({name!r}, {value!r}): a number, a tensor with one element, or a metric is needed")
        elif isinstance(value, torch.Tensor) and value.numel() != 1:
            raise ValueError(f"log({name!r}): a tensor of shape {tuple(value.shape)}; one number is needed")
        reduce = FUNCTIONS.get(reduce_fx, reduce_fx) if callable(reduce_fx) else REDUCE.get(str(reduce_fx).lower())
        if reduce is None:
            raise unknown_name("reduce_fx", reduce_fx, REDUCE)
        several = self.trainer.world_size > 1
        cut = several and self.in_step and self.training and self.trainer.cuts_batches
        plain = reduce == "mean" and getattr(self.trainer.module, "loss_reduction", None) == "mean"  # exact as it is
        known.entry = PartEntry(reduce, self) if cut and sync_dist and not plain else Entry(reduce, sync_dist)
        known.step_sync = sync_dist and on_step and several and self.training
        self.names[(name, index)] = known
        return known

    def step_losses(self) -> tuple[int, list[torch.Tensor]]:
        """The number of the current step of training, over all epochs, and its losses so far: a list that is filled."""
        step = self.trainer.fit_loop.total_batch_idx
        if self.losses[0] != step:
            self.losses = (step, [])
        return self.losses

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
            self.sized, self.size = self.batch, weight_of_unknown(self.batch) if size is None else size
        return self.size

    # -- what it comes to -----------------------------------------------------------------------------------------

    def step_values(self, bar_only: bool = False) -> dict[str, Any]:
        """The last values of the names that are logged at steps: of the current loader's for loggers, of all for the
        progress bar.
        """
        found = {}
        for known in self.names.values():
            if known.on_step and (known.bar if bar_only else known.logger and known.source == self.dataloader_idx):
                value = known.step_value()
                if value is not None:
                    found[known.step_key] = value
        return found

    def step_tensors(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The last values at steps: for callbacks those of training, under both of their names; and the logged ones."""
        callback, logged = {}, {}
        for known in self.names.values():
            value = known.step_tensor() if known.on_step else None
            if value is not None:
                if self.training:
                    callback[known.key] = callback[known.step_key] = value
                if known.logger:
                    logged[known.step_key] = value
        return callback, logged

    def hook_values(self) -> Values:
        """What the epoch's hooks have logged until now, in one process; ranks bring theirs together in `reduce`."""
        values = Values({}, {}, {}, {})
        if self.in_step or self.trainer.world_size > 1:
            return values
        for known in self.names.values():
            if known.source == EPOCH and known.entry is not None and known.metric is None:
                value = joined(known.entry.reduce, [known.entry.state()])
                if value is not None:
                    number = torch.tensor(value, dtype=shown(known.dtype))
                    put(values, known.key, known.epoch_key, number, known.bar, known.logger, EPOCH)
        return values

    def reduce(self) -> Values:
        """The epoch's values of what was logged until now; every rank must call it. What is logged from here on is
        kept apart, for the next call. Raises RuntimeError when names differ by rank.
        """
        self.trainer.metrics.take_step_values()
        names, batches = [known for known in self.names.values() if known.on_epoch], self.batches
        self._by_key = {known.key: known for known in names}
        states = {known.key: state_of(known) for known in names if known.metric is None}
        metrics = {
            known.epoch_key: (self._attribute(known.metric), known.bar, known.logger, known.key, known.source)
            for known in names
            if known.metric is not None
        }
        own = Report(states, batches, metrics)
        every = [own]
        if self.trainer.world_size > 1:
            runtime = self.trainer.runtime
            every = runtime.distinct(gather_objects(own, runtime.group, self.trainer.world_size, "logged values"))
            check_names(every)
        values = Values({}, {}, {}, {})
        for key, state in all_states(every).items():
            mine = every if state.sync else [own]
            totals = [report.states[key].total for report in mine if key in report.states]
            if totals and isinstance(totals[0][0], Part):
                totals = [self._together(key, state.reduce, [part for part, _ in totals])]
            value = joined(state.reduce, totals) if state.reduce else self._by_function(key, totals, every)
            if value is not None:
                number = torch.tensor(value, dtype=shown(state.dtype))
                put(values, key, state.epoch_key, number, state.bar, state.logger, state.source)
        self._metric_values(every, values)
        self.names, self.batches, self.published = {}, Counter(), True
        return values

    def _together(self, key: str, reduce: str | None, parts: list[Part]) -> tuple[Any, float]:
        if in_doubt(reduce, parts) and key not in self.doubted:
            self.doubted.add(key)
            self.trainer.print(DOUBT.format(key, reduce or "a function"), file=sys.stderr)
        return together(reduce, parts, self.trainer.module.loss_reduction)  # type: ignore[union-attr]

    def end_loader(self) -> None:
        """One of several loaders is over: what the next one adds to a metric object is not of this one's value."""
        for known in self.names.values():
            if known.metric is not None and known.source == self.dataloader_idx:
                known.until_here = copy.deepcopy(known.metric)

    def close(self) -> None:
        """The epoch is over; nothing can be logged until the next one begins."""
        self.open = False
        for metric in self.metrics:
            metric.reset()
        self.metrics = []

    def _by_function(self, key: str, pairs: list[tuple[Any, float]], every: list) -> float | None:
        """The value of a name whose reduction is a function; a rank without batches does not have it, and is told."""
        known = self._by_key.get(key)
        function = known.entry.reduce if known is not None and known.entry is not None else None
        value = joined(function, pairs) if function is not None else None
        having = [rank for rank, report in enumerate(every) if key in report.states]
        if len(having) == len(every):
            return value
        runtime = self.trainer.runtime
        told = broadcast_object(value, runtime.group, runtime.rank, having[0])
        return told if function is None else value

    def _attribute(self, metric: Any) -> str | None:
        """Where the module has this metric object, so that a rank without batches finds its own."""
        module = self.trainer.module
        assert module is not None
        return next((name for name, part in module.named_modules() if part is metric), None)

    def _metric_values(self, every: list[Report], values: Values) -> None:
        """Metric objects bring their own states together; all ranks compute the same ones in the same order."""
        found = {epoch_key: about for report in every for epoch_key, about in report.metrics.items()}
        for epoch_key, (attribute, bar, logger, key, source) in found.items():
            known = self._by_key.get(key)
            metric: Any = None if known is None else known.metric if known.until_here is None else known.until_here
            if metric is None:
                if attribute is None:
                    raise RuntimeError(f"metric {key!r} must be an attribute of the module: some ranks had no batch")
                metric = self.trainer.module.get_submodule(attribute)  # type: ignore[union-attr]
                self.metrics.append(metric)
            value = metric.compute()
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                raise ValueError(f"log({key!r}): the metric's compute() gave {value!r}; one number is needed")
            put(values, key, epoch_key, value, bar, logger, source)
