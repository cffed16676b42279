"""`Trainer`: runs a Module. Arguments and attributes have the names that Lightning's Trainer has given them since
1.2.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import arguments
from .callbacks import EarlyStopping, ModelCheckpoint
from .callbacks.progress import Progress
from .checkpoint import state
from .data import divide_loader
from .errors import ConfigurationError
from .evaluate import EvaluationLoop
from .fit import FitLoop
from .handle import Runtime
from .hooks import find_hook
from .launch import watch
from .loggers import choose_loggers
from .metrics import Logs
from .optimizers import SchedulerConfig
from .seeding import separate_ranks
from .whereabouts import Whereabouts
from .whole import draw_alike, is_whole

if TYPE_CHECKING:
    from .module import Module


class Trainer(Whereabouts):
    """`fit`, `validate`, `test` and `predict`, on one process or many. What cannot be done is refused when it is
    asked for.
    """

    def __init__(
        self,
        *,
        accelerator: str | None = None,
        strategy: Any = None,
        devices: Any = None,
        gpus: Any = None,
        num_nodes: int = 1,
        precision: Any = None,
        max_epochs: int | None = None,
        min_epochs: int | None = None,
        max_steps: int = -1,
        min_steps: int | None = None,
        max_time: Any = None,
        limit_train_batches: float | None = None,
        limit_val_batches: float | None = None,
        limit_test_batches: float | None = None,
        limit_predict_batches: float | None = None,
        fast_dev_run: int | bool = False,
        val_check_interval: float | None = None,
        check_val_every_n_epoch: int | None = 1,
        num_sanity_val_steps: int | None = 0,
        reload_dataloaders_every_n_epochs: int = 0,
        accumulate_grad_batches: int | dict[int, int] = 1,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
        callbacks: Any = None,
        logger: Any = None,
        log_every_n_steps: int | None = 50,
        enable_checkpointing: bool | None = False,
        enable_progress_bar: bool | None = None,
        default_root_dir: Any = None,
        deterministic: Any = None,
        detect_anomaly: bool = False,
        use_distributed_sampler: bool = True,
        replace_sampler_ddp: bool = True,
        sync_batchnorm: bool = False,
        amp_backend: str | None = None,
        plugins: Any = None,
        global_batch: bool = False,
        **others: Any,
    ):
        arguments.check(others, list(inspect.signature(Trainer).parameters))
        if amp_backend not in (None, "native"):
            raise ConfigurationError(f"amp_backend={amp_backend!r} is not in this version; use 'native'")
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
        if fast_dev_run:
            max_steps = max_epochs = int(fast_dev_run)
            limit_train_batches = limit_val_batches = limit_test_batches = limit_predict_batches = int(fast_dev_run)
        self.max_epochs = arguments.epochs(max_epochs, max_steps, max_time)
        self.min_epochs, self.max_steps, self.min_steps = min_epochs, max_steps, min_steps
        self.max_time = arguments.checked_time(max_time)
        self.deterministic, self.detect_anomaly = deterministic, detect_anomaly
        self.fast_dev_run = fast_dev_run
        self.limits = {
            "train": arguments.checked_limit("limit_train_batches", limit_train_batches),
            "validate": arguments.checked_limit("limit_val_batches", limit_val_batches),
            "test": arguments.checked_limit("limit_test_batches", limit_test_batches),
            "predict": arguments.checked_limit("limit_predict_batches", limit_predict_batches),
        }
        self.val_check_interval = 1.0 if val_check_interval is None else val_check_interval
        self.check_val_every_n_epoch = check_val_every_n_epoch
        self.num_sanity_val_steps = num_sanity_val_steps or 0
        self.reload_dataloaders_every_n_epochs = reload_dataloaders_every_n_epochs
        self.accumulate_grad_batches = arguments.checked_accumulation(accumulate_grad_batches)
        self.gradient_clip_val = gradient_clip_val
        self.gradient_clip_algorithm = arguments.checked_algorithm(gradient_clip_algorithm)
        self.divides = use_distributed_sampler and replace_sampler_ddp
        self.whole = False  # in this fit every process computes every batch whole
        if sync_batchnorm and self.runtime.world_size > 1 and self.runtime.on_cpu:
            raise ConfigurationError("sync_batchnorm=True needs GPUs: torch's SyncBatchNorm does not run on the CPU")
        self.sync_batchnorm = sync_batchnorm
        self.log_every_n_steps = log_every_n_steps or 0
        self.default_root_dir = os.fspath(default_root_dir) if default_root_dir is not None else os.getcwd()
        if enable_checkpointing and not any(
            isinstance(cb, ModelCheckpoint) for cb in arguments.as_callbacks(callbacks)
        ):
            callbacks = [*arguments.as_callbacks(callbacks), ModelCheckpoint()]
        self.callbacks = arguments.as_callbacks(callbacks)
        self.loggers = choose_loggers(logger, self.default_root_dir)
        self.progress = Progress() if enable_progress_bar and self.runtime.rank == 0 else None
        self.module: Module | None = None
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_scheduler_configs: list[SchedulerConfig] = []
        self.train_dataloader: Any = None
        self.val_dataloaders: Any = None
        self.test_dataloaders: Any = None
        self.predict_dataloaders: Any = None
        self._callback_metrics: dict[str, Any] = {}
        self.logged_metrics: dict[str, Any] = {}
        self.progress_bar_metrics: dict[str, Any] = {}
        self.logs = Logs(self)
        self.fit_loop = FitLoop(self)
        self.should_stop = False
        self.state = "idle"  # fit, validate, test, predict
        self.sanity_checking = False

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
        runtime.strategy.check_run(self, model, "fit", resumes=ckpt_path is not None)
        train = train_dataloaders if train_dataloaders is not None else train_dataloader
        runtime.strategy.launch(self._fit, model, train, val_dataloaders, datamodule, ckpt_path, weights_only)

    def _fit(
        self, model: Module, train: Any, val_dataloaders: Any, datamodule: Any, ckpt_path: Any, weights_only: bool
    ) -> None:
        self._attach(model, "fit", datamodule)
        source = datamodule if datamodule is not None else model
        self.train_dataloader = train if train is not None else source.train_dataloader()
        self._loaders_of = source
        self.whole = is_whole(model, self.train_dataloader)
        draw_alike(self.runtime, self.whole)
        self.val_dataloaders = val_dataloaders if val_dataloaders is not None else source.val_dataloader()
        if self.train_dataloader is None:
            raise ConfigurationError("fit needs a loader: pass train_dataloaders or define train_dataloader")
        for logger in self.loggers if self.is_global_zero else ():
            logger.log_hyperparams(model.hparams)
        self._run(lambda: self.fit_loop.run(model, self.checkpoint_path(ckpt_path), weights_only), "fit")

    def validate(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None, **kwargs: Any
    ) -> list[dict]:
        """Evaluate with validation_step; the metrics, one dict a loader."""
        return self._launch_evaluation("validate", model, dataloaders, ckpt_path, **kwargs)

    def test(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None, **kwargs: Any
    ) -> list[dict]:
        """Evaluate with test_step; the metrics, one dict a loader."""
        return self._launch_evaluation("test", model, dataloaders, ckpt_path, **kwargs)

    def predict(
        self, model: Module | None = None, dataloaders: Any = None, ckpt_path: Any = None, **kwargs: Any
    ) -> list[Any]:
        """What predict_step gave for each batch, all of them in the loader's order on every rank; a list a loader
        if several.
        """
        return self._launch_evaluation("predict", model, dataloaders, ckpt_path, **kwargs)

    def _launch_evaluation(
        self, stage: str, model: Module | None, loaders: Any, ckpt_path: Any, datamodule: Any = None, **_: Any
    ) -> list[Any]:
        model = model if model is not None else self.module
        if model is None:
            raise ConfigurationError(f"{stage} needs a model: pass one, or fit one first")
        strategy = self.runtime.strategy
        strategy.check_run(self, model, stage, resumes=ckpt_path is not None)
        return strategy.launch(self._evaluate, stage, model, loaders, ckpt_path, datamodule)

    def _evaluate(self, stage: str, model: Module, loaders: Any, ckpt_path: Any, datamodule: Any) -> list[Any]:
        self._attach(model, stage, datamodule)
        source = datamodule if datamodule is not None else model
        short = "val" if stage == "validate" else stage
        if loaders is None:
            loaders = getattr(source, f"{short}_dataloader")()
        if loaders is None:
            raise ConfigurationError(f"{stage} needs a loader: pass dataloaders or define {short}_dataloader")
        setattr(self, f"{short}_dataloaders", loaders)
        loop = EvaluationLoop(self, stage)
        return self._run(lambda: loop.run_alone(model, loaders, ckpt_path), stage)

    def _attach(self, model: Module, stage: str, datamodule: Any) -> None:
        """Meet the other ranks, place the model, and call the hooks that come before everything else."""
        self.module, self.state = model, stage
        model.trainer = self
        self.runtime.connect()
        if stage != "fit" or model.divide_batches is True:
            separate_ranks(self.global_rank)
        for owner in filter(None, (datamodule, model)):
            if self.local_rank == 0:
                owner.prepare_data()
        self.runtime.barrier()
        if datamodule is not None:
            datamodule.trainer = self
        stage_setup = find_hook("setup", self, self.callbacks, model)
        for setup in filter(None, (getattr(datamodule, "setup", None), stage_setup)):
            setup(stage)
        self.runtime.precision.convert_module(model)
        self.runtime.strategy.place(model)
        if self.sync_batchnorm and self.world_size > 1:
            torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        if self.deterministic:
            torch.use_deterministic_algorithms(True, warn_only=self.deterministic == "warn")

    def _run(self, body: Callable[[], Any], stage: str) -> Any:
        assert self.module is not None
        try:
            with torch.autograd.set_detect_anomaly(self.detect_anomaly or torch.is_anomaly_enabled()):
                return body()
        except BaseException as error:
            watch.failed_at = self._where()
            self.call("on_exception", error)
            raise
        finally:
            self.runtime.forget_share()
            self.call("teardown", stage)
            self.state = "idle"
            if self.progress is not None:
                self.progress.stop()
            for logger in self.loggers if self.is_global_zero else ():
                logger.finalize("success")

    def _where(self) -> str:
        """For the message of a rank that fails: `epoch 2, batch 117`."""
        if self.state != "fit":
            return self.state
        within = "" if self.logs.training else " (validation)"
        return f"epoch {self.current_epoch}, batch {self.fit_loop.batch_idx}{within}"

    def hook(self, name: str) -> Callable[..., Any] | None:
        """All bodies of a hook as one call, or None where nobody has filled it."""
        return find_hook(name, self, self.callbacks, self.module)

    def call(self, name: str, *args: Any) -> Any:
        """A hook that is called now and then: looked up when it is called."""
        found = self.hook(name)
        return found(*args) if found is not None else None

    def reload_train_dataloader(self) -> Any:
        """This epoch's own loader, from `train_dataloader` of the module or datamodule; divided for this rank."""
        self.train_dataloader = self._loaders_of.train_dataloader()
        return self.divide(self.train_dataloader, train=True)

    def divide(self, loader: Any, train: bool, limit: int | None = None) -> Any:
        """`loader` for this rank. `train`: by the rule for training; else by that for evaluation."""
        if not self.divides:
            return loader
        if self.whole:
            return loader
        if not train and self.state == "fit" and self.module is not None and not self.module.divide_validation:
            self.runtime.sync_buffers()
            return loader
        return divide_loader(loader, self.runtime, train, limit)

    def publish(self, values: dict[str, Any], logged: dict[str, Any]) -> None:
        """The values of an epoch become callback_metrics and go to the loggers."""
        self.callback_metrics.update({name: torch.as_tensor(value) for name, value in values.items()})
        self.logs.published = True
        self.progress_bar_metrics.update(logged)
        if logged:
            self.send(logged, max(0, self.global_step - 1))

    @property
    def callback_metrics(self) -> dict[str, Any]:
        """The last value of every name: of the step while an epoch runs, of the epoch when it has ended."""
        if not self.logs.published:
            self._callback_metrics.update(self.logs.step_tensors())
        return self._callback_metrics

    def publish_step(self) -> None:
        """What was logged at the current step goes to the loggers."""
        values = self.logs.step_values()
        if values:
            self.send(values, self.global_step - 1)

    def send(self, values: dict[str, Any], step: int) -> None:
        """Numbers to the loggers; this is where a device is read."""
        numbers = {name: float(value) for name, value in values.items()}
        self.logged_metrics.update(numbers)
        if self.is_global_zero:
            for logger in self.loggers:
                logger.log_metrics({**numbers, "epoch": self.current_epoch}, step)

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop_epoch(self) -> None:
        """End this training epoch after the current batch's optimizer step; no further batch is drawn (a loop's
        `break`).

        All ranks must say so at the same batch: reduce what the decision hangs on with `all_reduce`.
        """
        self.fit_loop.epoch_ended = True

    @property
    def is_last_batch(self) -> bool:
        """Is this the epoch's last training batch? False while the loader's length is unknown."""
        return self.fit_loop.batch_idx + 1 == self.fit_loop.batches

    # -- saying and reducing --------------------------------------------------------------------------------------

    def print(self, *values: Any, **options: Any) -> None:
        """`print`, on rank 0."""
        self.runtime.print(*values, **options)

    def manual_backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        assert self.module is not None
        self.runtime.backward(loss, *args, loss_reduction=self.module.loss_reduction, **kwargs)

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def save_checkpoint(self, filepath: Any, weights_only: bool = False) -> None:
        """Write everything needed to go on; all ranks call it, rank 0 writes. The file is whole or absent."""
        state.save(self, filepath, weights_only)

    @property
    def checkpoint_callbacks(self) -> list[ModelCheckpoint]:
        return [callback for callback in self.callbacks if isinstance(callback, ModelCheckpoint)]

    @property
    def checkpoint_callback(self) -> ModelCheckpoint | None:
        return next(iter(self.checkpoint_callbacks), None)

    @property
    def early_stopping_callback(self) -> EarlyStopping | None:
        return next((callback for callback in self.callbacks if isinstance(callback, EarlyStopping)), None)

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
