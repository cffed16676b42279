"""What people write in their modules beside the steps: the same bodies on both sides, whose answers are compared."""

import os

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Callback, Module, Trainer
from sides import QUIET, Cases, check, common, data, fit, outcome, plain, rate
from torch.utils.data import DataLoader

case = Cases()


@case
def a_module_within_a_module_knows_the_trainer(side):
    class Head(side.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(8, 3), []

        def forward(self, x):
            self.seen.append((self.current_epoch, self.global_step, self.trainer.max_epochs, str(self.device)))
            return self.layer(x)

        def on_train_epoch_start(self):
            raise AssertionError("the hooks are those of the outer module")

    class Whole(common(side)):
        def __init__(self):
            super().__init__()
            self.net[3], self.head = torch.nn.Identity(), Head()

        def forward(self, x):
            return self.head(self.net(x))

    module, trainer = fit(side, Whole, {"max_epochs": 2})
    return outcome(module, trainer, seen=module.head.seen)


@case
def without_a_model_the_best_weights_are_tested(side):
    class Watched(common(side)):
        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]))

        def test_step(self, batch, batch_idx):
            self.log("t", F.cross_entropy(self(batch[0]), batch[1]))

        def on_load_checkpoint(self, checkpoint):
            self.note("loads", checkpoint["global_step"])

    best = side.ModelCheckpoint("c", monitor="v", mode="max", filename="{epoch}")
    module, trainer = fit(side, Watched, {"enable_checkpointing": True, "callbacks": [best], "max_epochs": 4})
    loader = DataLoader(data(33, 8), 10)
    results = [trainer.test(module, loader, verbose=False), trainer.test(dataloaders=loader, verbose=False)]
    return plain([results, module.calls, os.path.basename(best.best_model_path), os.path.basename(trainer.ckpt_path)])


@case
def arguments_of_hooks_under_names_of_their_own(side):
    class Names(common(side)):
        def on_before_batch_transfer(self, b, i):
            self.note("before", i)
            return b

        def transfer_batch_to_device(self, b, where, i):
            self.note(str(where), i)
            return b

        def on_after_batch_transfer(self, b, i):
            return b[0] * 2, b[1]

        def on_train_batch_start(self, b, i):
            self.note(i)

        def on_train_batch_end(self, o, b, i):
            self.note(o)

        def validation_step(self, b, i):
            self.log("v", F.cross_entropy(self(b[0]), b[1]))

        def optimizer_step(self, e, i, o, c):
            o.step(closure=c)

        def lr_scheduler_step(self, s, m):
            s.step()

        def configure_gradient_clipping(self, o, gradient_clip_val, gradient_clip_algorithm):
            self.clip_gradients(o, gradient_clip_val, gradient_clip_algorithm)

    return outcome(*fit(side, Names, {"max_epochs": 1, "gradient_clip_val": 0.1}))


@case
def what_a_closure_gives(side):
    class Closes(common(side)):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            if batch_idx % 3 == 2:
                self.note("no step", float(optimizer_closure()))
            else:
                self.note("step", float(optimizer.step(closure=optimizer_closure)))

    return [outcome(*fit(side, Closes, {"accumulate_grad_batches": number})) for number in (1, 2)]


@case
def gradients_in_a_validation_inside_of_a_fit(side):
    class Slopes(common(side)):
        def validation_step(self, batch, batch_idx):
            with torch.enable_grad():
                x = batch[0].clone().requires_grad_()
                (slope,) = torch.autograd.grad(F.cross_entropy(self(x), batch[1]), x)
            self.log("slope", slope.norm())
            self.note(torch.is_inference_mode_enabled(), torch.is_grad_enabled())

    return outcome(*fit(side, Slopes, {"inference_mode": True, "num_sanity_val_steps": 1, "max_epochs": 1}))


@case
def the_stage_of_the_trainer(side):
    class Stages(common(side)):
        def look(self, *_, **__):
            state = self.trainer.state
            self.note(*(str(getattr(word, "value", word)) for word in (state.fn, state.stage, state.status)))

        setup = on_train_start = on_validation_start = on_validation_end = on_train_epoch_end = look
        on_test_start = on_predict_start = look

        def validation_step(self, batch, batch_idx): ...

        def test_step(self, batch, batch_idx): ...

        def predict_step(self, batch, batch_idx): ...

    module, trainer = fit(side, Stages, {"max_epochs": 1, "num_sanity_val_steps": 1})
    for run in (trainer.validate, trainer.test, trainer.predict):
        run(module, DataLoader(data(9), 4))
    return [call for call in module.calls if isinstance(call, list)]


@case
def averaged_weights_are_swapped_in_for_validation(side):
    class Averaged(common(side)):
        def __init__(self):
            super().__init__()
            average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
            self.average = torch.optim.swa_utils.AveragedModel(self.net, multi_avg_fn=average)

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.average.update_parameters(self.net)

        def on_validation_epoch_start(self):
            self.kept = {name: value.clone() for name, value in self.net.state_dict().items()}
            self.net.load_state_dict(self.average.module.state_dict())

        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]))

        def on_validation_epoch_end(self):
            self.net.load_state_dict(self.kept)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.net.parameters(), 0.01)

    return outcome(*fit(side, Averaged, {"val_check_interval": 0.5}))


