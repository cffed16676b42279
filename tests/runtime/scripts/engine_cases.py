"""What every engine has to train as one process does: `engine_cases.py CASE...` prints a case's losses and weights.

The cases put together what comes together in scripts: clipping and accumulation with a ragged last window, schedules,
parameters that only some batches use, a schedule that is resumed, gradients zeroed by the module itself.
"""

import copy
import json
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Callback, FSDPStrategy, Module, PipelineStrategy, Trainer
from torch.utils.data import DataLoader, Subset, TensorDataset


class Net(Module):
    """A few layers, a parameter that nobody uses, and one that only rare samples use."""

    branches = False
    optimizer = staticmethod(lambda module: torch.optim.Adam(module.parameters(), 0.01, weight_decay=0.01))

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
        self.unused, self.sometimes = torch.nn.Linear(2, 2), torch.nn.Linear(4, 3)
        self.losses = []

    def configure_optimizers(self):
        optimizer = self.optimizer(self)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        rare = x[:, 0] > 1.0
        if self.branches and rare.any():  # differs by rank
            out = torch.where(rare[:, None], out + self.sometimes(x), out)
        loss = F.cross_entropy(out, y)
        self.losses.append(self.all_reduce(float(loss.detach()) * self.share, "sum"))
        return {"loss": loss, "size": len(x)}

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("accuracy", (self(x).argmax(1) == y).float().mean(), sync_dist=True)

    def predict_step(self, batch, batch_idx):
        return self(batch[0]).argmax(1)


class Branches(Net):
    branches = True


class SGD(Net):
    optimizer = staticmethod(lambda module: torch.optim.SGD(module.net.parameters(), 0.05, momentum=0.9, nesterov=True))


class AdamW(Net):
    """Groups with options of their own."""

    @staticmethod
    def optimizer(module):
        return torch.optim.AdamW(
            [{"params": module.net[0].parameters(), "lr": 0.02}, {"params": module.net[2].parameters()}], 0.01
        )


class Temperature(AdamW):
    """A parameter without a dimension, in a group of its own."""

    def __init__(self):
        super().__init__()
        self.temperature = torch.nn.Parameter(torch.tensor(0.5))

    @staticmethod
    def optimizer(module):
        optimizer = AdamW.optimizer(module)
        optimizer.add_param_group({"params": [module.temperature], "weight_decay": 0.0})
        return optimizer

    def forward(self, x):
        return self.net(x) * self.temperature.exp()


class ZeroedByHand(Net):
    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):
        optimizer.zero_grad(set_to_none=batch_idx % 2 == 0)


class OwnStep(Net):
    """The step is the module's own, with a closure."""

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
        optimizer.step(closure=optimizer_closure)


