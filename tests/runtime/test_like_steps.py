"""Optimizers, schedules, closures, clipping and manual optimization, as Lightning has them."""

import pytest
import torch
import torch.nn.functional as F
from sides import Cases, check, common, data, fit, outcome, rate
from torch.utils.data import DataLoader

case = Cases()


@case
def outputs_dict(side):
    class M(common(side)):
        def training_step(self, b, i):
            return {"loss": self.loss(b), "x": 3} if i % 2 else self.loss(b)

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.note(outputs, sorted(outputs), outputs["loss"].requires_grad)

    return outcome(*fit(side, M, {"accumulate_grad_batches": 2}))


@case
def none_steps_zero_not_none(side):
    class M(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            return None if i % 3 == 0 else loss

        def optimizer_zero_grad(self, e, i, o):
            o.zero_grad(set_to_none=False)
            self.note("z")

        def on_before_zero_grad(self, o):
            self.note("bz")

        def on_before_optimizer_step(self, o):
            self.note("bo", self.net[0].weight.grad is None)

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.note(outputs)

    return outcome(*fit(side, M, {"accumulate_grad_batches": 2}))


@case
def schedulers_lr_logged(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.Adam(self.parameters(), lr=0.01)
            return [o], [
                {"scheduler": torch.optim.lr_scheduler.ExponentialLR(o, 0.7)},
                {
                    "scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(o, 30),
                    "interval": "step",
                    "frequency": 3,
                    "name": "x",
                },
            ]

        def on_train_batch_end(self, o, b, i):
            self.note("be", rate(self))

        def validation_step(self, b, i):
            self.log("lr", rate(self))

        def on_train_epoch_end(self):
            self.log("lr_end", rate(self))
            self.note("ee", rate(self))

    return outcome(*fit(side, M))


@case
def schedulers_accumulate_maxsteps(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.Adam(self.parameters(), lr=0.01)
            return [o], [
                {"scheduler": torch.optim.lr_scheduler.ExponentialLR(o, 0.7)},
                {"scheduler": torch.optim.lr_scheduler.LinearLR(o, total_iters=8), "interval": "step"},
            ]

        def on_train_batch_start(self, b, i):
            self.note("bs", rate(self))

    return outcome(*fit(side, M, {"accumulate_grad_batches": 4, "max_steps": 8, "max_epochs": -1}))


@case
def plateau_step_interval(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return {
                "optimizer": o,
                "lr_scheduler": {
                    "scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1),
                    "monitor": "tl",
                    "interval": "step",
                    "frequency": 2,
                },
            }

        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss)
            return loss

        def on_train_batch_start(self, b, i):
            self.note("bs", rate(self))

    return outcome(*fit(side, M))


@case
def plateau_nonstrict(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return {
                "optimizer": o,
                "lr_scheduler": {
                    "scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=9.0),
                    "monitor": "nope",
                    "strict": False,
                },
            }

    return outcome(*fit(side, M))


@case
def plateau_bare_monitor(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return {
                "optimizer": o,
                "lr_scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=9.0),
                "monitor": "vl",
            }

        def validation_step(self, b, i):
            self.log("vl", F.cross_entropy(self(b[0]), b[1]))

        def on_train_epoch_start(self):
            self.note(rate(self))

    return outcome(*fit(side, M))


@case
def plateau_train_epoch_metric(side):
    class M(common(side)):
        def training_step(self, b, i):
            loss = self.loss(b)
            self.log("tl", loss, on_step=False, on_epoch=True)
            return loss

        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return {
                "optimizer": o,
                "lr_scheduler": {
                    "scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=9.0),
                    "monitor": "tl",
                },
            }

        def on_train_epoch_start(self):
            self.note(rate(self))

    return outcome(*fit(side, M, loaders=(DataLoader(data(), 8),)))


@case
def custom_lr_step(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return [o], [torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.5**e)]

        def lr_scheduler_step(self, scheduler, metric):
            self.note("sched", metric)
            scheduler.step(epoch=self.current_epoch + 2)

        def on_train_epoch_start(self):
            self.note(rate(self))

    return outcome(*fit(side, M))


@case
def onecycle_estimated(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            n = self.trainer.estimated_stepping_batches
            self.note("n", int(n))
            return [o], [
                {"scheduler": torch.optim.lr_scheduler.OneCycleLR(o, 0.3, total_steps=int(n)), "interval": "step"}
            ]

    return outcome(*fit(side, M, {"accumulate_grad_batches": 3}))


@case
def sequential_lr(side):
    class M(common(side)):
        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            a, b = (
                torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=5),
                torch.optim.lr_scheduler.CosineAnnealingLR(o, 20),
            )
            return {
                "optimizer": o,
                "lr_scheduler": {
                    "scheduler": torch.optim.lr_scheduler.SequentialLR(o, [a, b], [5]),
                    "interval": "step",
                    "bogus": 1,
                },
            }

    return outcome(*fit(side, M))


@case
def lbfgs_hooks(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.net[1] = torch.nn.Identity()

        def configure_optimizers(self):
            return torch.optim.LBFGS(self.parameters(), lr=0.2, max_iter=4)

        def on_before_zero_grad(self, o):
            self.note("bz")

        def on_after_backward(self):
            self.note("ab")

        def on_before_optimizer_step(self, o):
            self.note("bo")

    return outcome(*fit(side, M, {"gradient_clip_val": 0.5}))


@case
def lbfgs_accumulate(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.net[1] = torch.nn.Identity()

        def configure_optimizers(self):
            return torch.optim.LBFGS(self.parameters(), lr=0.2, max_iter=3)

    return outcome(*fit(side, M, {"accumulate_grad_batches": 2}))


@case
def manual_gan(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.d = torch.nn.Linear(3, 1)

        def configure_optimizers(self):
            a = torch.optim.Adam(self.net.parameters(), 0.01)
            b = torch.optim.SGD(self.d.parameters(), 0.1)
            return [a, b], [
                torch.optim.lr_scheduler.StepLR(a, 1),
                {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(b, patience=0)},
            ]

        def training_step(self, batch, i):
            a, b = self.optimizers()
            x, _ = batch
            with a.toggle_model():
                loss = F.softplus(-self.d(self(x))).mean()
                self.note("rg", self.d.weight.requires_grad)
                a.zero_grad()
                self.manual_backward(loss)
                self.clip_gradients(a, gradient_clip_val=0.5, gradient_clip_algorithm="value")
                a.step()
            self.log("g", loss, prog_bar=True)
            self.toggle_optimizer(b)
            l2 = F.softplus(self.d(self(x).detach())).mean()
            b.zero_grad()
            self.manual_backward(l2)
            b.step()
            self.untoggle_optimizer(b)
            self.log("d", l2, on_step=True, on_epoch=True)
            self.note("gs", self.global_step)
            s1, s2 = self.lr_schedulers()
            if self.trainer.is_last_batch:
                s1.step()
                s2.step(l2.detach())
            return {"loss": loss, "q": 1}

        def on_before_optimizer_step(self, o):
            self.note("bo", type(o).__name__ == "x")

        def on_before_backward(self, loss):
            self.note("bb", loss)

        def on_after_backward(self):
            self.note("ab")

        def on_train_batch_end(self, o, b, i):
            self.note("be", o)

        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

    return outcome(*fit(side, M))


@case
def manual_bf16(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, b, i):
            o = self.optimizers()
            loss = self.loss(b)
            self.note(str(self(b[0]).dtype))
            o.zero_grad()
            self.manual_backward(loss)
            o.step()

    return outcome(*fit(side, M, {"precision": "bf16-mixed"}))


@case
def manual_accumulate_by_hand(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, b, i):
            o = self.optimizers()
            loss = self.loss(b) / 3
            self.manual_backward(loss)
            if (i + 1) % 3 == 0:
                o.step()
                o.zero_grad()

        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

    return outcome(*fit(side, M, loaders=(DataLoader(data(96), 8), DataLoader(data(20), 10))))


@case
def manual_clip_refused(side):
    class M(common(side)):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

    return outcome(*fit(side, M, {"gradient_clip_val": 1.0}))


@case
def own_clip2(side):
    class M(common(side)):
        def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
            self.clip_gradients(
                optimizer, gradient_clip_val=gradient_clip_val, gradient_clip_algorithm=gradient_clip_algorithm
            )
            self.note(self.net[0].weight.grad.norm())

    return outcome(*fit(side, M, {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"}))


@case
def own_optimizer_step_every2(side):
    class M(common(side)):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            if batch_idx % 2 == 0:
                optimizer.step(closure=optimizer_closure)
            else:
                optimizer_closure()
            self.note(self.global_step)

    return outcome(*fit(side, M))


@case
def own_optimizer_step_accumulates(side):
    """What comes before a step (the hook, clipping) comes before those that are made, not after every closure."""

    class M(common(side)):
        def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
            if batch_idx % 3 == 0:
                optimizer.zero_grad()

        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            if batch_idx % 3 == 2:
                optimizer.step(closure=optimizer_closure)
            else:
                optimizer_closure()

        def on_before_optimizer_step(self, optimizer):
            self.note(self.net[0].weight.grad.norm())

    return outcome(*fit(side, M, {"gradient_clip_val": 0.1}))


@case
def own_optimizer_step_after_its_closure(side):
    class M(common(side)):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            self.note(optimizer_closure())
            optimizer.step()
            self.lr_schedulers().step()

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), 0.05)
            return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]

        def on_before_optimizer_step(self, optimizer):
            self.note(self.net[0].weight.grad.norm(), rate(self))

    return outcome(*fit(side, M, {"gradient_clip_val": 0.1, "accumulate_grad_batches": 2}))


@case
def warmup_optimizer_step(side):
    class M(common(side)):
        def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):
            optimizer.step(closure=optimizer_closure)
            if self.trainer.global_step < 10:
                for g in optimizer.param_groups:
                    g["lr"] = 0.1 * (self.trainer.global_step + 1) / 10

    return outcome(*fit(side, M, {"gradient_clip_val": 0.3}))


@case
def own_backward(side):
    class M(common(side)):
        def backward(self, loss, *a, **k):
            self.note("bw", loss)
            loss.backward()

    return outcome(*fit(side, M))


@case
def skip_rest(side):
    class M(common(side)):
        def on_train_batch_start(self, b, i):
            return -1 if i == 4 + self.current_epoch else None

        def configure_optimizers(self):
            o = torch.optim.SGD(self.parameters(), lr=0.1)
            return [o], [torch.optim.lr_scheduler.StepLR(o, 1)]

        def validation_step(self, b, i):
            self.log("v", self(b[0]).sum())

        def on_train_epoch_end(self):
            self.note("ee", rate(self))

        def on_validation_start(self):
            self.note("vs")

    return outcome(*fit(side, M, {"accumulate_grad_batches": 3}))


@pytest.mark.parametrize("name", case)
def test_same(name, tmp_path, monkeypatch):
    check(case[name], tmp_path, monkeypatch)
