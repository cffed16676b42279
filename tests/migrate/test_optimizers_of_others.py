"""An optimizer that a function of another file makes is known by what that returns."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

MAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from optimizers import get_optimizer

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,))), batch_size=4)
model = nn.Linear(4, 3)
optimizer = get_optimizer("sgd", model, lr=0.1)
for epoch in range(2):
    for x, y in loader:
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
MAKES = """
import torch


def get_optimizer(name, model, lr):
    if name == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    elif name == "adam":
        optimizer = OTHER
    else:
        raise NotImplementedError
    return optimizer
"""


@pytest.mark.parametrize(
    ("other", "known"),
    [
        ("torch.optim.Adam(model.parameters(), lr=lr)", True),
        ("torch.optim.lr_scheduler.StepLR(torch.optim.Adam(model.parameters()), 1)", False),
        ("Mine(model)", False),
        ("None", False),
    ],
)
def test_all_that_it_returns_are_optimizers(tmp_path, other, known):
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "optimizers.py").write_text(MAKES.replace("OTHER", other))
    main = next(m for m in migrate_all(collect([tmp_path / "main.py"]), Options()) if m.path.name == "main.py")
    assert ("divide_batches = False" not in main.result.text) is known
    assert (main.report.plan == "module") is known
