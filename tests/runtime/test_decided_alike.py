"""What ranks decide by is one thing on all of them: the loss of a line search, the draws of a whole evaluation."""

import pytest
import torch
from ptmigrate.runtime.step import deciding_by_whole

from tests.forked import ptrun

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from ptmigrate.runtime import Module, Trainer

class Searches(Module):
    def __init__(self, automatic, reduction):
        super().__init__()
        self.automatic_optimization, self.loss_reduction = automatic, reduction
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def configure_optimizers(self):
        return torch.optim.LBFGS(self.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    def loss(self, batch):
        loss = (self.net(batch[0]) - batch[1]).pow(2)
        return loss.sum() if self.loss_reduction == "sum" else loss.mean()

    def training_step(self, batch, batch_idx):
        if self.automatic_optimization:
            return self.loss(batch)
        optimizer = self.optimizers()

        def closure():
            optimizer.zero_grad()
            loss = self.loss(batch)
            self.manual_backward(loss)
            return loss

        loss = optimizer.step(closure)
        self.print("loss", (self.batch_sum if self.loss_reduction == "sum" else self.batch_mean)(loss.item()))

class Evaluates(Searches):
    divide_validation = False

    def __init__(self):
        super().__init__(True, "mean")
        self.net[1] = torch.nn.Dropout(0.5)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def on_validation_model_eval(self):
        pass

    def validation_step(self, batch, batch_idx):
        print(f"drawn {self.loss(batch).item():.5f}")

    def on_train_epoch_end(self):
        print(f"drawn {torch.rand(1).item():.5f}")

torch.set_default_dtype(torch.float64)
torch.manual_seed(2)
xs = torch.randn(22, 4)
data = TensorDataset(xs, xs.sum(1, keepdim=True).sin())
for automatic in (False, True):
    for reduction in ("mean", "sum"):
        module = Searches(automatic, reduction)
        trainer = Trainer(max_epochs=2)
        trainer.fit(module, DataLoader(data, batch_size=8, shuffle=True))
        trainer.print("weights", [p.double().sum().item() for p in module.parameters()])
Trainer(max_epochs=3).fit(Evaluates(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=11))
"""


def printed(tmp_path, processes):
    """The numbers that each kind of line shows."""
    (tmp_path / "script.py").write_text(SCRIPT)
    devices = ("--accelerator", "cpu", "--devices", str(processes), "--strategy", "ddp", "--global-batch")
    done = ptrun(*devices, str(tmp_path / "script.py"))
    assert done.returncode == 0, done.stderr
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    kinds = ("loss", "weights", "drawn")
    return {k: [float(n) for w, _, rest in lines if w == k for n in rest.strip("[]").split(", ")] for k in kinds}


@pytest.mark.slow
def test_a_line_search_goes_by_the_whole_batch_and_an_evaluation_draws_what_rank_zero_draws(tmp_path):
    one, two = printed(tmp_path, 1), printed(tmp_path, 2)
    for kind in ("loss", "weights"):
        assert one[kind] and two[kind] == pytest.approx(one[kind], rel=1e-6)
    assert len(one["drawn"]) == 9 and sorted(two["drawn"]) == pytest.approx(sorted(2 * one["drawn"]), abs=1e-4)


def test_a_step_gives_back_what_its_own_closure_gave():
    x = torch.nn.Parameter(torch.tensor([3.0]))
    asked = []

    def whole(loss):
        asked.append(loss.item())
        return loss.detach() * 1.0

    def closure():
        optimizer.zero_grad()
        loss = x.pow(2).sum()
        loss.backward()
        return loss

    optimizer = torch.optim.LBFGS([x], max_iter=2)
    loss = deciding_by_whole(optimizer.step, whole)(closure)
    assert loss.requires_grad and loss.item() == 9.0 == asked[0] and len(asked) > 1
