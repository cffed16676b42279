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

NAMED_EPOCHS = EPOCHS.replace("for epoch in trange(1, 3, ", "bar = BAR(").replace(
    "epochs', disable=True):", "e', disable=True)"
)
NAMED_EPOCHS = NAMED_EPOCHS.replace("    for x, y", "for epoch in bar:\n    total = 0.\n    for x, y", 1)
NAMED_EPOCHS = NAMED_EPOCHS.replace(
    "        optimizer.step()\n", "        optimizer.step()\n        total += loss.item()\n"
)
NAMED_EPOCHS += "    bar.set_postfix(loss=total / len(train_loader))\nprint(bar.n)\n"
OPENED = NAMED_EPOCHS.replace("bar = BAR(desc='e', disable=True)", "with BAR(desc='e', disable=True) as bar:")
OPENED = OPENED[: OPENED.index("for epoch")] + OPENED[OPENED.index("for epoch") :].replace("\n", "\n    ")
OPENED = OPENED.replace("for epoch", "    for epoch").rstrip(" ")
CASES |= {
    "epochs of a bar with a name": NAMED_EPOCHS.replace("BAR(", "tqdm(range(1, n), "),
    "of one that counts": NAMED_EPOCHS.replace("BAR(", "trange(n, "),
    "of one that is opened": OPENED.replace("BAR(", "trange(n, "),
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_the_loop_is_lifted_and_runs_the_same(text):
    check_same(text, "module")


def test_steps_that_are_counted_are_no_batches_to_divide():
    assert "divide_batches = False" in check_same(STEPS, "module")


@pytest.mark.parametrize(
    ("goes_on", "plan"),
    [
        ("    if epoch > 9:\n        continue\n", "module"),
        ("    if epoch == 1:\n        continue\n", "module"),
        ("    if epoch > 9: continue\n", "loop"),
        ("    n = epoch\n", "loop"),
    ],
)
def test_a_bar_of_epochs_stays_where_it_may_be_passed_by_on_one_line_or_count_otherwise(goes_on, plan):
    text = NAMED_EPOCHS.replace("BAR(", "tqdm(range(n), ").replace("    total = 0.\n", "    total = 0.\n" + goes_on)
    check_same(text, plan)
