"""`*_step_end` gets what the step gave, before everything else sees it; `*_epoch_end` gets the epoch's outputs."""

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset

from tests.forked import answers


class Whole(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net, self.calls = torch.nn.Linear(4, 3), []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.net(batch[0]), batch[1])


class Cut(Whole):
    def training_step(self, batch, batch_idx):
        return {"out": self.net(batch[0]), "y": batch[1]}

    def training_step_end(self, outputs):
        return {"loss": F.cross_entropy(outputs["out"], outputs["y"]), "n": len(outputs["y"])}

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.calls.append(("train", sorted(outputs)))

    def training_epoch_end(self, outputs):
        self.calls.append(("epoch", [o["n"] for o in outputs], any(o["loss"].requires_grad for o in outputs)))

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        return batch[0]

    def validation_step_end(self, x):
        self.log("rows", len(x), reduce_fx="sum", on_epoch=True)
        return len(x)

    def on_validation_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0):
        self.calls.append(("val", outputs))

    def validation_epoch_end(self, outputs):
        self.calls.append(("val epoch", outputs))
        self.log("total", sum(outputs))

    def on_validation_epoch_end(self):
        self.calls.append("val ended")

    test_step, test_step_end, test_epoch_end = validation_step, validation_step_end, validation_epoch_end


def loader(size=8):
    torch.manual_seed(2)
    return DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,))), size)


def fitted(module, validation=None):
    trainer = Trainer(max_epochs=1, accelerator="cpu", num_sanity_val_steps=0)
    trainer.fit(module, loader(), validation)
    return trainer


def test_training_cut_in_two_trains_the_same():
    whole, cut = Whole(), Cut()
    fitted(whole), fitted(cut)
    assert torch.equal(whole.net.weight, cut.net.weight)


def test_hooks_see_the_output_of_step_end():
    module = Cut()
    trainer = fitted(module, loader(15))
    rows = [("train", ["loss", "n"])] * 3
    assert module.calls == [
        *rows,
        *(("val", 15), ("val", 5), ("val epoch", [15, 5]), "val ended"),
        ("epoch", [8, 8, 4], False),
    ]
    assert trainer.callback_metrics["rows"] == 20 and trainer.callback_metrics["total"] == 20


def test_test_has_them_too_and_several_loaders_give_a_list_each():
    module = Cut()
    module.test_epoch_end = lambda outputs: module.calls.append(outputs)
    Trainer(accelerator="cpu").test(module, [loader(10), loader(20)], verbose=False)
    assert module.calls == [[[10, 10], [20]]]


@pytest.mark.parametrize("key", ["losses", "weights"])
def test_two_processes_as_one(key):
    one, two = answers("manual.py", 1), answers("manual.py", 2)
    assert one["step end"]["weights"] == one["step"]["weights"]
    assert two["step end"][key] == pytest.approx(one["step end"][key], rel=2e-6, abs=2e-6)
