"""`Module`: a model with its training, validation, test and prediction steps, under PyTorch Lightning's names.

The names and what they mean follow Lightning's LightningModule, so a Module runs there too when its import is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from .arguments import checked_algorithm
from .checkpoint.read import read
from .data.hooks import DataHooks
from .errors import ConfigurationError
from .export import Exports
from .hooks import Hooks
from .hparams import HasHyperparameters, made_again
from .manual import manual_backward
from .printing import rank_zero_print

if TYPE_CHECKING:
    from .trainer import Trainer

CPU = torch.device("cpu")


class Module(torch.nn.Module, DataHooks, Exports, HasHyperparameters, Hooks):
    """Fill in `training_step` and `configure_optimizers`; the rest when you need it.

    `automatic_optimization = False`: the step calls `manual_backward` and the optimizers itself.
    `loss_reduction = "sum"`: the loss that training_step returns is a sum over the batch, not a mean.
    `divide_batches = False`: steps that need whole batches; every process computes all of them, and draws alike.
    "loaders": only what a DataLoader gives is divided. "processes": not over the devices of one process, as dp and ddp2
    would; the step keeps what a batch gives. `divide_validation = False`: whole batches for validation alone.
    `validation_draws = True`: it draws random numbers; with the global batch kept no process leaves a batch out. Where
    nothing is said and the code may draw, that is so in the first validation of a fit, which shows whether it does.
    """

    loss_reduction = "mean"
    divide_batches: bool | str = True
    divide_validation = True
    validation_draws: bool | None = None
    automatic_optimization = True
    strict_loading = True
    sample_sums: tuple[str, ...] = ()  # attributes that training_step adds what samples have to: see data/borrowed.py
    __jit_unused_properties__ = (
        *("current_epoch", "device", "dtype", "global_rank", "global_step", "hparams", "hparams_initial", "local_rank"),
        *("logger", "loggers", "on_gpu", "share", "trainer"),
    )

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._trainer: Trainer | None = None

    # -- to fill in -----------------------------------------------------------------------------------------------

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss of a batch (a tensor, or a dict with "loss"); None skips the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no training_step")

    def validation_step(self, batch: Any, batch_idx: int) -> Any: ...
    def test_step(self, batch: Any, batch_idx: int) -> Any: ...

    def training_step_end(self, step_output: Any) -> Any:
        """What training_step gave, of all devices of this process (dp and ddp2 gather them); the loss."""
        return step_output

    def validation_step_end(self, step_output: Any) -> Any:
        return step_output

    def test_step_end(self, step_output: Any) -> Any:
        return step_output

    def training_epoch_end(self, outputs: list[Any]) -> None:
        """The guide's Lightning: what the steps of the epoch gave on this process, losses detached, in order; called
        before `on_train_epoch_end`. Filling it keeps all outputs until then.
        """

    def validation_epoch_end(self, outputs: list[Any]) -> None:
        """What validation_step gave on this process, in order; a list a loader if several. Called before
        `on_validation_epoch_end`.
        """

    def test_epoch_end(self, outputs: list[Any]) -> None: ...

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        return self(batch)

    def configure_optimizers(self) -> Any:
        """An optimizer, a list, `[optimizers], [schedulers]`, a dict with "optimizer" and "lr_scheduler", or None."""

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Callable | None = None
    ) -> None:
        optimizer.step(closure=optimizer_closure)

    def lr_scheduler_step(self, scheduler: Any, metric: Any | None) -> None:
        scheduler.step() if metric is None else scheduler.step(metric)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def configure_callbacks(self) -> Any:
        return []

    def configure_model(self) -> None:
        """Make parts of the model when the ranks have met; called before every run, so ask whether they are there."""

    def configure_sharded_model(self) -> None:
        """`configure_model` as Lightning 1 called it."""

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """How gradients come about; an override calls this one, or `loss.backward`."""
        if self._trainer is None:
            loss.backward(*args, **kwargs)
        else:
            self._trainer.runtime.strategy.backward(loss, *args, **kwargs)

    def on_validation_model_eval(self) -> None:
        self.eval()

    def on_test_model_eval(self) -> None:
        self.eval()

    def on_predict_model_eval(self) -> None:
        self.eval()

    def on_validation_model_train(self) -> None:
        """Called where a module fills it; else every part gets the mode back that it had."""
        self.train()

    def on_test_model_train(self) -> None:
        self.train()

    def on_predict_model_train(self) -> None:
        self.train()

    def on_validation_model_zero_grad(self) -> None:
        """Before a validation inside of `fit`, when the optimizer has stepped."""
        self.zero_grad()

    # -- where am I -----------------------------------------------------------------------------------------------

    @property
    def trainer(self) -> Trainer:
        """RuntimeError when the module is not in a trainer."""
        if self._trainer is None:
            raise RuntimeError(f"{type(self).__name__} is not attached to a Trainer yet")
        return self._trainer

    @trainer.setter
    def trainer(self, trainer: Trainer | None) -> None:
        """Of this module, and of Modules that are parts of it."""
        for part in self.modules():
            if isinstance(part, Module):
                part._trainer = trainer

    @property
    def device(self) -> torch.device:
        """Where the run's batches are; without a trainer, where the parameters are."""
        if "_piece" in self.__dict__:  # the copy of one of several devices
            return self.__dict__["_piece"].device
        if self._trainer is not None:
            return self._trainer.runtime.device
        return next((p.device for p in self.parameters()), CPU)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.get_default_dtype())

    @property
    def global_rank(self) -> int:
        return self._trainer.global_rank if self._trainer is not None else 0

    @property
    def local_rank(self) -> int:
        return self._trainer.local_rank if self._trainer is not None else 0

    @property
    def current_epoch(self) -> int:
        return self._trainer.current_epoch if self._trainer is not None else 0

    @property
    def global_step(self) -> int:
        """How many optimizer steps have been made."""
        return self._trainer.global_step if self._trainer is not None else 0

    @property
    def share(self) -> float:
        """The fraction of the current global training batch that this device holds; exactly 1.0 on one device."""
        divided = self._trainer is not None and not self._trainer.whole
        whole = self._trainer.runtime.share if divided else 1.0  # type: ignore[union-attr]
        return whole * self.__dict__["_piece"].share if "_piece" in self.__dict__ else whole

    @property
    def logger(self) -> Any:
        return self._trainer.logger if self._trainer is not None else None

    @property
    def loggers(self) -> list[Any]:
        return self._trainer.loggers if self._trainer is not None else []

    # -- checkpoints ----------------------------------------------------------------------------------------------

    @classmethod
    def load_from_checkpoint(
        cls,
        checkpoint_path: Any,
        map_location: Any = None,
        hparams_file: Any = None,
        strict: bool | None = None,
        weights_only: bool = True,
        **kwargs: Any,
    ) -> Any:
        """A new module with the checkpoint's weights and hyper-parameters (`hparams_file`'s instead; `kwargs` win)."""
        checkpoint = read(checkpoint_path, weights_only)
        module = made_again(cls, checkpoint, "", kwargs, hparams_file)
        module.configure_model()
        module.on_load_checkpoint(checkpoint)
        module.load_state_dict(checkpoint["state_dict"], strict=module.strict_loading if strict is None else strict)
        return module.to(map_location) if map_location is not None else module

    # -- saying things --------------------------------------------------------------------------------------------

    def print(self, *values: Any, **options: Any) -> None:
        """`print`, on rank 0."""
        (self._trainer.print if self._trainer is not None else rank_zero_print)(*values, **options)

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool | None = None,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: Any = "mean",
        enable_graph: bool = False,
        sync_dist: bool = False,
        sync_dist_group: Any = None,
        add_dataloader_idx: bool = True,
        batch_size: int | None = None,
        metric_attribute: str | None = None,
        rank_zero_only: bool = False,
    ) -> None:
        """Log a number; the arguments mean what Lightning's do.

        With `sync_dist` the value of an epoch is exact on any number of ranks: float64 (sum, weight) pairs are
        brought together once, weighted by numbers of samples. Without a trainer nothing happens.
        """
        trainer = self._trainer
        if trainer is None or trainer.barebones or (rank_zero_only and not trainer.is_global_zero):
            return
        logs = trainer.logs
        options = (prog_bar, logger, on_step, on_epoch, sync_dist, add_dataloader_idx, rank_zero_only)
        known = logs.names.get((name, logs.dataloader_idx))
        if known is None:
            known = logs.first(name, value, reduce_fx, *options)
            known.options = options
        elif known.options != options:
            raise ConfigurationError(f"log({name!r}): logged before with other options; give one of them another name")
        logs.log(name, value, known, batch_size)

    def log_dict(self, dictionary: Any, *args: Any, **options: Any) -> None:
        """`log` for each item of a mapping (or of a torchmetrics collection)."""
        for name, value in (
            dictionary.items(keep_base=False) if hasattr(dictionary, "keep_base") else dictionary.items()
        ):
            self.log(name, value, *args, **options)

    # -- ranks ----------------------------------------------------------------------------------------------------

    def all_reduce(self, value: Any, op: str = "sum") -> Any:
        """Sum, mean, max or min over ranks of a number, a tensor, or containers of them; types stay, counts stay exact.

        In one process the very same object comes back.
        """
        if self._trainer is None or self._trainer.runtime.repeated:
            return value  # every rank has it all
        logs, runtime = self._trainer.logs, self._trainer.runtime
        logs.check_even("all_reduce")
        return runtime.reduce_alike(value, op) if logs.in_step and logs.training else runtime.all_reduce(value, op)

    def batch_mean(self, value: Any) -> Any:
        """The mean over the last global training batch of what each rank's part of it gave: a number or a tensor, and
        containers of them. In one process the very same object comes back.
        """
        if self._trainer is None or self._trainer.whole:
            return value
        return self._trainer.runtime.batch_mean(value)

    def batch_sum(self, value: Any) -> Any:
        """The sum over the last global training batch of what each rank's part of it gave; nothing of a rank whose part
        is empty, which computed on a sample of another. In one process the very same object comes back.
        """
        if self._trainer is None or self._trainer.whole:
            return value
        return self._trainer.runtime.batch_sum(value)

    def in_order(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """From a validation or test step: `call(*args, **kwargs)`, as `self.scores.append` or `self.meter.update`, for
        the batches of all ranks, in the loader's order. The step's own are made at once in one process, all of them on
        every rank when the batches are over in several; see in_order.py.
        """
        if self._trainer is not None and self._trainer.in_order.waits:
            self._trainer.in_order.keep(call, args, kwargs)
        else:
            call(*args, **kwargs)

    def all_gather(self, data: Any, group: Any = None, sync_grads: bool = False) -> Any:
        """Tensors of all ranks stacked along a new first dimension (world, ...); in one process, `data` itself."""
        if self._trainer is None:
            return data
        self._trainer.logs.check_even("all_gather")
        return self._trainer.runtime.all_gather(data, sync_grads)

    # -- manual optimization --------------------------------------------------------------------------------------

    def optimizers(self, use_pl_optimizer: bool = True) -> Any:
        """The optimizer, or the list of them when there are several."""
        optimizers = self.trainer.optimizers
        return optimizers[0] if len(optimizers) == 1 else optimizers

    def lr_schedulers(self) -> Any:
        """The scheduler, the list of them when there are several, None when there is none."""
        schedulers = [config.scheduler for config in self.trainer.lr_scheduler_configs]
        return (schedulers or [None])[0] if len(schedulers) < 2 else schedulers

    def manual_backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """`loss.backward(...)`; when it returns, gradients are those of the global batch on every rank."""
        manual_backward(self.trainer, loss, *args, **kwargs)

    def clip_gradients(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip the gradients of an optimizer's parameters, by "norm" or by "value"; by default as the trainer does."""
        trainer = self.trainer
        value = trainer.gradient_clip_val if gradient_clip_val is None else gradient_clip_val
        algorithm = checked_algorithm(gradient_clip_algorithm or trainer.gradient_clip_algorithm)
        if value and value > 0:
            trainer.runtime.strategy.clip(self, optimizer, value, algorithm)

    def toggle_optimizer(self, optimizer: Any) -> None:
        """Only this optimizer's parameters require gradients until `untoggle_optimizer`."""
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        others = [p for other in self.trainer.optimizers for group in other.param_groups for p in group["params"]]
        self._toggled = [(p, p.requires_grad) for p in others if id(p) not in mine]
        for parameter, _ in self._toggled:
            parameter.requires_grad = False

    def untoggle_optimizer(self, optimizer: Any) -> None:
        for parameter, required in self._toggled:
            parameter.requires_grad = required
        self._toggled = []

    @contextmanager
    def toggled_optimizer(self, optimizer: Any) -> Iterator[None]:
        self.toggle_optimizer(optimizer)
        try:
            yield
        finally:
            self.untoggle_optimizer(optimizer)

    def freeze(self) -> None:
        self.requires_grad_(False)
        self.eval()

    def unfreeze(self) -> None:
        self.requires_grad_(True)
        self.train()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_trainer": None}


LightningModule = Module  # as scripts for Lightning say
