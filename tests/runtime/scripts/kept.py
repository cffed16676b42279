"""Kept loops on Runtime, of the shapes that a naive rewrite breaks. `plain`: the same without Runtime."""

import json
import sys
from contextlib import nullcontext

import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Runtime
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES = 103


class Plain:
    """What Runtime is when there is none."""

    rank, world_size, share = 0, 1, 1.0

    def setup(self, model, *optimizers):
        return (model, *optimizers) if optimizers else model

    def setup_dataloaders(self, *loaders, train=True):
        return loaders[0] if len(loaders) == 1 else loaders

    def backward(self, loss, *args, loss_reduction=None, **kwargs):
        loss.backward(*args, **kwargs)

    def divide(self, *batch):
        return batch if len(batch) > 1 else batch[0]

    def no_sync(self):
        return nullcontext()

    def all_reduce(self, value, op="sum"):
        return value

    print = staticmethod(print)


def data():
    return TensorDataset(torch.randn(SAMPLES, 6), torch.randint(0, 3, (SAMPLES,)))


def two_backwards(rt, loader):
    """Two models, two backwards before one step, a label changed in place between them."""
    d = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    g = nn.Linear(3, 6)
    d, opt_d = rt.setup(d, torch.optim.Adam(d.parameters(), 0.01))
    g, opt_g = rt.setup(g, torch.optim.Adam(g.parameters(), 0.01))
    for x, _y in loader:
        z = x[:, :3] * 0.5
        label = torch.ones(len(x), 1)
        d.zero_grad()
        rt.backward(F.binary_cross_entropy_with_logits(d(x), label))
        fake = g(z)
        label.fill_(0)
        rt.backward(F.binary_cross_entropy_with_logits(d(fake.detach()), label))
        opt_d.step()
        g.zero_grad()
        label.fill_(1)
        rt.backward(F.binary_cross_entropy_with_logits(d(fake), label))
        opt_g.step()
    return [d, g]


def penalty(rt, loader):
    """A gradient penalty with double backward, on a method that is not forward."""

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 1)

        def score(self, x):
            return self.b(torch.tanh(self.a(x)))

    critic = Critic()
    critic, opt = rt.setup(critic, torch.optim.SGD(critic.parameters(), 0.1))
    for x, _ in loader:
        opt.zero_grad()
        x = x.clone().requires_grad_(True)
        out = critic.score(x)
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        rt.backward(out.mean() + ((grad.norm(2, dim=1) - 1) ** 2).mean())
        opt.step()
    return [critic]


def accumulation(rt, loader):
    """Three micro-batches a step, clipping, sync switched off by hand, a sum as the loss, one unused branch."""
    net = nn.ModuleDict({"used": nn.Linear(6, 3), "sometimes": nn.Linear(6, 3), "never": nn.Linear(2, 2)})
    net, opt = rt.setup(net, torch.optim.SGD(net.parameters(), 0.01))
    for i, (x, y) in enumerate(loader):
        with nullcontext() if i % 3 == 2 else rt.no_sync():
            out = net["used"](x) + (net["sometimes"](x) if i % 2 else 0)
            rt.backward(F.cross_entropy(out, y, reduction="sum") / 3, loss_reduction="sum")
        if i % 3 == 2:
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            opt.zero_grad()
    return [net]


def bare(rt, loader):
    """Bare parameters updated by hand, no optimizer, a batch cut by index on every rank alike."""
    net = rt.setup(nn.Linear(6, 3))
    x, y = loader.dataset.tensors
    for start in range(0, SAMPLES, 10):
        a, b = rt.divide(x[start : start + 10], y[start : start + 10])
        net.zero_grad()
        rt.backward(F.cross_entropy(a @ net.weight.t() + net.bias, b))
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(0.1 * p.grad)
    return [net]


def repeated(rt, loader):
    """A full batch that every rank computes alike, with dropout: nothing is divided, the run is the same."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 3))
    net, opt = rt.setup(net, torch.optim.SGD(net.parameters(), 0.1))
    x, y = loader.dataset.tensors
    for _ in range(5):
        opt.zero_grad()
        rt.backward(F.cross_entropy(net(x), y))
        opt.step()
    return [net]


def main(plain):
    answers = {}
    for shape in (repeated, bare, two_backwards, penalty, accumulation):
        torch.manual_seed(11)
        rt = Plain() if plain else Runtime()
        loader = DataLoader(data(), 8, shuffle=True)
        if shape not in (repeated, bare):
            loader = rt.setup_dataloaders(loader)
        losses = recording.record()
        models = shape(rt, loader)
        test = rt.setup_dataloaders(DataLoader(loader.dataset, 10), train=False)
        count = rt.all_reduce(sum(len(x) for x, _ in test))
        answers[shape.__name__] = {
            "losses": rt.all_reduce(losses, "mean"),
            "weights": [p.double().sum().item() for m in models for p in m.parameters()],
            "none": [p.grad is None for m in models for p in m.parameters()],
            "names": [name for m in models for name in m.state_dict()],
            "count": count,
            "drift": rt.all_reduce([p.double().sum().item() for m in models for p in m.parameters()], "max"),
        }
    rt.print(json.dumps(answers))


main(plain="plain" in sys.argv)
