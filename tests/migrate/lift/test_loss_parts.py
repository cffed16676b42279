"""A loss that is given together with other values, `loss, parts = losses(x)`, is a sum or a mean as it is alone."""

import pytest
import torch
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same, on_one_and_two

SCRIPT = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


MADE


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.randn(27, 1)), batch_size=8)
model = Net() if NETWORK else nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        STEP
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, "%.4f" % total)
torch.save(model.state_dict(), "model.pt")
"""
PAIR = "def errors(out, y):\n    e = {}\n    return {}"
SUM, MEAN = "F.mse_loss(out, y, reduction='sum')", "F.mse_loss(out, y)"
NETWORK = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x, y=None):
        out = self.fc(x)
        if y is None:
            return out
        e = {}
        return {}"""
CALL = "errors(model(x), y)"
# how a function gives its loss, and how a step takes it
WAYS = {
    "the first of two": (PAIR, "e, out.mean()", f"loss, mean = {CALL}"),
    "the second of two": (PAIR, "out.mean(), e", f"mean, loss = {CALL}"),
    "a list": (PAIR, "[e, out]", f"[loss, out] = {CALL}"),
    "by its place": (PAIR, "e, out.mean()", f"loss = {CALL}[0]"),
    "by its place from the end": (PAIR, "out.mean(), e", f"found = {CALL}\n        loss = found[-1]"),
    "by its name": (PAIR, "{'loss': e, 'mean': out.mean()}", f"found = {CALL}\n        loss = found['loss']"),
    "after the others": (PAIR, "out, out.mean(), e", f"*rest, loss = {CALL}"),
    "as far as it goes": (PAIR, "e, out, y", f"loss, out = {CALL}[:2]"),
    "unpacked later": (PAIR, "e, out", f"both = {CALL}\n        loss, out = both"),
    "through another": (
        PAIR + "\n\n\ndef outer(out, y):\n    a, b = errors(out, y)\n    return b, a",
        "e, out",
        "out, loss = outer(model(x), y)",
    ),
    "a network's": (NETWORK, "e, out", "loss, out = model(x, y)"),
    "a network's, by its place": (NETWORK, "e, out", "outputs = model(x, y)\n        loss = outputs[0]"),
}


def script(way, error):
    made, returned, step = WAYS[way]
    made = made.replace("{}", error, 1).replace("{}", returned, 1)
    return SCRIPT.replace("MADE", made).replace("STEP", step).replace("NETWORK", str("class Net" in made))


@pytest.mark.parametrize("way", WAYS)
def test_a_sum_that_is_given_with_others_is_one(way):
    assert 'loss_reduction = "sum"' in check_same(script(way, SUM), "module")


@pytest.mark.parametrize("way", WAYS)
def test_a_mean_that_is_given_with_others_is_one(way):
    text = check_same(script(way, MEAN), "module")
    assert "loss_reduction" not in text


@pytest.mark.parametrize("way", WAYS)
def test_one_of_some_of_the_samples_needs_them_whole(way):
    text = script(way, "F.mse_loss(out[y > 0], y[y > 0])")
    assert "divide_batches = False" in check_same(text, "module")
    assert any("is a mean over some of the samples" in n.message for n in migrate_text(text).attention)


def test_a_sum_beside_it_is_no_matter():
    """Here what a dictionary holds besides is a sum, which is never differentiated."""
    text = script("by its name", MEAN).replace("'mean': out.mean()", "'mean': e.detach() * len(y)")
    assert "divide_batches = False" not in check_same(text, "module")
    assert "loss_reduction" not in migrate_text(text).text


def test_two_that_differ_by_what_they_are_given_are_told():
    text = script("the first of two", SUM).replace(
        "return e, out.mean()", "if len(y) > 3:\n        return e, 0\n    return e / len(y), 1"
    )
    assert any("is a mean over the batch here, a sum there" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize("way", ["the first of two", "by its name", "a network's"])
def test_two_processes_train_as_one(way, tmp_path):
    one, two = on_one_and_two(tmp_path, script(way, SUM), migrate_text(script(way, SUM)).text)
    before, after = torch.load(one / "model.pt"), torch.load(two / "model.pt")
    assert all(torch.allclose(before[k], after[k], atol=1e-6) for k in before)
