"""Loaders that functions of another file give: the batches are divided as those of one here, and evaluations lifted."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

DATA = """
import torch
from torch.utils.data import DataLoader, TensorDataset


def numbers(n):
    return TensorDataset(torch.randn(n, 3), torch.randn(n, 1))


def get_loader(n, batch_size):
    loader = DataLoader(numbers(n), batch_size=batch_size)
    return loader


def get_loaders(batch_size):
    return get_loader(12, batch_size), get_loader(8, batch_size)


def in_phases(batch_size):
    data = {"train": numbers(12), "test": numbers(8)}
    return {phase: DataLoader(data[phase], batch_size=batch_size) for phase in ["train", "test"]}


def with_sizes(batch_size):
    loaders = in_phases(batch_size)
    return loaders, {phase: len(loaders[phase]) for phase in loaders}


def with_others(batch_size):
    return {"train": get_loader(12, batch_size), "test": get_loader(8, batch_size), "size": 12}


def batches(n, ready=False):
    if ready:
        return [torch.randn(2, 3)]
    return get_loader(n, 2)
"""
MAIN = """
import torch
from torch import nn
{imported}

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{made}


def evaluate():
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            total += (net(x) - y).pow(2).sum().item()
    return total


for epoch in range(2):
    for x, y in train_loader:
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = evaluate()
"""


OF_PHASES = 'train_loader, test_loader = loaders["train"], loaders["test"]'


def lifted(tmp_path, imported, made):
    (tmp_path / "data.py").write_text(DATA)
    (tmp_path / "main.py").write_text(MAIN.format(imported=imported, made=made))
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    return done["main.py"].result


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        (
            "from data import get_loader",
            "train_loader = get_loader(12, batch_size=4)\ntest_loader = get_loader(8, batch_size=4)",
        ),
        ("import data", "train_loader = data.get_loader(12, 4)\ntest_loader = data.get_loader(8, 4)"),
        ("from data import *", "train_loader, test_loader = get_loaders(4)"),
        ("from data import in_phases", f"loaders = in_phases(4)\n{OF_PHASES}"),
        ("from data import with_sizes", f"loaders, sizes = with_sizes(4)\n{OF_PHASES}"),
        ("from data import with_others", f"loaders = with_others(4)\n{OF_PHASES}"),
    ],
)
def test_they_are_divided_and_evaluated(tmp_path, imported, made):
    result = lifted(tmp_path, imported, made)
    assert "def validation_step" in result.text and "divide_batches" not in result.text
    assert not any("comes from elsewhere" in n.message for n in result.attention)


def test_what_may_be_a_list_is_told_of(tmp_path):
    made = "train_loader = batches(12)\ntest_loader = get_loader(8, 4)"
    result = lifted(tmp_path, "from data import batches, get_loader", made)
    assert 'divide_batches = "loaders"' in result.text
    assert any("comes from elsewhere" in n.message for n in result.attention)


@pytest.mark.parametrize(
    ("made", "elsewhere"),
    [
        ("train_loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]", False),
        ("train_loader = []\ntrain_loader.append((torch.randn(4, 3), torch.randn(4, 1)))", False),
        ("train_loader = loaders['train']", True),
    ],
)
def test_a_list_of_the_script_is_no_loader(tmp_path, made, elsewhere):
    result = lifted(tmp_path, "from data import get_loader", f"test_loader = get_loader(8, 4)\n{made}")
    told = [n.message for n in result.attention if n.code == "PTM703"]
    assert any("comes from elsewhere" in m for m in told) == elsewhere
    assert any("is no DataLoader" in m for m in told) != elsewhere