class Two(Module):
    """Manual optimization, two optimizers, clipping."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)
        self.losses = []

    def configure_optimizers(self):
        return torch.optim.Adam(self.first.parameters(), 0.01), torch.optim.SGD(self.second.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        one, two = self.optimizers()
        loss = F.cross_entropy(self.second(torch.tanh(self.first(x))), y)
        self.losses.append(self.all_reduce(float(loss.detach()) * self.share, "sum"))
        one.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(one, 0.1, "norm")
        one.step()
        two.zero_grad()
        self.manual_backward(F.cross_entropy(self.second(torch.tanh(self.first(x))), y))
        two.step()


class OwnName(SGD):
    """The optimizer has made a step before anything is divided, and manual optimization calls it by the module's own
    name.
    """

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.mine = self.optimizer(self)
        F.cross_entropy(self(data().tensors[0]), data().tensors[1]).backward()
        self.mine.step()
        self.mine.zero_grad()

    def configure_optimizers(self):
        return self.mine

    def training_step(self, batch, batch_idx):
        self.mine.zero_grad()
        self.manual_backward(super().training_step(batch, batch_idx)["loss"])
        self.mine.step()

    def on_train_epoch_end(self):
        if self.trainer.is_global_zero:  # alone
            state = self.mine.state_dict()["state"]
            self.losses += [float(state[number]["momentum_buffer"].double().sum()) for number in sorted(state)]


class Hooked(SGD):
    """Hooks between batches see whole weights, take their state, and change them."""

    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            with torch.no_grad():
                self.net[0].weight.mul_(0.5)
            self.net[2].weight.data.add_(0.25)

    def configure_optimizers(self):
        self.mine = self.optimizer(self)
        return self.mine

    def on_train_epoch_end(self):
        moments = self.mine.state_dict()["state"]  # asked for by all
        if self.trainer.is_global_zero:
            self.losses += [float(moments[number]["momentum_buffer"].double().sum()) for number in sorted(moments)]
        state = copy.deepcopy(self.net.state_dict())
        self.losses += [float(value.double().sum()) for value in state.values()]
        self.losses.append(float(self.net[0].weight.detach().numpy().sum()))
        if self.current_epoch == 0:
            self.net.load_state_dict({name: value * 0.75 for name, value in state.items()})


class Thaws(SGD):
    """A hook lets parameters join the optimizer, by the module's own name for it."""

    def __init__(self):
        super().__init__()
        self.net[0].requires_grad_(False)

    def configure_optimizers(self):
        self.mine = torch.optim.SGD(self.net[2].parameters(), 0.05, momentum=0.9)
        return self.mine

    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            self.net[0].requires_grad_(True)
            self.mine.add_param_group({"params": list(self.net[0].parameters())})
            self.net[2].bias.requires_grad_(False)


class Sequential(SGD):
    """The guide's module for a pipeline; its loss is logged."""

    optimizer = staticmethod(lambda module: torch.optim.SGD(module.parameters(), 0.05, momentum=0.9))

    def __init__(self):
        super().__init__()
        del self.net, self.unused, self.sometimes
        layers = [torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh()]
        self.sequential_module = torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))

    def forward(self, x):
        return self.sequential_module(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        self.losses.append(float(loss.detach()))
        return loss


class OneLeft(Sequential):
    """Its last batch is one sample: fewer micro-batches than stages."""

    batch_size = 6


class Pair(torch.nn.Module):
    """A layer that gives two tensors."""

    def forward(self, x):
        return x, torch.tanh(x)


class Sum(torch.nn.Module):
    def forward(self, pair):
        return pair[0] + pair[1]


class Pairs(Sequential):
    """What goes from stage to stage is two tensors; a stage begins by overwriting what has come in."""

    def __init__(self):
        super().__init__()
        inner = [torch.nn.Linear(4, 16), Pair(), Sum(), torch.nn.ReLU(inplace=True), torch.nn.Linear(16, 3)]
        self.sequential_module = torch.nn.Sequential(*inner)


def data():
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(103, 4, generator=generator), torch.randint(0, 3, (103,), generator=generator))


def loader(shuffle=True, size=8):
    return DataLoader(data(), size, shuffle=shuffle)


CASES = {
    "plain": (Net, {}),
    "clip": (SGD, {"gradient_clip_val": 0.05}),
    "clip-value": (Net, {"gradient_clip_val": 0.002, "gradient_clip_algorithm": "value"}),
    "accumulate": (SGD, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}),
    "groups": (AdamW, {}),
    "temperature": (Temperature, {}),
    "branches": (Branches, {"accumulate_grad_batches": 2}),
    "zeroed": (ZeroedByHand, {}),
    "own-step": (OwnStep, {"gradient_clip_val": 0.05}),
    "manual": (Two, {}),
    "own-name": (OwnName, {}),
    "hooked": (Hooked, {}),
    "thaws": (Thaws, {}),
    "blocks": (Net, {"strategy": FSDPStrategy({torch.nn.Linear}), "accumulate_grad_batches": 2}),
    "sequential": (Sequential, {"gradient_clip_val": 0.1}),
    "pairs": (Pairs, {"strategy": PipelineStrategy([2, 3])}),
    "in-place": (Pairs, {"strategy": PipelineStrategy([3, 2], checkpoint="except_last")}),
    "1f1b": (
        Sequential,
        {"strategy": PipelineStrategy(schedule="1f1b", checkpoint=True), "accumulate_grad_batches": 3},
    ),
    "1f1b-of-one": (OneLeft, {"strategy": PipelineStrategy(schedule="1f1b")}),
    "sequential-bf16": (Sequential, {"precision": "bf16-mixed"}),
    "bf16": (Net, {"precision": "bf16-mixed"}),
    "half": (Net, {"precision": "16-mixed", "gradient_clip_val": 0.05}),
}


