"""Steps that give no loss, gradients that only some ranks have, and backward passes of the module's own:
`skipping.py CASE...` prints the weights that each ends with, and whether all ranks have them.
"""

import json
import sys

import torch
import torch.nn.functional as F
from by_hand import ByHand
from ptmigrate.runtime import FSDPStrategy, Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

GENERATOR = torch.Generator().manual_seed(1)
DATA = TensorDataset(torch.randn(53, 6, generator=GENERATOR), torch.randint(0, 3, (53,), generator=GENERATOR))


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.sequential_module = torch.nn.Sequential(*self.layers())

    def layers(self):
        return torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.sequential_module(batch[0]), batch[1])


class EveryThird(Net):
    """The same batches on all ranks."""

    def training_step(self, batch, batch_idx):
        return None if batch_idx % 3 == 2 else super().training_step(batch, batch_idx)


class Some(Net):
    """Each rank decides by its own samples, before it calls the model."""

    def training_step(self, batch, batch_idx):
        return None if batch[0][0, 0] > 0.3 else super().training_step(batch, batch_idx)


class Halving:
    """A hook that shows in the weights how often it is called."""

    def on_after_backward(self):
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(0.5)


class Halved(Halving, EveryThird): ...


class SomeHalved(Halving, Some): ...


class Norm(Net):
    def layers(self):
        return torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3)


class SomeNorm(Some, Norm):
    pass


class LateNorm(Norm):
    """Each rank decides by its loss, as scripts do with one that is not finite."""

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        return None if batch[0][0, 0] > 0.3 else loss


class OwnBackward(Net):
    def backward(self, loss, *args, **kwargs):
        loss.backward(*args, **kwargs)


class NoGradient(torch.autograd.Function):
    """The identity, whose backward may give None."""

    @staticmethod
    def forward(ctx, x, gives):
        ctx.gives = gives
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return (gradient if ctx.gives else None), None


class Undefined(Net):
    """Backward comes to `extra` on every rank, and brings it a gradient only where rare samples are."""

    def __init__(self):
        super().__init__()
        self.extra = torch.nn.Linear(6, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        rare = x[:, 0] > 0.8
        extra = NoGradient.apply(self.extra(x), bool(rare.any()))
        out = self.sequential_module(x)
        return F.cross_entropy(torch.where(rare[:, None], out + extra, out), y)


class ManualUndefined(ByHand, Undefined): ...


class Apart(Net):
    """Each rank uses the same layers in another order, and one of them only for rare samples."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.rare = (torch.nn.Linear(6, size) for size in (3, 3, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05)  # without momentum, which a gradient of zero would move

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.sequential_module(x)
        for layer in [self.first, self.second][:: 1 if self.global_rank else -1]:
            out = out + layer(x)
        rare = x[:, 0] > 0.8
        if rare.any():
            out = torch.where(rare[:, None], out * self.rare(x), out)
        return F.cross_entropy(out, y)


class Unasked(ByHand, Net):
    """Manual optimization whose gradients stay each rank's own."""

    def backward_by_hand(self, loss):
        loss.backward()


CASES = {
    "every": (EveryThird, {}),
    "window": (EveryThird, {"accumulate_grad_batches": 3}),
    "hooks": (Halved, {"accumulate_grad_batches": 2}),
    "some": (Some, {}),
    "some-hooks": (SomeHalved, {"accumulate_grad_batches": 2}),
    "some-window": (Some, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.5}),
    "half": (EveryThird, {"precision": 16}),
    "half-some": (Some, {"precision": 16}),
    "half-window": (SomeHalved, {"precision": 16, "accumulate_grad_batches": 2, "gradient_clip_val": 0.5}),
    "some-blocks": (Some, {"strategy": FSDPStrategy({torch.nn.Linear})}),
    "some-norm": (SomeNorm, {}),
    "late-blocks": (LateNorm, {"strategy": FSDPStrategy({torch.nn.Linear})}),
    "late-norm": (LateNorm, {"accumulate_grad_batches": 2}),
    "own": (OwnBackward, {"accumulate_grad_batches": 2}),
    "undefined": (Undefined, {}),
    "apart": (Apart, {}),
    "apart-window": (Apart, {"accumulate_grad_batches": 3}),
    "apart-blocks": (Apart, {"strategy": FSDPStrategy({torch.nn.Linear})}),
    "manual-undefined": (ManualUndefined, {}),
    "unasked": (Unasked, {}),
}


def trained(kind, options):
    module, trainer = kind(), Trainer(max_epochs=2, **options)
    torch.manual_seed(4)
    trainer.fit(module, DataLoader(DATA, 8, shuffle=True))
    weights = {name: value.detach().double().flatten().tolist() for name, value in module.state_dict().items()}
    sums = {name: sum(values) for name, values in weights.items()}
    same = trainer.runtime.all_reduce(sums, "max") == trainer.runtime.all_reduce(sums, "min")
    return {"weights": weights, "same": same}


if __name__ == "__main__":
    answers = {name: trained(*CASES[name]) for name in sys.argv[1:]}
    Trainer().print(json.dumps(answers))
