"""Lists that a step adds to by `+= [value]`: lifted as ones that are appended to, run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.appends import append_in_place

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
every = []
for epoch in range(args.epochs):
    losses, right = [], []
    for x, y in train_loader:
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += [loss.item()]  # of the batch
        right += [(out.argmax(1) == y).float().mean().item()]
    print(epoch, f'{sum(losses) / len(losses):.6f}', sum(right))
    every += [sum(losses)]
print(len(every), every[0] > every[-1])
"""
)


def test_what_is_put_in_is_the_mean_of_the_whole_batch():
    result = check_same(TEXT, "module")
    assert "self.losses.append(self.batch_mean(loss.item()))  # of the batch\n" in result
    assert "divide_batches" not in result


@pytest.mark.parametrize(
    "source",
    [
        "x = np.zeros(3)\nx += [1]",
        "x = []\nx += [1, 2]",
        "x = []\nx += [*y]",
        "x = []\nx -= [1]",
        "x = []\nx = y\nx += [1]",
        "def f(x):\n    x += [1]",
        "x = ()\nx += (1,)",
        "x, y = f()\nx += [1]",
        "x = []\nx += list(y)",
        "self.x = []\nself.x += [1]",
        "x = []\nfor x in y:\n    x += [1]",
    ],
)
def test_it_stays(source):
    assert append_in_place(Facts("import torch\n" + source + "\n")) is None
