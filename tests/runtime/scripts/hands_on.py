"""What users' own code reads of weights and gradients, and does to them, between the lines of the loop:
`hands_on.py CASE...` prints, as JSON, the weights and what each case has seen, or why it was refused. The numbers must
be those of one process.
"""

import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Callback, DeepSpeedStrategy, Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        layers = nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3)
        self.sequential_module, self.seen = nn.Sequential(*layers), []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.2, momentum=0.9)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.sequential_module(batch[0]), batch[1])

    def norm(self, what="weight"):
        parts = [p if what == "weight" else p.grad for p in self.parameters()]
        self.seen.append(float(sum(float(part.detach().norm()) ** 2 for part in parts)))

    def clamp(self):
        for parameter in self.parameters():
            parameter.data.clamp_(-0.2, 0.2)


class Reads(Net):
    def on_fit_start(self):
        self.norm()

    def on_train_batch_start(self, *_):
        self.norm()

    def on_train_batch_end(self, *_):
        if self.trainer.global_rank == 0:  # one rank alone
            self.seen.append(float(self.sequential_module[4].bias.detach().sum()))

    def on_train_epoch_end(self):
        self.norm()
        self.seen.append(float(self.sequential_module(torch.ones(2, 4)).detach().sum()))


class ClampsAfter(Net):
    def on_train_batch_end(self, *_):
        self.clamp()


class ClampsBefore(Net):
    def on_train_batch_start(self, *_):
        self.clamp()


class ClampsInItsStep(Net):
    def optimizer_step(self, epoch, batch_idx, optimizer, closure):
        optimizer.step(closure=closure)
        self.clamp()


class ClampsByHand(Net):
    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(Net.training_step(self, batch, batch_idx))
        optimizer.step()
        self.clamp()


class Norms(Net):
    """Prototypes of length 1 before each batch."""

    def training_step(self, batch, batch_idx):
        with torch.no_grad():
            rows = self.sequential_module[4].weight
            rows.copy_(F.normalize(rows.clone(), dim=1))
        return super().training_step(batch, batch_idx)


class Teaches(Net):
    """A teacher that follows: its tensors are exchanged in the step."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Linear(4, 6)
        self.teacher.requires_grad_(False)

    def training_step(self, batch, batch_idx):
        with torch.no_grad():
            for mine, theirs in zip(self.teacher.parameters(), self.sequential_module[0].parameters(), strict=True):
                mine.data = mine.data * 0.8 + theirs.data * 0.2
            aim = self.teacher(batch[0])
        return super().training_step(batch, batch_idx) + F.mse_loss(self.sequential_module[0](batch[0]), aim)


class ReadsGradients(Net):
    def on_after_backward(self):
        self.norm("gradient")

    def on_before_optimizer_step(self, optimizer):
        self.norm("gradient")
        self.seen.append(float(sum(p.grad.norm() ** 2 for g in optimizer.param_groups for p in g["params"])))


class ChangesGradients(Net):
    def on_after_backward(self):
        for parameter in self.parameters():
            parameter.grad.mul_(0.5).clamp_(-0.01, 0.01)

    def on_before_optimizer_step(self, optimizer):
        for parameter in self.parameters():
            parameter.grad = parameter.grad + 0.01 * parameter.detach()


class ChangesByHand(ClampsByHand):
    def clamp(self): ...

    def on_before_optimizer_step(self, optimizer):
        self.norm("gradient")
        for parameter in self.parameters():
            parameter.grad.clamp_(-0.01, 0.01)


class ClipsByHand(ClampsByHand):
    """torch's own clipping, between backward and step."""

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(Net.training_step(self, batch, batch_idx))
        nn.utils.clip_grad_norm_(self.parameters(), 0.05)
        optimizer.step()


class ReadsByHand(Net):
    """In a function of its own, between backward and step."""

    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(Net.training_step(self, batch, batch_idx))
        largest(self)
        optimizer.step()


def largest(module):
    module.seen += [float(p.grad.abs().max()) for p in module.parameters() if p.grad is not None]