@case
def layers_that_thaw(side):
    class Thaws(common(side)):
        def __init__(self):
            super().__init__()
            self.net[0].requires_grad_(False)

        def on_train_epoch_start(self):
            if self.current_epoch == 1:
                self.net[0].requires_grad_(True)
                self.optimizers().add_param_group({"params": self.net[0].parameters(), "lr": 0.05})
            self.note(rate(self), len(self.trainer.optimizers[0].param_groups))

        def configure_optimizers(self):
            return torch.optim.SGD(self.net[3].parameters(), lr=0.1)

    return outcome(*fit(side, Thaws))


@case
def loaders_of_a_run_that_goes_on_are_made_for_its_epoch(side):
    made = []

    class Curriculum(common(side)):
        def train_dataloader(self):
            made.append([self.current_epoch, self.global_step])
            return DataLoader(data(20 + 10 * self.current_epoch), batch_size=5)

    options = {**QUIET, "reload_dataloaders_every_n_epochs": 1}
    first = side.Trainer(**{**options, "max_epochs": 2})
    first.fit(Curriculum())
    first.save_checkpoint("a.ckpt")
    module, second = Curriculum(), side.Trainer(**{**options, "max_epochs": 4})
    second.fit(module, ckpt_path="a.ckpt")
    return [made, len(module.calls), second.global_step, second.current_epoch]


@case
def nothing_of_the_sanity_check_is_shown_afterwards(side):
    class Looks(common(side)):
        def validation_step(self, batch, batch_idx):
            self.log("v", F.cross_entropy(self(batch[0]), batch[1]), on_step=True, on_epoch=True, prog_bar=True)

        def look(self):
            trainer = self.trainer
            self.note(sorted(trainer.callback_metrics), sorted(trainer.logged_metrics))
            self.note(sorted(trainer.progress_bar_metrics))

        on_train_start = on_train_epoch_start = on_train_epoch_end = look

    return outcome(*fit(side, Looks, {"num_sanity_val_steps": 2}))


@case
def a_head_that_a_checkpoint_brings(side):
    """What on_load_checkpoint adds to a module is trained by the optimizer."""

    class Grows(common(side)):
        grown = False

        def __init__(self):
            super().__init__()
            self.net[1].p = 0.0  # a resume goes on with the generators' states here

        def add_head(self):
            self.grown = True
            self.head = torch.nn.Linear(3, 3)
            torch.nn.init.eye_(self.head.weight)

        def forward(self, x):
            return self.head(self.net(x)) if self.grown else self.net(x)

        def on_load_checkpoint(self, checkpoint):
            self.note(list(self.trainer.optimizers), self.current_epoch)
            if "head.weight" in checkpoint["state_dict"]:
                self.add_head()

    module = Grows()
    module.add_head()
    trainer = side.Trainer(**{**QUIET, "max_epochs": 1})
    torch.manual_seed(4)
    trainer.fit(module, DataLoader(data(20), 8))
    trainer.save_checkpoint("grown.ckpt")
    again = Grows()
    trainer = side.Trainer(**{**QUIET, "max_epochs": 2})
    trainer.fit(again, DataLoader(data(20), 8), ckpt_path="grown.ckpt")
    return plain([again.calls[0], dict(again.state_dict()), again.head.weight.flatten().tolist()])


@case
def rates_that_a_monitor_has_seen(side):
    class Groups(common(side)):
        def configure_optimizers(self):
            first, last = self.net[0].parameters(), self.net[3].parameters()
            groups = [{"params": first, "name": "first"}, {"params": last, "lr": 0.3, "name": "last"}]
            return torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01)

    monitor = side.LearningRateMonitor("epoch", log_momentum=True, log_weight_decay=True)
    stops = side.EarlyStopping("loss", patience=2)
    fit(side, Groups, {"callbacks": [monitor], "logger": side.CSVLogger("."), "max_epochs": 1})
    kept = {name: value for name, value in stops.state_dict().items() if name in ("patience", "wait_count")}
    return plain([monitor.lrs, monitor.last_momentum_values, monitor.last_weight_decay_values, kept])


@case
def a_batch_sampler_s_own_sampler_hears_of_the_epoch(side):
    class Turns(torch.utils.data.Sampler):
        epoch = 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __iter__(self):
            return iter([(i + 3 * self.epoch) % 20 for i in range(20)])

        def __len__(self):
            return 20

    batches = torch.utils.data.BatchSampler(Turns(), 6, drop_last=False)
    return outcome(*fit(side, common(side), {}, (DataLoader(data(20), batch_sampler=batches),)))


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)


class Counts(Callback):
    """Lightning refuses two of a kind that have a state; here each keeps its own."""

    def __init__(self, step):
        self.step, self.count = step, 0

    def on_train_batch_end(self, *_):
        self.count += self.step

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state_dict):
        self.count = state_dict["count"]


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def test_callbacks_of_one_name_keep_their_own_states(tmp_path):
    def run(epochs, **more):
        callbacks = [Counts(1), Counts(10)]
        trainer = Trainer(**{**QUIET, "max_epochs": epochs}, callbacks=callbacks)
        trainer.fit(Net(), DataLoader(data(20), 8), **more)
        return trainer, [callback.count for callback in callbacks]

    trainer, counts = run(1)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    assert counts == [3, 30]
    assert run(2, ckpt_path=tmp_path / "a.ckpt")[1] == [6, 60]
