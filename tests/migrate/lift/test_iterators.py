"""Batches drawn by hand from an iterator that is made anew at its end: lifted as epochs. Run before and after."""

from textwrap import indent

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.iterators import draw_in_a_loop

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

DRAWS = """    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(train_loader)
        x, y = next(batches)
"""
STEP = """    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ENDLESS = (
    HEAD
    + f"""
batches = iter(train_loader)
step, began = 0, time.time()
while True:
{DRAWS}{STEP}    step += 1
    if step % 4 == 0:
        print(f'{{step}} {{loss.item():.6f}}')
    if step >= 12: break
print(step)
"""
).replace("step, began = 0, time.time()", "step = 0\nbegan = time.time()")
COUNTED = (
    HEAD
    + f"""
def fit(steps):
    batches = iter(train_loader)
    for step in range(1, steps):
{indent(DRAWS + STEP, "    ")}        print(f'{{step}} {{loss.item():.6f}}')

fit(11)
"""
)
EPOCHS = ENDLESS.replace("step = 0\n", "step = 0\nepoch = 0\n").replace(
    "        batches = iter(train_loader)\n        x",
    "        epoch += 1\n        print('epoch', epoch)\n        batches = iter(train_loader)\n        x",
)
UNTIL = ENDLESS.replace("while True:", "while step < 11:").replace("    if step >= 12: break\n", "")
NONE = UNTIL.replace("step = 0\n", "step = 20\n")


@pytest.mark.parametrize("text", [ENDLESS, COUNTED, EPOCHS, UNTIL], ids=["endless", "counted", "epochs", "until"])
def test_it_is_lifted_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "train_loader)" in result.split(".fit(")[1] and "next(" not in result and "divide_batches" not in result


def test_the_two_loops():
    text = draw_in_a_loop(Facts(EPOCHS))
    assert text.split("began = time.time()\n")[1].startswith(
        "ended = False\nwhile not ended:\n    for x, y in train_loader:\n        loss = criterion(model(x), y)\n"
    )
    assert (
        "if step >= 12: ended = True; break\n    if not ended:\n        epoch += 1\n        print('epoch', epoch)\n"
        in text
    )
    assert "iter(" not in text.split("optimizer = ")[1]


UNCHANGED = {
    "another iterator": ENDLESS.replace(
        "        batches = iter(train_loader)\n        x", "        batches = iter(test_loader)\n        x"
    ),
    "it is read elsewhere": ENDLESS.replace("    step += 1\n", "    step += 1\n    print(batches)\n"),
    "something is drawn in between": ENDLESS.replace("began = time.time()", "began = torch.rand(1)"),
    "something stands before": ENDLESS.replace("    try:", "    print(step)\n    try:", 1),
    "another error": ENDLESS.replace("StopIteration", "RuntimeError"),
    "the number is read below": COUNTED.replace("\nfit(11)", "    print(step)\n\nfit(11)"),
    "a counted step is left": COUNTED.replace(
        "        print(f'{step}", "        if step == 3:\n            continue\n        print(f'{step}"
    ),
    "the count changes": COUNTED.replace("        print(f'{step}", "        step = step + 0\n        print(f'{step}"),
    "nothing is trained": ENDLESS.replace("    loss.backward()\n", ""),
    "a second draw": ENDLESS.replace("    step += 1\n", "    step += 1\n    next(batches)\n"),
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_unchanged(text):
    assert text not in (ENDLESS, COUNTED) and draw_in_a_loop(Facts(text)) is None


def test_a_loop_that_does_not_begin():
    assert draw_in_a_loop(Facts(NONE)) is not None and "if not (step < 11)" in draw_in_a_loop(Facts(NONE))
