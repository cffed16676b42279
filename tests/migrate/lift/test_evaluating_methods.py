"""A trainer class whose method evaluates: its pass over a loader is the Module's evaluation."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SOLVER = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Solver:
    def __init__(self, net, loader, held_out):
        self.net, self.loader, self.held_out = net, loader, held_out
        self.opt = torch.optim.Adam(self.net.parameters(), 0.05)
        self.seen, self.history = 0, []

    def train_epoch(self):
        self.net.train()
        total = 0.0
        for x, y in self.loader:
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(self.loader)

    DECORATED
    def validate(self):
        self.net.eval()
        total, right, guesses = 0.0, 0, []
        with torch.no_grad():
            for x, y in self.held_out:
                out = self.net(x)
                total += F.cross_entropy(out, y, reduction='sum').item()
                right += (out.argmax(1) == y).sum().item()
                guesses += out.argmax(1).tolist()
                STEP
        print(sum(guesses))
        return total / len(self.held_out.dataset), right

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch()
            CALL
            self.history.append((loss, seen, right))
            print(epoch, loss, seen, right)


x = torch.randn(30, 4)
data = TensorDataset(x, (x[:, 0] > 0).long())
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
solver = Solver(net, DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=7))
solver.fit(3)
print(solver.history)
"""
CALL = "seen, right = self.validate()"


def solver(call=CALL, step="pass", decorated=""):
    text = SOLVER.replace("CALL", call).replace("STEP", step)
    return text.replace("    DECORATED\n", f"    {decorated}\n" if decorated else "")


@pytest.mark.parametrize("decorated", ["", "@torch.no_grad()", "@torch.inference_mode()"])
def test_the_method_s_pass_is_the_evaluation(decorated):
    result = check_same(solver(decorated=decorated), "module")
    assert "def validation_step(self, batch, batch_idx):\n        x, y = batch" in result, "names of the step stay"
    assert "def validate(" not in result and ", loader, held_out)\n" in result
    assert "self.in_order(self.guesses.extend" in result


@pytest.mark.parametrize(
    ("call", "step"),
    [
        (CALL + "\n            print(self.validate())", "pass"),
        ("seen, right = self.validate() if epoch else (0, 0)", "pass"),
        ("if epoch:\n                self.validate()\n            seen = right = 0", "pass"),
        (CALL, "self.seen += len(x)"),
        (CALL, "self.history.append(out.sum().item())"),
        (CALL, "if right > 8:\n                    break"),
    ],
    ids=["called twice", "in an expression", "now and then", "counts in the object", "fills it", "left early"],
)
def test_a_method_that_does_more_stays_one(call, step):
    result = check_same(solver(call, step), "module")
    assert "def validate(self" in result and "validation_step" not in result


def test_a_name_that_is_read_afterwards_keeps_its_value():
    text = (
        solver()
        .replace("loss = self.train_epoch()", "out = self.train_epoch()")
        .replace("(epoch, loss,", "(epoch, out,")
    )
    result = check_same(text.replace("append((loss,", "append((out,"), "module")
    assert "validate_out = self.net(x)" in result and "def validation_step" in result


@pytest.mark.parametrize("below", ["print(out)", "if epochs:\n            print(out)", "print((lambda: out)())"])
def test_a_name_that_is_read_below_the_loop_keeps_its_value(below):
    text = solver().replace(
        "print(epoch, loss, seen, right)", "print(epoch, loss, seen, right)\n            out = loss * 2"
    )
    result = check_same(
        text.replace("            out = loss * 2\n", f"            out = loss * 2\n        {below}\n"), "module"
    )
    assert "validate_out = self.net(x)" in result


def test_two_methods_that_evaluate_stay():
    other = (
        "    def test(self):\n        n = 0\n        for x, _ in self.held_out:\n            n += len(self.net(x))\n"
    )
    text = solver().replace("    def fit(", other + "        return n\n\n    def fit(")
    result = check_same(text.replace(CALL, CALL + "\n            n = self.test()"), "module")
    assert "def validate(self" in result and "def test(self" in result


def test_loaders_that_are_set_two_at_once_are_known():
    notes = migrate_text(solver()).attention
    assert not any("comes from elsewhere" in n.message for n in notes), notes
