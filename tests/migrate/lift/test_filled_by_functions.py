"""A function that gives the loss and adds to a dictionary of the caller's: a process would have its share in it."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_same, on_one_and_two

HEAD = """\
from collections import defaultdict
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
"""
FUNCTION = """

def measured(pred, target, metrics, weight=1.0):
    loss = weight * F.mse_loss(pred, target)
    metrics["loss"] += loss.item() * target.size(0)
    return loss
"""
MAIN = """

def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    valid = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 100.0
    for epoch in range(2):
        model.train()
        metrics = defaultdict(float)
        for x, y in loader:
            optimizer.zero_grad()
            loss = measured(model(x), y, metrics)
            loss.backward()
            optimizer.step()
        shown = metrics["loss"] / 16
        model.eval()
        tested = defaultdict(float)
        with torch.no_grad():
            for x, y in valid:
                measured(model(x), y, tested)
        best = min(best, tested["loss"] / 16)
        with open("shown", "w") as file:
            print(f"{shown:.5f} {best:.5f}", file=file)


main()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_process_has_all_of_it(folder):
    script = HEAD + FUNCTION + MAIN
    text = check_same(script, "module")
    one, two = on_one_and_two(folder, script, text)
    assert (one / "shown").read_text() == (two / "shown").read_text() != ""
    assert any("`metrics` collects values of the samples" in n.message for n in migrate_text(script).attention)


def test_where_the_function_is_another_files(folder):
    (folder / "measures.py").write_text("import torch.nn.functional as F\n" + FUNCTION)
    (folder / "main.py").write_text(HEAD + "from measures import measured\n" + MAIN)
    done = next(m for m in migrate_all(collect([folder / "main.py"]), Options()) if m.path.stem == "main")
    assert b"divide_batches = False" in done.data


@pytest.mark.parametrize(
    "body",
    [
        "    return weight * F.mse_loss(pred, target)\n",
        '    found = {}\n    found["loss"] = F.mse_loss(pred, target)\n    return weight * found["loss"]\n',
        '    return F.mse_loss(pred, target) * (weight + 0 * metrics["none"])\n',
    ],
)
def test_one_that_fills_nothing_of_the_callers_is_divided(body):
    head = FUNCTION.split("    loss =")[0]
    main = MAIN.replace('metrics["loss"] / 16', "loss.item()").replace('tested["loss"] / 16', "5.0")
    assert "divide_batches" not in check_same(HEAD + head + body + main, "module")
