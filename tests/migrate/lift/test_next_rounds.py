"""A loop around the epochs, over stages or folds: what one training leaves and the next begins with comes back."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
step, best = 0, 100.0


def train(model, loader, optimizer):
    global step
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y) * 0.99 ** step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    return loss.item()


for stage in range(2):
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (stage + 1))
    # begins
    for epoch in range(2):
        got = train(model, loader, optimizer)
        if got < best:
            best = got
        print(epoch, step, f"{best:.5f}")
"""
FIRST, OUTER = "for stage in range(2):\n", "    # begins\n"


@pytest.mark.parametrize(
    ("changes", "back"),
    [
        ({}, {"step", "best"}),
        ({OUTER: "    best = 100.0\n"}, {"step"}),
        ({OUTER: "    step = 0\n"}, {"best"}),
        ({OUTER: "    step, best = 0, 100.0\n"}, set()),
        ({FIRST: "stage = -1\nwhile best > 0.6:\n    stage += 1\n", OUTER: "    step = 0\n"}, {"best"}),
        ({FIRST: "for stage in range(1):\n"}, {"step", "best"}),
        ({FIRST: "if True:\n    stage = 0\n"}, set()),
    ],
)
def test_what_the_next_round_reads_comes_back(changes, back):
    text = TEXT
    for old, new in changes.items():
        text = text.replace(old, new)
    migrated = check_same(text, "module")
    assert {name for name in ("step", "best") if f"    {name} = module.{name}\n" in migrated} == back


def test_the_loss_of_the_last_batch_is_none_of_it():
    text = TEXT.replace("def train", "def stepped").replace(
        "        got = train(model, loader, optimizer)\n        if got < best:\n            best = got\n",
        "        for x, y in loader:\n            loss = nn.functional.mse_loss(model(x), y)\n"
        "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n"
        "            step += 1\n"
        "        print(loss.item())\n",
    )
    text = text[: text.index("def stepped")] + text[text.index("for stage") :]
    migrated = check_same(text, "module")
    assert "    step = module.step\n" in migrated and "loss = module" not in migrated
