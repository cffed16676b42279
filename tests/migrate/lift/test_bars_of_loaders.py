"""`loader = tqdm(loader)` in a function that is given the loader: lifted as a bar of another name is."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.bars import name_bars

from tests.migrate.lift.test_same_run import FUNCTIONS
from tests.migrate.running import check_same

BAR = "loader = tqdm(loader, disable=True)"
WRAPPED = (
    FUNCTIONS.replace("import torch\n", "import torch\nfrom tqdm import tqdm\n", 1)
    .replace("def train(epoch):\n", f"def train(epoch, loader):\n    {BAR}\n")
    .replace("for batch in train_loader:", "for batch in loader:")
    .replace("total += loss.item()\n", "total += loss.item()\n        loader.desc = f'{total:.3f}'\n")
    .replace("def test():\n", f"def test(loader):\n    {BAR}\n")
    .replace("in test_loader:", "in enumerate(loader):")
    .replace("for x, y in enumerate", "for i, (x, y) in enumerate")
    .replace("train(epoch)\n", "train(epoch, loader=train_loader)\n")
    .replace("right = test()", "right = test(loader=test_loader)")
)


def test_the_loops_are_over_the_loaders():
    result = check_same(WRAPPED, "module")
    assert "bar.desc = f'{" in result and "def validation_step(" in result
    assert "divide_batches" not in result and "train_dataloader(self)" not in result


FUNCTION = """
from tqdm import tqdm
def f(loader, other):
    print(loader)
    loader = tqdm(loader, leave=False)
    for x in loader:
        loader.set_postfix(n=len(loader))
"""
RENAMED = FUNCTION.replace("loader = tqdm", "bar = tqdm").replace("in loader:", "in bar:")
RENAMED = RENAMED.replace("loader.set_postfix(n=len(loader))", "bar.set_postfix(n=len(bar))")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FUNCTION, RENAMED),
        (FUNCTION + "bar = 3\n", RENAMED.replace("bar", "pbar") + "bar = 3\n"),
        (FUNCTION.replace("loader = tqdm(loader", "loader = tqdm(other"), None),
        (FUNCTION.replace("tqdm(loader", "list(loader"), None),
        (FUNCTION.replace("    print(loader)\n", "    loader = loader[1:]\n"), None),
        (FUNCTION.replace("(loader, other)", "(other)"), None),
        (FUNCTION.replace("    loader = tqdm", "    if other:\n        loader = tqdm"), None),
        (FUNCTION.replace("    print(loader)\n", "    def g():\n        return loader\n"), None),
        (FUNCTION + "bar = pbar = progress_bar = 3\n", None),
    ],
)
def test_what_gets_a_name(text, expected):
    assert name_bars(Facts(text)) == expected


NUMBERED = FUNCTIONS.replace("import torch\n", "import torch\nfrom tqdm import tqdm\n", 1).replace(
    "    for batch in train_loader:", "    bar = tqdm(enumerate(train_loader), disable=True)\n    for i, batch in bar:"
)


def test_a_bar_of_numbered_batches_draws_no_iterator_of_its_own():
    result = check_same(
        NUMBERED.replace("total += loss.item()\n", "total += loss.item()\n        bar.set_postfix(i=i)\n"), "module"
    )
    assert (
        "tqdm(self.trainer.train_dataloader, disable=True)" in result and "def training_step(self, batch, i)" in result
    )


def test_a_numbered_batch_that_is_taken_apart_below_keeps_its_form():
    """The loop went over enumerate(loader), which the lift does not read with one name for both."""
    below = NUMBERED.replace("for i, batch in bar:\n", "for step in bar:\n        i, batch = step\n")
    check_same(
        below.replace("total += loss.item()\n", "total += loss.item()\n        bar.set_postfix(i=i)\n"), "module"
    )


INNER = "        for p in model.parameters():\n            if p.grad is None:\n                continue\n"
SKIPS = "        if batch[0].mean() > 0.1:\n            print('skips')\n            continue\n"


@pytest.mark.parametrize(
    ("line", "updates"),
    [(f"{INNER}            p.grad *= 2\n", 1), (SKIPS, 2), (f"{SKIPS}{INNER}            p.grad *= 2\n", 2)],
    ids=["of an inner loop", "of its own", "of both"],
)
def test_a_batch_that_the_loop_skips_counts_too(line, updates):
    at = "        optimizer.step()\n" if line.startswith(INNER) else "        optimizer.zero_grad()\n"
    result = check_same(NUMBERED.replace(at, line + at, 1), "manual")
    assert "tqdm(self.trainer.train_dataloader, disable=True)" in result and result.count("bar.update()") == updates


def test_one_that_is_skipped_on_one_line_keeps_the_bar():
    text = NUMBERED.replace(
        "        optimizer.zero_grad()\n", "        if batch[0].mean() > 0.1: continue\n        optimizer.zero_grad()\n"
    )
    assert "self.bar.update()" not in check_same(text, "manual")
