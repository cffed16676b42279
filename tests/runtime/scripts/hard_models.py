"""What models have that engines stumble over: `hard_models.py CASE...` prints, as JSON, the weights and values of each
case, or why it was refused. The numbers must be those of one process.
"""

import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from by_hand import ByHand
from ptmigrate.runtime import ModelCheckpoint, Module, Runtime, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    """Features of six numbers, three classes."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", F.cross_entropy(self(batch[0]), batch[1]), sync_dist=True)


class Transposed(Net):
    """Weights that lie in memory in another order (as channels_last, and as an orthogonal parametrization's)."""

    def __init__(self):
        super().__init__()
        for layer in (self.body, self.head):
            layer.weight.data = layer.weight.data.t().contiguous().t()


class ScheduledLate(Net):
    """A schedule that is made when the fit has begun."""

    def on_train_epoch_start(self):
        if self.current_epoch:
            self.rates = torch.optim.lr_scheduler.LambdaLR(self.optimizers(), lambda step: 0.5**step)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.current_epoch:
            self.rates.step()


class Shared(Net):
    """One layer used three times, and a parameter that is a single number."""

    def __init__(self):
        super().__init__()
        layer = nn.Linear(8, 8)
        self.layers = nn.ModuleList([layer, layer, layer])
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        x = self.body(x)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x) * self.temperature.exp()


class Buffers(Net):
    """Buffers of other kinds than numbers with a gradient."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("mask", torch.tensor([True, False, True, True, True, True]))
        self.register_buffer("wave", torch.ones(2, dtype=torch.complex64))

    def forward(self, x):
        self.seen += 1
        return super().forward(x * self.mask)


class Recomputed(Net):
    """FairScale's checkpoint_wrapper: a backward inside of the backward."""

    def __init__(self):
        super().__init__()
        from fairscale.nn import checkpoint_wrapper

        self.inner = nn.ModuleList(checkpoint_wrapper(nn.Sequential(nn.Linear(8, 8), nn.Tanh())) for _ in range(2))

    def forward(self, x):
        x = torch.tanh(self.body(x))
        for block in self.inner:
            x = block(x)
        return self.head(x)


class Reentrant(Net):
    """torch's own, as scripts of some years ago have it."""

    def forward(self, x):
        return self.head(checkpoint(lambda v: torch.tanh(self.body(v)), x.requires_grad_(), use_reentrant=True))


class Thawed(Net):
    """The body is frozen for an epoch; then it joins the optimizer."""

    def __init__(self):
        super().__init__()
        self.body.requires_grad_(False)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.head.parameters(), 0.02)

    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            self.body.requires_grad_(True)
            self.optimizers().add_param_group({"params": list(self.body.parameters()), "lr": 0.01})


class Renewed(Net):
    """Every epoch begins with the state of a new optimizer, and a rate of its own."""

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 0.02)

    def on_train_epoch_start(self):
        new = torch.optim.AdamW(self.parameters(), 0.02 / (self.current_epoch + 1))
        self.optimizers().load_state_dict(new.state_dict())


class ThawedByHand(ByHand, Thawed): ...


class Accumulating(Net):
    """By hand: two batches a step, gradients clipped by torch's own function."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        ends = batch_idx % 2 == 1 or self.trainer.is_last_batch
        with optimizer.toggle_model(sync_grad=ends):
            self.manual_backward(super().training_step(batch, batch_idx) / 2)
        if ends:
            self.clip_gradients(optimizer, 0.1, "norm")
            optimizer.step()
            optimizer.zero_grad()


class Gan(Module):
    """Two networks, two optimizers; the second backward goes through what the first step has changed."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.made = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
        self.judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(), nn.Linear(8, 1))

    def configure_optimizers(self):
        return [torch.optim.Adam(net.parameters(), 0.01, betas=(0.5, 0.9)) for net in (self.made, self.judge)]

    def training_step(self, batch, batch_idx):
        makes, judges = self.optimizers()
        judges.zero_grad()
        self.manual_backward(F.softplus(-self.judge(batch[0])).mean())
        fake = self.made(torch.cos(7 * batch[0]))
        self.manual_backward(F.softplus(self.judge(fake.detach())).mean())
        judges.step()
        makes.zero_grad()
        self.manual_backward(F.softplus(-self.judge(fake)).mean())
        makes.step()


class Penalized(Gan):
    """A gradient inside of the loss, and the other network at every third batch."""

    def training_step(self, batch, batch_idx):
        makes, judges = self.optimizers()
        noise = torch.cos(7 * batch[0])
        mixed = (0.3 * batch[0] + 0.7 * self.made(noise).detach()).requires_grad_()
        (slope,) = torch.autograd.grad(self.judge(mixed).sum(), mixed, create_graph=True)
        judges.zero_grad()
        self.manual_backward(10 * ((slope.norm(dim=1) - 1) ** 2).mean() - self.judge(batch[0]).mean())
        judges.step()
        if batch_idx % 3 == 2:
            makes.zero_grad()
            self.manual_backward(-self.judge(self.made(noise)).mean())
            torch.nn.utils.clip_grad_norm_(self.made.parameters(), 0.1)
            makes.step()


