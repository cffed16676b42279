"""Sums that a step begins anew together, `hit, total = 0, 0`: lifted as each by itself, run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.resets import begin_apart

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
for epoch in range(args.epochs):
    hit, total, running = 0, 0, 0.0
    for i, (x, y) in enumerate(train_loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        hit += (out.argmax(1) == y).sum().item()
        total += len(y)
        if (i + 1) % 4 == 0:
            print(f'{running / 4:.6f}', hit / total)
            hit, total, running = 0, 0, 0.0  # and on
"""
)


def test_each_is_summed_over_the_processes():
    result = check_same(TEXT, "module")
    assert "divide_batches" not in result and "self.running += loss.item() * self.share\n" in result
    assert "            self.total = 0\n            self.running = 0.0  # and on\n" in result
    assert "        self.hit, self.total, self.running = 0, 0, 0.0\n" in result  # the epoch's own, as it was written


STEP = "for x in loader:\n    net(x).backward()\n    "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{STEP}a, b = 0, 1.5\n", f"{STEP}a = 0\n    b = 1.5\n"),
        (f"{STEP}(a, b) = (0, 0)  # c\n", f"{STEP}a = 0\n    b = 0  # c\n"),
        (f"{STEP}if x:\n        a, b = 0, 0\n", f"{STEP}if x:\n        a = 0\n        b = 0\n"),
    ],
)
def test_they_stand_apart(before, after):
    assert begin_apart(Facts(before)) == after
    assert begin_apart(Facts(after)) is None


@pytest.mark.parametrize(
    "source",
    [
        f"a, b = 0, 0\n{STEP}pass\n",  # before the steps
        f"{STEP}a, b = 0, len(x)\n",
        f"{STEP}a, b = b, a\n",
        f"{STEP}a, b = True, None\n",
        f"{STEP}a = b = 0\n",
        f"{STEP}a, x.b = 0, 0\n",
        f"{STEP}a, *b = 0, 0\n",
        f"{STEP}a, b = 0, 0; c = 1\n",
        f"{STEP}if x: a, b = 0, 0\n",
        f"{STEP}for y in x:\n        a, b = 0, 0\n",  # of no step
        "for x in loader:\n    a, b = 0, 0\n",
    ],
)
def test_others_stay(source):
    assert begin_apart(Facts(source)) is None
