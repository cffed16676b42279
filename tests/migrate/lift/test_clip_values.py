"""A clip value is the Trainer's where it is the same in every step; where it changes, the step clips by itself."""

import pytest

from tests.migrate.running import check_same

HEAD = """
import types
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs, ys = torch.randn(16, 4), torch.randn(16, 1)
loader = DataLoader(TensorDataset(xs, ys), batch_size=4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
ABOVE
"""
PLAIN = (
    HEAD
    + """
for epoch in range(3):
    FIRST
    for x, y in loader:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), VALUE)
        optimizer.step()
    print(epoch, loss.item())
    LAST
"""
)
FUNCTION = (
    HEAD
    + """
def train(clip):
    for x, y in loader:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return loss.item()

for epoch in range(3):
    FIRST
    print(epoch, train(VALUE))
    LAST
"""
)
CHANGES = {  # above the loop, first in an epoch, the value, last in an epoch
    "a name": ("clip_at = 0.5", "pass", "clip_at", "clip_at *= 0.5"),
    "a name of the epoch": ("pass", "clip_at = 0.5 / (epoch + 1)", "clip_at", "pass"),
    "the epoch": ("pass", "pass", "0.5 / (epoch + 1)", "pass"),
    "an attribute": ("args = types.SimpleNamespace(clip=0.5)", "pass", "args.clip", "args.clip *= 0.5"),
    "an element": ("limits = {'clip': 0.5}", "pass", "limits['clip']", "limits['clip'] *= 0.5"),
    "in place": ("clip_at = torch.tensor(0.5)", "pass", "clip_at", "clip_at.mul_(0.5)"),
}
STAYS = {
    "a number": ("pass", "pass", "0.5", "pass"),
    "a name": ("clip_at = 0.5", "other = 0.25", "clip_at", "other *= 0.5"),
    "a name set twice above": ("clip_at = 1.0\nclip_at = 0.5", "pass", "clip_at", "pass"),
    "an attribute": ("args = types.SimpleNamespace(clip=0.5, k=1)", "pass", "args.clip", "args.k += 1"),
    "as a number": ("args = types.SimpleNamespace(clip='0.5')", "pass", "float(args.clip)", "pass"),
    "an element": ("limits = {'clip': 0.5}", "pass", "limits['clip']", "pass"),
}


def script(text, pieces):
    for name, piece in zip(("ABOVE", "FIRST", "VALUE", "LAST"), pieces, strict=True):
        text = text.replace(name, piece)
    return text


@pytest.mark.parametrize("text", [PLAIN, FUNCTION], ids=["in place", "a function"])
@pytest.mark.parametrize("pieces", CHANGES.values(), ids=CHANGES)
def test_a_value_that_changes_is_the_step_s(text, pieces):
    assert "gradient_clip_val" not in check_same(script(text, pieces), "manual")


@pytest.mark.parametrize("text", [PLAIN, FUNCTION], ids=["in place", "a function"])
@pytest.mark.parametrize("pieces", STAYS.values(), ids=STAYS)
def test_a_value_that_stays_is_the_trainer_s(text, pieces):
    assert f"gradient_clip_val={pieces[2]}" in check_same(script(text, pieces), "module")
