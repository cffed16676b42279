"""While loops around the loop over batches: lifted as epochs that end by what the script asks. Run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.loops import end_whiles

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

STEP = """        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
STEPS = (
    HEAD
    + f"""
step = 0
while step < 12:
    for x, y in train_loader:
{STEP}        step += 1
        if step % 4 == 0:
            print(f'{{step}} {{loss.item():.6f}}')
        if step >= 12:
            break
print(step)
"""
)
PATIENCE = (
    HEAD
    + f"""
epoch, best, patience = 0, 9., 2
while epoch < 6 and patience > 0:
    total = 0.
    for x, y in train_loader:
{STEP}        total += loss.item()
    epoch += 1
    if total < best:
        best = total
    else:
        patience -= 1
    print(f'{{epoch}} {{total:.6f}} {{patience}}')
print(epoch, patience)
"""
)
ENDLESS = (
    HEAD
    + f"""
def one_epoch():
    for x, y in train_loader:
{STEP}    return loss.item()

seen = []
while True:
    seen.append(one_epoch())
    if len(seen) == 3:
        print(seen)
        break
"""
)
MADE_ELSEWHERE = STEPS.replace(
    "step = 0\n",
    "made = {'train': [(x, y) for x, y in train_loader]}\ntrain_dl = made.get('train')\nstep = 0\n",
    1,
).replace("in train_loader:\n        loss", "in train_dl:\n        loss")
NEVER = PATIENCE.replace("epoch, best, patience = 0", "epoch, best, patience = 7")


@pytest.mark.parametrize("text", [STEPS, PATIENCE, ENDLESS], ids=["steps", "patience", "endless"])
def test_it_is_lifted_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "Trainer(max_epochs=-1" in result and "self.trainer.should_stop = True" in result


def test_what_is_named_as_a_loader_is_lifted_and_runs_the_same():
    assert "trainer.fit(module, train_dl)" in check_same(MADE_ELSEWHERE, "module")


def test_a_loop_that_may_not_begin():
    assert "if epoch < 6 and patience > 0:\n    trainer = Trainer(" in check_same(PATIENCE, "module")
    assert end_whiles(Facts(NEVER)) == end_whiles(Facts(PATIENCE)).replace("patience = 0", "patience = 7")


UNCHANGED = {
    "an else": "while a:\n    for x in loader:\n        loss(x).backward()\nelse:\n    f()\n",
    "a continue": "while a:\n    if b:\n        continue\n    for x in loader:\n        loss(x).backward()\n",
    "a for loop": "for e in range(2):\n    for x in loader:\n        loss(x).backward()\n",
    "no loader": "while a:\n    loss(x).backward()\n",
    "no batches": "while a:\n    for _ in range(critics):\n        loss(x).backward()\n",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_unchanged(text):
    assert end_whiles(Facts("import torch\n" + text)) is None


BEGINS = STEPS.replace("while step < 12:", "while ASKS:").replace(
    "        if step >= 12:\n", "        if step >= 12:\n            DOES\n"
)


@pytest.mark.parametrize(
    ("asks", "begins", "does"),
    [("not done", "done = False", "done = True"), ("more", "more = True\nbest = 9", "more = False")],
)
def test_what_the_line_above_says_is_not_asked_again(asks, begins, does):
    text = BEGINS.replace("ASKS", asks).replace("DOES", does).replace("step = 0\n", f"step = 0\n{begins}\n")
    result = check_same(text, "module")
    assert f"if {asks}:" not in result and "not (not" not in result
    assert ("if self.done:" if asks == "not done" else "if not self.more:") in result


@pytest.mark.parametrize(
    "begins", ["done = len(xs) > 99", "done = False\nprint(step)", "done = False\ndone = step > 9"]
)
def test_what_it_does_not_say_is(begins):
    text = (
        BEGINS.replace("ASKS", "not done").replace("DOES", "done = True").replace("step = 0\n", f"step = 0\n{begins}\n")
    )
    assert "if not done:" in check_same(text, "module")


def test_what_the_lift_imported_on_its_way_goes_where_nothing_reads_it():
    assert "itertools" not in check_same(PATIENCE, "module")
    own = "import itertools\n" + PATIENCE
    assert "import itertools\n" in check_same(own, "module")
