"""What steps of training log under every reduction, on as many processes as there are: the values of one process."""

import json

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

REDUCTIONS = {
    "mean": "mean",
    "sum": "sum",
    "min": torch.min,
    "max": max,
    "middle": lambda values: values.sort().values[len(values) // 2],
}
EPOCH = {"on_step": False, "on_epoch": True, "sync_dist": True}


class Net(Module):
    def __init__(self, reduction="mean", manual=False):
        super().__init__()
        torch.manual_seed(2)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.loss_reduction, self.automatic_optimization = reduction, not manual

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05 if self.loss_reduction == "mean" else 0.005)

    def training_step(self, batch, batch_idx):
        out = self.layers(batch[0])
        loss = F.cross_entropy(out, batch[1], reduction=self.loss_reduction)
        for name, reduce in REDUCTIONS.items():
            self.log(f"loss {name}", loss, reduce_fx=reduce, **EPOCH)
            self.log(f"number {name}", loss.item(), reduce_fx=reduce, **EPOCH)
        self.log("count", len(batch[1]) * (self.share > 0), reduce_fx="sum", **EPOCH)
        self.log("right", (out.argmax(1) == batch[1]).sum(), reduce_fx="sum", **EPOCH)
        self.log("least", batch[0].min(), reduce_fx="min", **EPOCH)
        self.log("most", batch[0].max().item(), reduce_fx="max", **EPOCH)
        self.log("at the step", loss, on_step=True, on_epoch=False, sync_dist=True)
        self.log("both", loss, on_step=True, on_epoch=True, sync_dist=True)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.log("after sum", outputs["loss"], reduce_fx="sum", **EPOCH)


class Watched(Net):
    seen: tuple = ()

    def on_train_epoch_end(self):
        value = float(self.trainer.callback_metrics["at the step"])
        self.seen = (*self.seen, value)


class Whole(Watched):
    divide_batches = False

    def validation_step(self, batch, batch_idx):
        self.log("valued", self.layers(batch[0]).mean(), sync_dist=True)
        self.log("validated", len(batch[0]), reduce_fx="sum", sync_dist=True)

    def on_validation_epoch_end(self):
        self.log("reduced", float(self.all_reduce(len(self.trainer.val_dataloaders.dataset))))

    def predict_step(self, batch, batch_idx):
        return float(batch[0].sum())


class ValidatesWhole(Whole):
    divide_batches = True
    divide_validation = False


def train(samples, kind=Watched, **how):
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(samples, 4, generator=generator), torch.randint(0, 3, (samples,), generator=generator)
    torch.manual_seed(4)
    net, trainer = kind(**how), Trainer(max_epochs=2, accelerator="cpu")
    held_out = DataLoader(TensorDataset(x, y), 10)
    trainer.fit(net, DataLoader(TensorDataset(x, y), 8, shuffle=True), held_out if isinstance(net, Whole) else None)
    found = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
    if isinstance(net, Whole):
        found["predicted"] = trainer.predict(net, held_out)
    return {**found, "steps": net.seen}


def main():
    answers = {f"{samples}": train(samples) for samples in (103, 17, 2)}
    answers["sums"] = train(103, reduction="sum")
    answers["by hand"] = train(35, manual=True)
    answers["whole"] = train(35, kind=Whole)
    answers["validates whole"] = train(35, kind=ValidatesWhole)
    Trainer(accelerator="cpu").print(json.dumps(answers))


if __name__ == "__main__":
    main()