class ZeroesByHand(Net):
    """What the first backward brings is thrown away."""

    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        self.zero_grad()  # nothing waits: every engine can
        self.manual_backward(Net.training_step(self, batch, batch_idx) * 2)
        self.sequential_module.zero_grad()
        self.manual_backward(Net.training_step(self, batch, batch_idx))
        optimizer.step()


class ZeroesAtOnce(Net):
    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        self.manual_backward(Net.training_step(self, batch, batch_idx))
        optimizer.step()
        self.zero_grad()


class TakesTurns(Net):
    """Gradients of the one optimizer, and those that the other has had last."""

    def configure_optimizers(self):
        halves = self.sequential_module[:3], self.sequential_module[3:]
        return [torch.optim.SGD(half.parameters(), 0.2) for half in halves], []

    def training_step(self, batch, batch_idx, optimizer_idx):
        return super().training_step(batch, batch_idx)

    def on_after_backward(self):
        largest(self)


class ReadsAfter(Net):
    def on_train_batch_end(self, *_):
        self.seen += [float(p.grad.norm()) for p in self.parameters() if p.grad is not None]


class Clips(Net):
    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        self.seen.append(float(nn.utils.clip_grad_norm_(self.parameters(), 0.1)))


class ClipsHalf(Net):
    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        self.clip_gradients(optimizer, gradient_clip_val=0.05, gradient_clip_algorithm="norm")


class Hooked(Net):
    """Hooks on parameters, from before the fit and from its start."""

    def __init__(self):
        super().__init__()
        self.sequential_module[0].weight.register_hook(lambda gradient: gradient * 0.5)

    def on_fit_start(self):
        self.sequential_module[2].weight.register_hook(lambda gradient: gradient * 0.1)


class Skips(Net):
    """A backward whose gradients no step takes."""

    def optimizer_step(self, epoch, batch_idx, optimizer, closure):
        if batch_idx % 2:
            closure()
        else:
            optimizer.step(closure=closure)


class Average(Callback):
    """The average of the weights, which validation is made with."""

    def on_train_batch_end(self, trainer, module, *_):
        now = {name: value.detach().clone() for name, value in module.named_parameters()}
        before = getattr(self, "average", now)
        self.average = {name: 0.9 * before[name] + 0.1 * value for name, value in now.items()}

    def on_validation_start(self, trainer, module):
        self.kept = {name: value.detach().clone() for name, value in module.named_parameters()}
        for name, value in module.named_parameters():
            value.data.copy_(self.average[name])

    def on_validation_end(self, trainer, module):
        for name, value in module.named_parameters():
            value.data.copy_(self.kept[name])


class Validates(Net):
    def validation_step(self, batch, batch_idx):
        self.log("val_loss", super().training_step(batch, batch_idx), sync_dist=True)

    def on_validation_epoch_end(self):
        self.seen.append(float(self.trainer.callback_metrics.get("val_loss", 0.0)))


class Penalized(Net):
    """The loss has a part that is of the weights alone."""

    def training_step(self, batch, batch_idx):
        return super().training_step(batch, batch_idx) + 0.01 * self.sequential_module[2].weight.abs().sum()


class ReadsEach(Net):
    """Batches are accumulated: gradients after each of them, and weights between them."""

    def on_after_backward(self):
        self.norm("gradient")

    def on_train_batch_end(self, *_):
        self.norm()


class ReadsBetween(Net):
    """Gradients of batches that are accumulated, after each of them and in no hook around backward."""

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx % 3 != 2:
            held = [p.grad for p in self.parameters() if p.grad is not None]
            self.seen.append(float(sum(float(part.norm()) ** 2 for part in held)))


class ClampsEach(Net):
    def on_after_backward(self):
        for parameter in self.parameters():
            parameter.grad.clamp_(-0.01, 0.01)


class ReadsWeights(Net):
    """Between batches that are accumulated."""

    def on_train_batch_end(self, *_):
        self.norm()


