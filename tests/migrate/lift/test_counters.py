"""Numbers that a training step adds up: a sum over samples is added over ranks, a mean is weighed by the share."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = (
    HEAD
    + """
for epoch in range(2):
    model.train()
    total = 0
    for x, y in train_loader:
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        VALUE
    print(f'{epoch} {total:.6f}')
"""
)
SUMS = [
    "total += loss.item() * x.size(0)",
    "n = (out.argmax(1) == y).sum().item()\n        total += n",
    "total += (out.argmax(1) == y).sum().item()",
    "size = y.size(0)\n        total += size",
    "total += len(y)",
]
MEANS = [
    "total += loss.item()",
    "total += (out.argmax(1) == y).sum().item() / len(y)",
    "n = (out.argmax(1) == y).sum().item()\n        total += n / y.size(0)",
    "total += (out.argmax(1) == y).float().mean().item()",
]


@pytest.mark.parametrize("value", SUMS)
def test_a_sum_is_added_as_it_is(value):
    result = check_same(SCRIPT.replace("VALUE", value), "module")
    assert "self.share" not in result and "self.all_reduce(self.total)" in result


@pytest.mark.parametrize("value", MEANS)
def test_a_mean_is_weighed(value):
    result = check_same(SCRIPT.replace("VALUE", value), "module")
    assert "* self.share" in result and "self.all_reduce(self.total)" in result


@pytest.mark.parametrize("behind", ["; print('step')", "; print('step'); n = 1  # of it", ";"])
def test_what_shares_its_line_is_done_once(behind):
    value = f"total += loss.item(){behind}"
    result = check_same(SCRIPT.replace("VALUE", value), "module")
    assert result.count("print('step')") == behind.count("print") and "loss.item() * self.share\n" in result


def test_its_comment_stays():
    result = check_same(SCRIPT.replace("VALUE", "total += loss.item()  # of all"), "module")
    assert "self.total += loss.item() * self.share  # of all\n" in result


@pytest.mark.parametrize("value", ["total += y.tolist()", "total += list(y.numpy())", "total += [loss.item()]"])
def test_a_list_is_no_sum(value):
    source = SCRIPT.replace("VALUE", value).replace("total = 0", "total = []").replace("{total:.6f}", "{len(total)}")
    result = check_same(source, "module")
    assert "self.share" not in result and "all_reduce" not in result


BEGINS = (
    HEAD
    + """
first, seen = 1, 0
for epoch in range(first, 3):
    for step, (x, y) in LOOP:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        print(epoch, step, f'{loss.item():.6f}')
    print(step, seen)
"""
)


@pytest.mark.parametrize(
    "loop",
    [
        "enumerate(train_loader, start=epoch * len(train_loader))",
        "enumerate(train_loader, epoch * len(train_loader) if epoch > 1 else 7)",
        "enumerate(train_loader, seen)",
        "enumerate(train_loader, 5)",
    ],
)
def test_batches_that_are_counted_from_a_number_of_the_epoch(loop):
    """What it begins with is asked once, above the batches, where the epoch and the loader have their names."""
    text = check_same(BEGINS.replace("LOOP", loop), "module")
    assert ("first_step" in text) is not loop.endswith(" 5)")
