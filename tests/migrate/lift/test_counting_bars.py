"""`trange(n)` counts, it is no bar around an `n`: loops over it, run before and after."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

STEP = """
    loss = criterion(model(xs), ys)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
IMPORTED = HEAD + "from tqdm import tqdm, trange\nn = 4\n"
STEPS = IMPORTED + "for i in trange(n, disable=True):" + STEP + "    if i == n - 1: print(i, f'{loss.item():.6f}')\n"
NAMED = IMPORTED + "bar = trange(n, disable=True)\nfor i in bar:" + STEP + "    bar.set_description(str(i))\n"
EPOCHS = (
    IMPORTED
    + """
for epoch in trange(1, 3, desc='epochs', disable=True):
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f'{loss.item():.6f}')
"""
)
CASES = {
    "steps": STEPS,
    "steps of a bar with a name": NAMED,
    "epochs": EPOCHS,
    "of a notebook": EPOCHS.replace("from tqdm import tqdm, trange", "from tqdm.auto import trange"),
    "through tqdm": EPOCHS.replace("from tqdm import tqdm, trange", "import tqdm").replace("trange(", "tqdm.trange("),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_the_loop_is_lifted_and_runs_the_same(text):
    check_same(text, "module")


def test_steps_that_are_counted_are_no_batches_to_divide():
    assert "divide_batches = False" in check_same(STEPS, "module")
