"""Modules and trainers put together from parts: Lightning and this package train them alike.

A long form of it: FUZZ=1. Left out is what differs on purpose: gradients added by hand that a validation would drop,
the last checkpoint of a fast run.
"""

import os

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sides import check, common, data, fit, outcome, plain
from torch.optim import SGD, lr_scheduler
from torch.utils.data import DataLoader, IterableDataset

SOME = settings(
    max_examples=600 if os.environ.get("FUZZ") else 25,
    deadline=None,
    derandomize=not os.environ.get("FUZZ"),
    suppress_health_check=list(HealthCheck),
)
HOOKS = [
    *("setup", "on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_batch_start", "on_before_backward"),
    *(
        "on_before_zero_grad",
        "on_after_backward",
        "on_before_optimizer_step",
        "on_train_batch_end",
        "on_train_epoch_end",
    ),
    *("on_validation_start", "on_validation_epoch_start", "on_validation_batch_start", "on_validation_batch_end"),
    *("on_validation_epoch_end", "on_validation_end", "on_train_end", "on_fit_end", "on_test_epoch_end", "teardown"),
    *("on_predict_batch_end", "on_sanity_check_end", "on_save_checkpoint"),
]
OPTIMIZERS = {
    "plain": lambda sgd: sgd,
    "a schedule of epochs": lambda sgd: ([sgd], [lr_scheduler.StepLR(sgd, 1, 0.5)]),
    "a schedule of steps": lambda sgd: (
        [sgd],
        [{"scheduler": lr_scheduler.ExponentialLR(sgd, 0.9), "interval": "step"}],
    ),
    "every other epoch": lambda sgd: {
        "optimizer": sgd,
        "lr_scheduler": {"scheduler": lr_scheduler.ExponentialLR(sgd, 0.9), "frequency": 2},
    },
    "on a value": lambda sgd: {
        "optimizer": sgd,
        "lr_scheduler": {
            "scheduler": lr_scheduler.ReduceLROnPlateau(sgd, patience=0),
            "monitor": "train",
            "strict": False,
        },
    },
    "a closure": lambda sgd: torch.optim.LBFGS(sgd.param_groups[0]["params"], 0.1, max_iter=3),
    "by hand": lambda sgd: sgd,
    "two by hand": lambda sgd: (sgd, SGD(sgd.param_groups[0]["params"], 0.01)),
}
LOADERS = {
    "plain": lambda side: DataLoader(data(37), 6),
    "shuffled": lambda side: DataLoader(data(37), 6, shuffle=True, drop_last=True),
    "endless": lambda side: DataLoader(Streamed(), 6),
    "two": lambda side: [DataLoader(data(37), 6), DataLoader(data(20, 2), 4)],
    "the shorter": lambda side: side.CombinedLoader([DataLoader(data(37), 6), DataLoader(data(20, 2), 4)], "min_size"),
}
CALLBACKS = {
    "stopping": lambda side: side.EarlyStopping("train", patience=1, min_delta=0.05, strict=False),
    "best": lambda side: side.ModelCheckpoint("best", monitor="train_epoch", save_top_k=2),
    "every": lambda side: side.ModelCheckpoint("every", save_top_k=-1, every_n_train_steps=4, save_last=True),
    "averaging": lambda side: side.callbacks.StochasticWeightAveraging(swa_lrs=0.05, swa_epoch_start=1),
    "growing": lambda side: side.callbacks.GradientAccumulationScheduler({0: 1, 1: 3}),
}
OPTIONS = {
    "max_epochs": [1, 2, 4],
    "max_steps": [3, 9, 20],
    "min_epochs": [2],
    "accumulate_grad_batches": [2, 4],
    "gradient_clip_val": [0.2, 0],
    "limit_train_batches": [3, 1],
    "limit_val_batches": [0.5, 1, 0],
    "val_check_interval": [0.5, 2],
    "check_val_every_n_epoch": [2],
    "num_sanity_val_steps": [1, -1],
    "log_every_n_steps": [1, 3],
    "precision": ["bf16-mixed", "64-true"],
    "overfit_batches": [2],
    "fast_dev_run": [True, 2],
}
REDUCED = st.sampled_from(["mean", "sum", "min", "max"])
LOGGED = st.fixed_dictionaries({}, optional={"prog_bar": st.booleans(), "reduce_fx": REDUCED, "batch_size": st.just(3)})
PARTS = {
    "optimizer": st.sampled_from(list(OPTIMIZERS)),
    "loader": st.sampled_from(list(LOADERS)),
    "validated": st.integers(0, 2),
    "returned": st.sampled_from(["loss", "dict", "sometimes"]),
    "hooks": st.lists(st.sampled_from(HOOKS), unique=True),
    "of the callback": st.lists(st.sampled_from(HOOKS), unique=True),
    "stops": st.sampled_from([None, None, None, "on_train_epoch_start", "on_train_batch_end", "on_validation_end"]),
    "logs": st.fixed_dictionaries({"train": LOGGED, "val": LOGGED, "batch": LOGGED}),
    "callbacks": st.lists(st.sampled_from(list(CALLBACKS)), unique=True, max_size=2),
    "options": st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in OPTIONS.items()}),
    "after": st.lists(st.sampled_from(["validate", "test", "predict"]), unique=True),
    "table": st.booleans(),
}