class InTurn(Gan):
    """The trainer optimizes both, one after the other."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = True

    def training_step(self, batch, batch_idx, optimizer_idx):
        fake = self.made(torch.cos(7 * batch[0]))
        if optimizer_idx == 0:
            return F.softplus(-self.judge(fake)).mean()
        return F.softplus(-self.judge(batch[0])).mean() + F.softplus(self.judge(fake.detach())).mean()


class Trunk(Net):
    """Two optimizers have the same parameters."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.other = nn.Linear(8, 3)

    def configure_optimizers(self):
        body = list(self.body.parameters())
        return [torch.optim.SGD([*body, *head.parameters()], 0.1) for head in (self.head, self.other)]

    def training_step(self, batch, batch_idx):
        for optimizer, head in zip(self.optimizers(), (self.head, self.other), strict=True):
            optimizer.zero_grad()
            self.manual_backward(F.cross_entropy(head(torch.tanh(self.body(batch[0]))), batch[1]))
            optimizer.step()


class Closure(Net):
    def configure_optimizers(self):
        return torch.optim.LBFGS(self.parameters(), 0.1, max_iter=2)


class Rows(Net):
    """Each row of a matrix has a scale of its own in the optimizer's state."""

    def configure_optimizers(self):
        return torch.optim.Adafactor(self.parameters(), 0.02)


class Words(Module):
    """An embedding with sparse gradients."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 4, sparse=True)

    def configure_optimizers(self):
        return torch.optim.SparseAdam(self.parameters(), 0.02)

    def training_step(self, batch, batch_idx):
        return self.words((batch[0] * 3).long().clamp(0, 10)).pow(2).mean()


class WordsByHand(ByHand, Words): ...


def data(size, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 6, generator=generator)
    return TensorDataset(x, torch.randint(0, 3, (size,), generator=generator))


def trained(kind, **options):
    torch.manual_seed(3)
    module = kind()
    trainer = Trainer(max_epochs=2, **options)
    torch.manual_seed(7)
    trainer.fit(module, DataLoader(data(44, 1), 8, shuffle=True))
    return answer(trainer, module)


def answer(trainer, module, **more):
    weights = {name: p.detach().double().flatten().tolist() for name, p in module.named_parameters()}
    return {"weights": weights, "steps": trainer.global_step, **more}


def best(kind=Net):
    """Fit with the best kept, test that, go on from the last in another trainer."""
    torch.manual_seed(3)
    folder = Trainer().runtime.broadcast(tempfile.mkdtemp())
    kept = ModelCheckpoint(dirpath=folder, monitor="val_loss", save_top_k=2, filename="{epoch}", save_last=True)
    trainer, module, check = Trainer(max_epochs=3, callbacks=[kept]), kind(), DataLoader(data(13, 2), 4)
    torch.manual_seed(7)
    trainer.fit(module, DataLoader(data(44, 1), 8, shuffle=True), check)
    tested = trainer.validate(module, check, ckpt_path="best")
    trainer, module = Trainer(max_epochs=4), kind()
    trainer.fit(module, DataLoader(data(44, 1), 8, shuffle=True), ckpt_path=os.path.join(folder, "last.ckpt"))
    return answer(trainer, module, best=float(kept.best_model_score), tested=tested, files=len(os.listdir(folder)))


def kept_words():
    """A loop of one's own with sparse gradients."""
    runtime = Runtime()
    torch.manual_seed(3)
    words = nn.Embedding(11, 4, sparse=True)
    optimizer = torch.optim.SparseAdam(words.parameters(), 0.02)
    words, optimizer = runtime.setup(words, optimizer)
    for x, _ in runtime.setup_dataloaders(DataLoader(data(44, 1), 8)):
        optimizer.zero_grad()
        runtime.backward(words((x * 3).long().clamp(0, 10)).pow(2).mean())
        optimizer.step()
    return {"weights": words.weight.tolist()}


CASES = {
    "shared": lambda: trained(Shared, gradient_clip_val=0.1),
    "buffers": lambda: trained(Buffers),
    "recomputed": lambda: trained(Recomputed, accumulate_grad_batches=2),
    "reentrant": lambda: trained(Reentrant),
    "thawed": lambda: trained(Thawed),
    "thawed_by_hand": lambda: trained(ThawedByHand),
    "renewed": lambda: trained(Renewed),
    "accumulating": lambda: trained(Accumulating),
    "gan": lambda: trained(Gan),
    "penalized": lambda: trained(Penalized),
    "in_turn": lambda: trained(InTurn),
    "trunk": lambda: trained(Trunk),
    "closure": lambda: trained(Closure, precision=64),  # it doubles rounding errors at every step
    "rows": lambda: trained(Rows),
    "words": lambda: trained(Words),
    "words_by_hand": lambda: trained(WordsByHand),
    "kept_words": kept_words,
    "best": best,
    "transposed": lambda: trained(Transposed),
    "scheduled_late": lambda: trained(ScheduledLate),
}


def attempt(case):
    try:
        return CASES[case]()
    except ConfigurationError as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    answers = {case: attempt(case) for case in sys.argv[1:] or CASES}
    Trainer().print(json.dumps(answers))
