"""Batches that a script evaluates a network with go where that is: the Trainer places only what it trains."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked

CARD = Path(__file__).parents[2] / "simulated_card.py"
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x, y = torch.randn(24, 4), torch.randint(0, 2, (24,))
train_loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
test_loader = DataLoader(TensorDataset(x, y), batch_size=12)

def evaluate(net, loader):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            right += (net(x).argmax(1) == y).sum().item()
    return right

{above}
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), evaluate(model, test_loader))
{below}
"""
FOLDS = SCRIPT.replace("{above}\n", "for fold in range(2):\n    print(fold)\n")
FOLDS = FOLDS.replace("{below}\n", "")
MARK = FOLDS.index("model = nn")
FOLDS = FOLDS[:MARK] + "".join(f"    {line}\n" for line in FOLDS[MARK:].splitlines())
FOLDS = FOLDS.replace("    optimizer = ", "    print(evaluate(model, test_loader))\n    optimizer = ")
BEST = """\
best = nn.Linear(4, 2)
best.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
best = best.to(device)
print(evaluate(best, test_loader))"""
LOOP = """\
best = nn.Linear(4, 2).to(device)
best.load_state_dict(model.state_dict())
for x, y in test_loader:
    print(best(x.to(device)).sum().item())"""
AGAIN = "model = nn.Linear(4, 2).to(device)\nprint(evaluate(model, test_loader))"
ABOVE = "base = nn.Linear(4, 2).to(device)\nprint(evaluate(base, test_loader))"
ENGINE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Engine:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def train(self, loader):
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def predict(self, loader):
        with torch.no_grad():
            return torch.cat([self.model(x.to(device)).cpu() for x, _ in loader]).sum()

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x, y = torch.randn(24, 4), torch.randint(0, 2, (24,))
loader = DataLoader(TensorDataset(x, y), batch_size=8)
model = nn.Linear(4, 2)
model.to(device)
engine = Engine(model, torch.optim.SGD(model.parameters(), lr=0.1))
for epoch in range(2):
    print(engine.train(loader))
best = nn.Linear(4, 2)
best.to(device)
print(Engine(best, None).predict(loader), engine.predict(loader))
"""
BESIDE = {
    "of an object": ENGINE,
    "of an object that each fold makes": ENGINE.partition("model = nn")[0]
    + """\
for fold in range(2):
    model = nn.Linear(4, 2).to(device)
    engine = Engine(model, torch.optim.SGD(model.parameters(), lr=0.1))
    print(engine.train(loader), engine.predict(loader))
""",
    "best": SCRIPT.format(above="", below=BEST),
    "in a loop": SCRIPT.format(above="", below=LOOP),
    "made again": SCRIPT.format(above="", below=AGAIN),
    "above": SCRIPT.format(above=ABOVE, below="print(evaluate(base, test_loader))"),
    "folds": FOLDS,
}


@pytest.mark.parametrize("name", BESIDE)
def test_they_meet_it_on_a_card_too(tmp_path, name):
    result = migrate_text(BESIDE[name])
    assert result.plan in ("module", "manual") and "on_device(" in result.text
    (tmp_path / "old.py").write_text(BESIDE[name])
    (tmp_path / "new.py").write_text(result.text)
    lines = [_run(tmp_path, *command) for command in (["old.py"], [CARD, "old.py"], ["new.py"], [CARD, "new.py"])]
    assert lines[0] and all(other == lines[0] for other in lines)


@pytest.mark.parametrize(
    "script",
    [
        SCRIPT.format(above="", below=""),
        SCRIPT.format(above="", below="model.eval()\nprint(evaluate(model, test_loader))"),
    ],
)
def test_of_the_trainers_own_nothing_is_said(script):
    text = migrate_text(script).text
    assert "on_device(loader)" in text and "on_device(loader, " not in text


def test_the_report_says_where_they_go():
    said = [e.message for e in migrate_text(BESIDE["best"]).edits if "batches go" in e.message]
    assert said == ["`loader`: its batches go where `net` is"]


def test_it_is_migrated_once():
    text = migrate_text(BESIDE["folds"]).text
    assert "on_device(loader, net)" in text and migrate_text(text).text == text


def _run(folder, *command):
    done = forked.run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("ptmigrate")]


NUMBERS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 6)

    def forward(self, x):
        return self.net(x)

    def inverse(self, n, std):
        return self.net(std * torch.ones(n, 6, device=self.net.weight.device))

@torch.no_grad()
def generate(model, stds):
    samples = []
    for std in stds:
        samples.append(model.inverse(4, std=std))
    return torch.cat(samples)

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 6)), batch_size=8)
model = Flow().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in loader:
        loss = model(x.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), generate(model, {given}).sum().item())
"""


@pytest.mark.parametrize("given", ["[0.0, 0.25, 1.0]", "(1, 2)"])
def test_numbers_that_a_function_is_given_are_no_batches(given):
    assert "on_device(" not in migrate_text(NUMBERS.format(given=given)).text