class Streamed(IterableDataset):
    def __iter__(self):
        yield from data(37)


def samples(batch):
    """The first (x, y) in a batch of one or several loaders."""
    while not isinstance(batch[0], torch.Tensor):
        batch = batch[0]
    return batch


def noting(name, old, stops):
    def hook(self, *args, **kwargs):
        trainer = self.trainer
        numbers = [arg for arg in args if isinstance(arg, int)]
        self.note(name, trainer.global_step, trainer.current_epoch, trainer.training, trainer.validating, numbers)
        if name == stops and trainer.global_step > 4:
            trainer.should_stop = True
        return old(self, *args, **kwargs) if old is not None else None

    return hook


def module_of(side, parts):
    by_hand = "by hand" in parts["optimizer"]

    class Generated(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = not by_hand

        def training_step(self, batch, batch_idx):
            x, y = samples(batch)
            loss = self.loss((x.to(self.net[0].weight.dtype), y))
            self.log("train", loss, on_step=True, on_epoch=True, **parts["logs"]["train"])
            self.log("batch", batch_idx + 0.5, **parts["logs"]["batch"])
            if by_hand:
                self.manual_backward(loss)
                for optimizer in optimizers if isinstance(optimizers := self.optimizers(), list) else [optimizers]:
                    optimizer.step()
                    optimizer.zero_grad()
            sometimes = parts["returned"] == "sometimes" and parts["optimizer"] != "a closure"
            if sometimes and batch_idx % 3 == 1:
                return None
            return {"loss": loss, "x": 1} if parts["returned"] == "dict" else loss

        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            self.log("val", self.loss((batch[0].to(self.net[0].weight.dtype), batch[1])), **parts["logs"]["val"])

        def test_step(self, batch, batch_idx):
            self.log("test", self.loss((batch[0].to(self.net[0].weight.dtype), batch[1])))

        def predict_step(self, batch, batch_idx):
            return self(batch[0].to(self.net[0].weight.dtype)).sum(1)

        def configure_optimizers(self):
            return OPTIMIZERS[parts["optimizer"]](super().configure_optimizers())

    stops = parts["stops"]
    for name in {*parts["hooks"], *([stops] if stops else [])} - {"on_sanity_check_end"}:
        setattr(Generated, name, noting(name, getattr(Generated, name), stops))
    return Generated()


def callback_of(side, parts, module):
    def calling(name):
        return lambda self, trainer, *args, **kwargs: module.note("callback", name, trainer.global_step)

    names = [name for name in parts["of the callback"] if name != "on_save_checkpoint"]
    return type("Noting", (side.Callback,), {name: calling(name) for name in names})()


def case_of(parts):
    def case(side):
        module = module_of(side, parts)
        kept = [CALLBACKS[name](side) for name in parts["callbacks"]]
        checkpoints = {"enable_checkpointing": bool({"best", "every"} & {*parts["callbacks"]})}
        table = {"logger": side.CSVLogger("logs")} if parts["table"] else {}
        options = {**checkpoints, **table, **parts["options"], "callbacks": [callback_of(side, parts, module), *kept]}
        evaluated = [DataLoader(data(21, 9), 5), DataLoader(data(9, 3), 5)][: parts["validated"]]
        module, trainer = fit(side, lambda: module, options, (LOADERS[parts["loader"]](side), evaluated or None))
        files = {folder: sorted(os.listdir(folder)) for folder in ("best", "every") if os.path.isdir(folder)}
        results = {
            name: plain(
                getattr(trainer, name)(module, DataLoader(data(21, 9), 5), **({} if name == "predict" else QUIETLY))
            )
            for name in parts["after"]
        }
        return outcome(
            module, trainer, files=files, results=results, modes=[part.training for part in module.modules()]
        )

    return case


QUIETLY = {"verbose": False}


@pytest.mark.slow
@given(parts=st.fixed_dictionaries(PARTS))
@SOME
def test_the_same(parts, tmp_path_factory):
    assume(not ("every" in parts["callbacks"] and "fast_dev_run" in parts["options"]))
    with pytest.MonkeyPatch.context() as patch:
        check(case_of(parts), tmp_path_factory.mktemp("case"), patch)
