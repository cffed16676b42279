"""`Trainer`: runs a Module. Arguments and attributes have the names that Lightning's Trainer has given them since
1.2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from . import arguments, batch_norm
from .attach import State, attach, given_data
from .back import give_back
from .callbacks.progress import choose_progress
from .checkpoint import state
from .checkpoint.read import read
from .data import divide_loader
from .data.combined import as_combined
from .data.overfit import in_order
from .data.transfer import placer
from .errors import ConfigurationError
from .evaluate import EvaluationLoop
from .fit import FitLoop, accumulation
from .handle import Runtime
from .hooks import find_hook
from .in_order import InOrder
from .launch import watch
from .loggers import choose_loggers
from .loop_names import Phase
from .metrics import Logs
from .metrics.published import Published
from .optimizers import SchedulerConfig
from .options import Options
from .profilers import around, choose_profiler
from .summary import metrics_table, summary
from .whereabouts import Whereabouts
from .whole import draw_alike, draw_alike_again, is_whole, rank_zeros_draws

if TYPE_CHECKING:
    from .module import Module


class Trainer(Options, Whereabouts):
    """`fit`, `validate`, `test` and `predict`, on one process or many. What cannot be done is refused when it is
    asked for.
    """

    @arguments.in_any_spelling
    def __init__(
        self,
        *,
        accelerator: str | None = None,
        strategy: Any = None,
        devices: Any = None,
        gpus: Any = None,
        num_nodes: int = 1,
        precision: Any = None,
        amp_backend: str | None = None,
        plugins: Any = None,
        global_batch: bool = False,
        sync_batchnorm: bool | None = None,
        use_distributed_sampler: bool = True,
        replace_sampler_ddp: bool = True,
        multiple_trainloader_mode: str = "max_size_cycle",
        prepare_data_per_node: bool = True,
        reload_dataloaders_every_n_epochs: int = 0,
        max_epochs: int | None = None,
        min_epochs: int | None = None,
        max_steps: int | None = -1,
        min_steps: int | None = None,
        max_time: Any = None,
        limit_train_batches: float | None = None,
        limit_val_batches: float | None = None,
        limit_test_batches: float | None = None,
        limit_predict_batches: float | None = None,
        overfit_batches: float = 0.0,
        fast_dev_run: int | bool = False,
        val_check_interval: Any = None,
        check_val_every_n_epoch: int | None = 1,
        num_sanity_val_steps: int | None = 0,
        accumulate_grad_batches: int | dict[int, int] | None = 1,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
        callbacks: Any = None,
        logger: Any = None,
        profiler: Any = None,
        log_every_n_steps: int | None = 50,
        enable_checkpointing: bool | None = False,
        enable_progress_bar: int | bool | None = None,
        enable_model_summary: bool | None = None,
        enable_autolog_hparams: bool = True,
        default_root_dir: Any = None,
        resume_from_checkpoint: Any = None,
        deterministic: Any = None,
        benchmark: bool | None = None,
        inference_mode: bool = False,
        detect_anomaly: bool = False,
        barebones: bool = False,
        back_on_cpu: bool = False,
    ):
        asked = SimpleNamespace(**{name: value for name, value in locals().items() if name != "self"})
        self.take_options(asked)
        self.runtime = Runtime(
            accelerator,
            devices,
            strategy,
            gpus=gpus,
            num_nodes=num_nodes,
            precision=precision,
            global_batch=global_batch,
            plugins=plugins,
        )
        self.runtime.strategy.trainer = self
        # the same run needs the statistics of the whole batch
        self.sync_batchnorm = self.runtime.global_batch if sync_batchnorm is None else sync_batchnorm
        self.callbacks = arguments.with_checkpointing(callbacks, asked.enable_checkpointing)
        self.loggers = choose_loggers(asked.logger, self.default_root_dir)
        self.profiler = choose_profiler(profiler)
        self.progress = choose_progress(asked.enable_progress_bar, self.callbacks) if self.runtime.rank == 0 else None
        self._begin_empty()

    def _begin_empty(self) -> None:
        """What a run fills."""
        self.module: Module | None = None
        self.datamodule: Any = None
        self.optimizers: list[torch.optim.Optimizer] = []
        self.optimizer_frequencies: list[int] = []
        self.lr_scheduler_configs: list[SchedulerConfig] = []
        self.train_dataloader: Any = None
        self.val_dataloaders: Any = None
        self.test_dataloaders: Any = None
        self.predict_dataloaders: Any = None
        self.fit_loop = FitLoop(self)
        self.metrics = Published(self)
        self.logs = Logs(self)
        self.in_order = InOrder(self)
        self.should_stop = self.stop_agreed = False
        self.state = State("idle")  # fit, validate, test, predict
        self.sanity_checking = False
        self.ckpt_path: Any = None
        self.batch_indices: list[int] | None = None  # of the batch of `predict`, for BasePredictionWriter
        self.interrupted = self.received_sigterm = False

    # -- runs -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        model: Module,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        datamodule: Any = None,
        ckpt_path: Any = None,
        weights_only: bool = True,
        train_dataloader: Any = None,
    ) -> None:
        """Train `model`; validation runs inside the epochs when there is a validation loader and a validation_step.

        `ckpt_path`: go on where that checkpoint stands (a file, "last" or "best").
        """
        runtime = self.runtime
        ckpt_path = ckpt_path if ckpt_path is not None else self.resume_from_checkpoint
        runtime.strategy.check_run(self, model, "fit", resumes=ckpt_path is not None)
        train = train_dataloaders if train_dataloaders is not None else train_dataloader
        given = (model, train, val_dataloaders, datamodule, ckpt_path, weights_only)
        runtime.strategy.launch(self._run, "fit", self._fit, *given)

    def _fit(
        self, model: Module, train: Any, val_dataloaders: Any, datamodule: Any, ckpt_path: Any, weights_only: bool
    ) -> None:
        train, datamodule = given_data("train", train, datamodule)
        attach(self, model, "fit", datamodule)
        self.ckpt_path = self.checkpoint_path(ckpt_path)
        checkpoint = read(self.ckpt_path, weights_only) if self.ckpt_path is not None else None
        if checkpoint is not None:
            state.resume_data(self, checkpoint)
            self.runtime.strategy.place(model)  # what on_load_checkpoint has made
        source = self._loaders_of = datamodule if datamodule is not None else model
        self._made_loaders = [
            name for name, given in (("train_dataloader", train), ("val_dataloaders", val_dataloaders)) if given is None
        ]
        with rank_zeros_draws(self.runtime, not self._made_loaders):
            self.train_dataloader = train if train is not None else source.train_dataloader()
            self.val_dataloaders = val_dataloaders if val_dataloaders is not None else source.val_dataloader()
        if self.train_dataloader is None:
            raise ConfigurationError("fit needs a loader: pass train_dataloaders or define train_dataloader")
        self.whole = is_whole(model, self.train_dataloader, self.runtime)
        self.runtime.repeated = self.whole
        draw_alike(self.runtime, self.whole)
        if self.overfit_batches:
            self.train_dataloader = in_order(self.train_dataloader)
            self.val_dataloaders = in_order(self.val_dataloaders)
        self.log_hyperparameters(model)
        if self.summarizes:
            self.print(summary(model))
        self.fit_loop.run(model, checkpoint)
        draw_alike_again(self.runtime)

    def log_hyperparameters(self, model: Module) -> None:
        """As they were when they were kept. Raises ConfigurationError where module and datamodule do not agree."""
        owners = [owner for owner in (self.datamodule, model) if getattr(owner, "logs_hyperparameters", False)]
        given: dict[str, Any] = {}
        for owner in owners:
            for name, value in owner.hparams_initial.items():
                if name in given and given[name] != value:
                    raise ConfigurationError(
                        f"hyper-parameter {name!r} is {given[name]!r} in the datamodule and {value!r} in the module: "
                        "leave one out with save_hyperparameters(ignore=..., logger=False)"
                    )
                given[name] = value
        if not (self.is_global_zero and self.enable_autolog_hparams):
            return
        for logger in self.loggers:
            if given:
                logger.log_hyperparams(given)
            if hasattr(logger, "log_graph"):
                logger.log_graph(model)
            if hasattr(logger, "save"):
                logger.save()

    def validate(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None, **more: Any
    ) -> list[dict]:
        """Evaluate with validation_step; the metrics, one dict a loader. `more`: datamodule, weights_only, and verbose
        (by default the metrics are printed).
        """
        return self._launch_evaluation("validate", model, dataloaders, ckpt_path, **more)

    def test(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None, **more: Any
    ) -> list[dict]:
        """Evaluate with test_step; the metrics, one dict a loader. `more`: as `validate`'s."""
        return self._launch_evaluation("test", model, dataloaders, ckpt_path, **more)

    def predict(
        self,
        model: Module | None = None,
        dataloaders: Any = None,
        ckpt_path: Any = None,
        return_predictions: bool | None = None,
        **more: Any,
    ) -> Any:
        """What predict_step gave for each batch, all of them in the loader's order on every rank; a list a loader
        if several. `more`: datamodule, weights_only.
        """
        predictions = self._launch_evaluation("predict", model, dataloaders, ckpt_path, **more)
        return predictions if return_predictions is not False else None

    def _launch_evaluation(self, stage: str, model: Module | None, loaders: Any, ckpt_path: Any, **more: Any) -> Any:
        """Where neither a loader nor a datamodule is given, `_evaluate` asks those that are known."""
        loaders, datamodule, weights_only = arguments.of_evaluation(stage, loaders, more)
        if model is None:
            model, ckpt_path = self.module, self.best_so_far(stage) if ckpt_path is None else ckpt_path
        if model is None:
            raise ConfigurationError(f"{stage} needs a model: pass one, or fit one first")
        strategy = self.runtime.strategy
        strategy.check_run(self, model, stage, resumes=ckpt_path is not None)
        given = (stage, model, loaders, ckpt_path, datamodule, weights_only)
        results = strategy.launch(self._run, stage, self._evaluate, *given)
        if stage != "predict" and more.get("verbose") is not False and any(results):
            self.print(metrics_table(stage, results))
        return results

    def _evaluate(
        self, stage: str, model: Module, loaders: Any, ckpt_path: Any, datamodule: Any, weights_only: bool
    ) -> list[Any]:
        short = "val" if stage == "validate" else stage
        loaders, datamodule = given_data(short, loaders, datamodule)
        datamodule = datamodule if datamodule is not None or loaders is not None else self.datamodule
        attach(self, model, stage, datamodule)
        if ckpt_path is not None:
            self.ckpt_path = self.checkpoint_path(ckpt_path)
            state.load_to_evaluate(self, read(self.ckpt_path, weights_only))
        source = datamodule if datamodule is not None else model
        if loaders is None:
            loaders = getattr(source, f"{short}_dataloader")()
        if loaders is None:
            raise ConfigurationError(f"{stage} needs a loader: pass dataloaders or define {short}_dataloader")
        setattr(self, f"{short}_dataloaders", loaders)
        return EvaluationLoop(self, stage).run_alone(model, loaders)

    def _run(self, stage: str, body: Callable[..., Any], *args: Any) -> Any:
        """`body`, and after it what has to be done however it ended."""
        self.metrics.clear()
        if getattr(self.profiler, "measures", True) and hasattr(self.profiler, "setup"):
            self.profiler.setup(stage=stage, local_rank=self.local_rank, log_dir=self.log_dir)
        ended = "success"
        try:
            with torch.autograd.set_detect_anomaly(self.detect_anomaly or torch.is_anomaly_enabled()):
                return body(*args)
        except BaseException as error:
            watch.failed_at = self._where()
            batch_norm.explain(error, self.world_size > 1)
            ended, self.interrupted = "failed", isinstance(error, KeyboardInterrupt)
            self.call("on_exception", error)
            if self.datamodule is not None:
                self.datamodule.on_exception(error)
            raise
        finally:
            self.runtime.forget_share()
            if self.datamodule is not None:
                self.datamodule.teardown(stage)
            self.call("teardown", stage)
            if self.back_on_cpu and self.module is not None:
                with suppress(Exception) if ended == "failed" else nullcontext():  # that error is to be seen
                    give_back(self.module)
                    self.runtime.models_on_cpu = True
            self.state = State("idle")
            if self.progress is not None:
                self.progress.stop()
            if self.is_global_zero:
                self.profiler.describe()
            for logger in self.loggers if self.is_global_zero else ():
                logger.finalize(ended)

    def _where(self) -> str:
        """For the message of a rank that fails: `epoch 2, batch 117`."""
        if self.state != "fit":
            return self.state
        within = "" if self.logs.training else " (validation)"
        batch = self.fit_loop.batch_idx if self.fit_loop.phase >= Phase.STARTED else -1
        return f"epoch {self.current_epoch}, batch {batch}{within}"

    def hook(self, name: str) -> Callable[..., Any] | None:
        """All bodies of a hook as one call, or None where nobody has filled it."""
        found = find_hook(name, self, self.callbacks, self.module)
        return found and around(self.profiler, name, found)

    def call(self, name: str, *args: Any) -> Any:
        """A hook that is called now and then: looked up when it is called."""
        found = self.hook(name)
        return found(*args) if found is not None else None

    def reload_train_dataloader(self) -> Any:
        """This epoch's own loader, from the module or datamodule where it has it; divided for this rank."""
        if "train_dataloader" in self._made_loaders:
            with rank_zeros_draws(self.runtime, self.whole):
                self.train_dataloader = self._loaders_of.train_dataloader()
        return self.divide(self.train_dataloader, train=True)

    def reload_validation_dataloaders(self) -> None:
        if "val_dataloaders" in self._made_loaders:
            with rank_zeros_draws(self.runtime, self.whole):
                self.val_dataloaders = self._loaders_of.val_dataloader()

    def placer(self, index: int = 0) -> Callable[[Any], Any] | None:
        """What brings a batch to the device; None where nothing has to be done."""
        assert self.module is not None
        return placer(self.runtime, self.module, self.datamodule, index)

    def divide(self, loader: Any, train: bool, limit: int | None = None) -> Any:
        """`loader` for this rank. `train`: by the rule for training; else by that for evaluation."""
        if not self.divides or self.whole:
            return as_combined(loader, self.multiple_trainloader_mode) or loader
        if not train and self.validates_whole:
            self.runtime.sync_buffers()
            return loader
        combined = as_combined(loader, self.multiple_trainloader_mode)
        if combined is None:
            return divide_loader(loader, self.runtime, train, limit, moves=False)
        _, parts = self.runtime.strategy.data_place()
        one = lambda each: divide_loader(each, self.runtime, train, limit, moves=False, alone=False)  # noqa: E731
        return combined.divided(one, self.runtime, 1 if self.runtime.global_batch else parts)

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop_epoch(self) -> None:
        """End this training epoch after the current batch's optimizer step; no further batch is drawn (a loop's
        `break`).

        All ranks must say so at the same batch: reduce what the decision hangs on with `all_reduce`.
        """
        self.fit_loop.epoch_ended = True

    def skip_epoch(self) -> None:
        """From `on_train_epoch_start`: nothing of this epoch but that hook is run, no batch is drawn (a loop's
        `continue`).

        All ranks must say so alike.
        """
        self.fit_loop.skipped = True

    @property
    def is_last_batch(self) -> bool:
        """Is this the epoch's last training batch?"""
        loop = self.fit_loop
        asks = loop.ahead is not None and loop.phase == Phase.STARTED and loop.batch_idx >= 0
        return loop.last or (asks and loop.ahead.ends())  # type: ignore[union-attr]

    @property
    def accumulate_grad_batches(self) -> int:
        """Batches a step, in this epoch."""
        return accumulation(self.accumulation_table, self.current_epoch)

    @accumulate_grad_batches.setter
    def accumulate_grad_batches(self, value: int | dict[int, int]) -> None:
        """Counts from the next epoch on."""
        self.accumulation_table = arguments.checked_accumulation(value)

    # -- saying and reducing --------------------------------------------------------------------------------------

    def print(self, *values: Any, **options: Any) -> None:
        """`print`, on rank 0."""
        self.runtime.print(*values, **options)

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def save_checkpoint(self, filepath: Any, weights_only: bool = False) -> None:
        """Write everything needed to go on; all ranks call it, rank 0 writes. The file is whole or absent."""
        around(self.profiler, "save_checkpoint", state.save)(self, filepath, weights_only)

    def best_so_far(self, stage: str) -> str | None:
        """What is evaluated where no model is given, as in Lightning: "best", where a ModelCheckpoint has one."""
        if not any(callback.best_model_path for callback in self.checkpoint_callbacks):
            return None
        self.print(f"{stage} without a model: the weights are those of ckpt_path='best'", file=sys.stderr)
        return "best"

    def checkpoint_path(self, name: Any) -> Any:
        """A path as it is; "best" and "last" as ModelCheckpoint's. Raises ConfigurationError where there is none.

        "last" finds what an earlier process has written; a fit without any begins at the beginning, so that a script
        that is started again goes on.
        """
        if name not in ("best", "last"):
            return name
        paths = [getattr(cb, f"{name}_model_path") for cb in self.checkpoint_callbacks]
        found = next((path for path in paths if path), None)
        if found is None and name == "last":
            found = self.runtime.broadcast(
                next(filter(None, (cb.last_there() for cb in self.checkpoint_callbacks)), None)
            )
            if found is None and self.state == "fit" and self.checkpoint_callbacks:
                self.print("ckpt_path='last': there is none yet, so training begins at the beginning", file=sys.stderr)
                return None
        if found is None:
            raise ConfigurationError(f"ckpt_path={name!r}: no ModelCheckpoint has written one yet")
        return found