class CutShort(Net):
    """The epoch ends in the middle of what is accumulated: the next one begins without it."""

    def on_train_batch_start(self, batch, batch_idx):
        return -1 if batch_idx == 1 and self.current_epoch == 0 else None


class AccumulatesItself(Net):
    """Gradients that a backward has left, and the next one adds to."""

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        if batch_idx % 2 == 0:
            optimizer.zero_grad()

    def optimizer_step(self, epoch, batch_idx, optimizer, closure):
        if batch_idx % 2:
            optimizer.step(closure=closure)
        else:
            closure()


class Halves(Net):
    """Gradients are never zeroed."""

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(0.5)


class Exchanges(Net):
    """Weights are given other tensors."""

    def on_train_batch_end(self, *_):
        for parameter in self.parameters():
            parameter.data = parameter.data.clamp(-0.2, 0.2)


class ThawsByHand(Net):
    """A layer joins what a module's own steps train."""

    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.sequential_module[0].requires_grad_(False)

    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            self.sequential_module[0].requires_grad_(True)

    training_step = ClampsByHand.training_step

    def clamp(self): ...


def loader(samples, shuffle=False):
    torch.manual_seed(samples)
    return DataLoader(TensorDataset(torch.randn(samples, 4), torch.randint(0, 3, (samples,))), 8, shuffle=shuffle)


CASES = {
    "reads": Reads,
    "clamps_after": ClampsAfter,
    "clamps_before": ClampsBefore,
    "clamps_in_its_step": ClampsInItsStep,
    "clamps_by_hand": ClampsByHand,
    "norms": Norms,
    "teaches": Teaches,
    "reads_gradients": ReadsGradients,
    "changes_gradients": ChangesGradients,
    "changes_by_hand": ChangesByHand,
    "clips": Clips,
    "clips_by_hand": ClipsByHand,
    "reads_by_hand": ReadsByHand,
    "zeroes_by_hand": ZeroesByHand,
    "zeroes_at_once": ZeroesAtOnce,
    "reads_after": ReadsAfter,
    "takes_turns": TakesTurns,
    "clips_half": ClipsHalf,
    "hooked": Hooked,
    "skips": Skips,
    "averages": Validates,
    "penalized": Penalized,
    "reads_each": ReadsEach,
    "reads_between": ReadsBetween,
    "clamps_each": ClampsEach,
    "reads_weights": ReadsWeights,
    "cut_short": CutShort,
    "accumulates_itself": AccumulatesItself,
    "halves": Halves,
    "exchanges": Exchanges,
    "thaws_by_hand": ThawsByHand,
    "double": Net,
}

OPTIONS = {
    "reads_each": {"accumulate_grad_batches": 3},
    "reads_between": {"accumulate_grad_batches": 3},
    "clamps_each": {"accumulate_grad_batches": 3},
    "reads_weights": {"accumulate_grad_batches": 2},
    "cut_short": {"accumulate_grad_batches": 2},
    "double": {"precision": 64, "gradient_clip_val": 0.05},
}


def attempt(case):
    strategy = None
    if os.environ.get("PERSISTS") == "0":  # DeepSpeed's stage 3 leaves small parameters whole otherwise
        strategy = DeepSpeedStrategy({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}})
    module, callbacks = CASES[case](), [Average()] if case == "averages" else []
    try:
        trainer = Trainer(
            max_epochs=2, callbacks=callbacks, strategy=strategy, num_sanity_val_steps=0, **OPTIONS.get(case, {})
        )
        train = loader(21, shuffle=True)
        torch.manual_seed(7)
        trainer.fit(module, train, loader(9) if case == "averages" else None)
    except (ConfigurationError, RuntimeError) as error:
        return {"refused": str(error)}
    state = {name: value.double().flatten().tolist() for name, value in module.state_dict().items()}
    return {"weights": state, "seen": module.seen}


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    answers = {case: attempt(case) for case in sys.argv[1:] or CASES}
    Trainer().print(json.dumps(answers))