def fit(kind, options, epochs=2, path=None, resume=None):
    """Train; the module, whole. The sum over ranks tells when one of them differs."""
    torch.manual_seed(2)
    module = kind()
    trainer = Trainer(max_epochs=epochs, **options)
    torch.manual_seed(4)
    trainer.fit(module, loader(size=getattr(kind, "batch_size", 8)), ckpt_path=resume)
    if path is not None:
        trainer.save_checkpoint(path)
    return trainer, module


def answer(trainer, module):
    weights = {name: p.detach().double().sum().item() for name, p in module.named_parameters()}
    return {
        "losses": module.losses,
        "weights": weights,
        "same": trainer.runtime.all_reduce(weights, "max") == trainer.runtime.all_reduce(weights, "min"),
        "steps": trainer.global_step,
    }


def resumed(kind, options):
    """Two epochs; the first ends in a checkpoint, the second begins with another trainer."""
    folder = Path(Trainer().runtime.broadcast(tempfile.mkdtemp()))
    fit(kind, options, 1, folder / "half.ckpt")
    return answer(*fit(kind, options, 2, resume=folder / "half.ckpt"))


def saved(path):
    """One epoch of two, in a file for any engine."""
    return answer(*fit(SGD, CASES["accumulate"][1], 1, path))


def continued(path):
    return answer(*fit(SGD, CASES["accumulate"][1], 2, resume=path))


class SavesAfterValidation(Callback):
    def on_validation_end(self, trainer, module):
        trainer.save_checkpoint(self.path)


def validated(kind=Net):
    """Ranks validate different numbers of batches, before, between and after training; a checkpoint then is whole."""
    callback = SavesAfterValidation()
    callback.path = str(Path(Trainer().runtime.broadcast(tempfile.mkdtemp())) / "in-between.ckpt")
    torch.manual_seed(2)
    module = kind()
    trainer = Trainer(max_epochs=2, val_check_interval=5, num_sanity_val_steps=2, callbacks=[callback])
    torch.manual_seed(4)
    trainer.fit(module, loader(), DataLoader(Subset(data(), range(21)), 8))
    found = answer(trainer, module)
    found["losses"].append(float(trainer.callback_metrics["accuracy"]))
    other = kind()
    other.load_state_dict(torch.load(callback.path, weights_only=True)["state_dict"])
    found["losses"] += [p.detach().double().sum().item() for p in other.parameters()]
    copy.deepcopy(module)(torch.zeros(1, 4))  # the module is a plain one again
    found["class"] = type(module).__name__
    trainer.fit_loop.epoch = 0  # and can be trained again
    trainer.fit(module, loader())
    found["weights"] = answer(trainer, module)["weights"]
    return found


def evaluated(kind=Net):
    trainer, module = fit(kind, {})
    metrics = trainer.validate(module, loader(False))[0]
    predicted = torch.cat(trainer.predict(module, loader(False)))
    return {"losses": [metrics["accuracy"]], "weights": {"predicted": float(predicted.sum())}, "count": len(predicted)}


def main(names):
    answers = {}
    for name in names:
        case, _, variant = name.partition("+")
        if case in ("evaluate", "validate"):
            kind = Sequential if variant else Net
            answers[name] = (evaluated if case == "evaluate" else validated)(kind)
        elif "=" in case:
            answers[name] = {"save": saved, "continue": continued}[case.split("=")[0]](case.split("=")[1])
        elif variant == "resume":
            answers[name] = resumed(*CASES[case])
        else:
            answers[name] = answer(*fit(*CASES[case]))
    Trainer().print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
