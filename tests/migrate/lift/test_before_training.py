"""An evaluation that no training comes before runs where the networks were made, on the CPU: it is told of."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            right += (model(x).argmax(1) == y).sum().item()
    return right


def main():
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), batch_size=4)
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    BEFORE
    for epoch in range(2):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    AFTER


main()
"""
OF_CLASS = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), batch_size=4)
        self.net = nn.Linear(4, 2).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self):
        for epoch in range(2):
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()

    def test(self):
        with torch.no_grad():
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                print((self.net(x).argmax(1) == y).sum().item())


solver = Solver()
RUN
"""
EARLY = "if len(sys.argv) > 1:\n        print(test(model, loader))\n        return"
BRANCH = 'if "--test" in sys.argv:\n    solver.test()\nelse:\n    solver.train()'


def told(text):
    result = migrate_text(text)
    assert result.plan != "loop", result.attention
    return [n.line for n in result.attention if n.code == "PTM101" and "has not placed the networks" in n.message]


def script(before="pass", after="pass"):
    return SCRIPT.replace("BEFORE", before).replace("AFTER", after)


def line_of(text, call):
    return text[: text.index(call)].count("\n") + 1


@pytest.mark.parametrize("before", [EARLY, "print(test(model, loader))"])
def test_one_above_the_training_is_told_of(before):
    text = script(before, "print(test(model, loader))")
    assert told(text) == [line_of(text, "print(test(")]


def test_one_that_stands_there_itself_is_too():
    body = "with torch.no_grad():\n        for a, b in loader:\n            print(model(a.to(device)).sum().item())"
    text = script(body)
    assert told(text) == [line_of(text, "for a, b")]


def test_one_that_a_function_between_them_calls_is_too():
    text = script("print(rate(model, loader))").replace(
        "def main", "def rate(*given):\n    return test(*given)\n\n\ndef main"
    )
    assert told(text) == [line_of(text, "print(rate(")]


def test_one_that_makes_its_own_network_runs_where_that_is():
    made = "def test(loader):\n    model = nn.Linear(4, 2).to(device)\n"
    text = script("print(test(loader))").replace("def test(model, loader):\n", made)
    assert not told(text) and "nn.Linear(4, 2).to(device)\n    model.eval()" in migrate_text(text).text


@pytest.mark.parametrize("run", [BRANCH, "if len(sys.argv) > 1:\n    solver.train()\nsolver.test()"])
def test_a_method_that_may_run_without_the_training_is_too(run):
    text = OF_CLASS.replace("RUN", run)
    assert told(text) == [line_of(text, "solver.test()")]


@pytest.mark.parametrize(
    "text",
    [
        script(after="print(test(model, loader))"),
        script(after="if len(sys.argv) > 1:\n        print(test(model, loader))"),
        script(after="for x, y in loader:\n        print(model(x.to(device)).sum().item())"),
        OF_CLASS.replace("RUN", "solver.train()\nsolver.test()"),
    ],
)
def test_one_below_the_training_is_not(text):
    assert not told(text)


def test_one_below_two_trainings_of_which_the_second_may_not_run_is_not():
    run = "solver.train()\nif len(sys.argv) > 1:\n    solver.train()\nsolver.test()"
    assert not told(OF_CLASS.replace("RUN", run))


def test_in_a_script_that_moves_nothing_it_runs_where_it_always_did():
    text = script("print(test(model, loader))").replace(".to(device)", "")
    assert not told(text.replace('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n', ""))


THERE = """\
import torch


def rate(model, loader, device):
    right = 0
    for x, y in loader:
        right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    return right


def summary(model, loader):
    return sum(p.numel() for p in model.parameters()) * len(loader)


def draw(model, device):
    return model.forward(torch.ones(3, 4).to(device)).cpu().numpy()


def load(model, path, device):
    model.load_state_dict(torch.load(path, map_location=device))


def home(model, device):
    model.to(device)
    return model(torch.ones(3, 4, device=next(model.parameters()).device))


class Rows:
    def score(self, model, device):
        return [model(torch.ones(1, 4).to(device)).argmax(1).item() for _ in range(3)]
"""


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("print(rate(model, loader, device))", "pass", 1),
        ("pass", "print(rate(model, loader, device))", 0),
        ("print(summary(model, loader))", "pass", 0),
        ("print(draw(model, device))", "pass", 1),
        ("print(rows.score(model, device))", "pass", 1),
        ("pass", "print(draw(model, device), rows.score(model, device))", 0),
        ("print(draw(model, 'cpu'))", "pass", 0),
        ("load(model, 'a.pt', device)", "pass", 0),
        ("print(home(model, device))", "pass", 0),
    ],
)
def test_one_of_another_file_is_too(tmp_path, before, after, lines):
    a, b = SCRIPT.index("def test("), SCRIPT.index("def main(")
    text = f"from there import Rows, draw, home, load, rate, summary\nrows = Rows()\n{SCRIPT[:a]}{SCRIPT[b:]}".replace(
        "BEFORE", before
    ).replace("AFTER", after)
    (tmp_path / "main.py").write_text(text)
    (tmp_path / "there.py").write_text(THERE)
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    notes = [n for m in done for n in m.result.attention if "has not placed the networks" in n.message]
    assert [n.line for n in notes] == [line_of(text, before)] * lines
