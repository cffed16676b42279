"""Loops that draw every batch of a loader by hand are loops over the loader: divided as those are, and the same run."""

from textwrap import indent

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.over_loaders import draw_by_the_loop

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

STEP = """optimizer.zero_grad()
loss = criterion(model(x), y)
loss.backward()
optimizer.step()
print(f'{epoch} {loss.item():.6f}')
"""


def script(loop, step=STEP):
    """A script whose epochs draw with `loop`; its last line stands where the step goes."""
    *lines, last = loop.rstrip("\n").split("\n")
    body = "\n".join(lines) + "\n" + indent(step, last[: len(last) - len(last.lstrip())])
    return f"{HEAD}\nfor epoch in range(2):\n{indent(body, '    ')}"


LOOPS = {
    "as many as there are": """
batches = iter(train_loader)
for i in range(len(train_loader)):
    x, y = next(batches)
    ...""",
    "by a name of how many": """
n, epoch_loss = 0, 0
count = len(train_loader)
batches = iter(train_loader)
for _ in range(count):
    model.train()
    x, y = next(batches)
    ...""",
    "with its number": """
batches = iter(train_loader)
for i in range(len(train_loader)):
    batch = next(batches)
    x, y = batch
    print(i)
    ...""",
    "with its number, unpacked": """
batches = iter(train_loader)
for i in range(len(train_loader)):
    x, y = next(batches)
    print(i)
    ...""",
    "in an expression": """
batches = iter(train_loader)
for i in range(len(train_loader)):
    x = (both := next(batches))[0]
    y = both[1]
    ...""",
    "until it ends": """
batches = iter(train_loader)
while True:
    try:
        x, y = next(batches)
    except StopIteration:
        break
    ...""",
    "a walrus": """
batches = iter(train_loader)
while (batch := next(batches, None)) is not None:
    x, y = batch
    ...""",
    "counted by hand": """
batches = iter(train_loader)
i = 0
while i < len(train_loader):
    x, y = next(batches)
    i += 1
    ...""",
    "counted by hand, begun above": """
i = 0
batches = iter(train_loader)
while i < len(train_loader):
    i += 1
    x, y = next(batches)
    ...""",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_loop_is_one_over_the_loader(loop):
    result = check_same(script(loop), "module")
    assert "train_loader)" in result.split(".fit(")[1] and "next(" not in result and "divide_batches" not in result


def test_what_becomes_of_them():
    for_loop = draw_by_the_loop(Facts(script(LOOPS["with its number"]))).split("for epoch in range(2):\n")[1]
    assert for_loop.lstrip("\n").startswith("    for i, batch in enumerate(train_loader):\n        x, y = batch\n")
    until = draw_by_the_loop(Facts(script(LOOPS["until it ends"]))).split("for epoch in range(2):\n")[1]
    assert until.lstrip("\n").startswith("    for x, y in train_loader:\n        optimizer.zero_grad()\n")


ALL, UNTIL, NAMED, BELOW = (
    LOOPS[k] for k in ("as many as there are", "until it ends", "a walrus", "counted by hand")
)  # fmt: skip
UNCHANGED = {
    "fewer than there are": ALL.replace("len(train_loader)", "len(train_loader) - 1"),
    "as many as another has": ALL.replace("len(train_loader)", "len(test_loader)"),
    "no more than nine": ALL.replace("len(train_loader))", "len(train_loader), 9)"),
    "something else when it is over": ALL.replace("    ...", "    pass\nelse:\n    ..."),
    "something is drawn in the same line": ALL.replace("x, y =", "x, y = torch.rand(1),"),
    "from the second on": ALL.replace("range(len", "range(1, len"),
    "two of each": ALL.replace("    ...", "    x, y = next(batches)\n    ..."),
    "not in every step": ALL.replace("    x, y = next(batches)", "    if i % 2 == 0:\n        x, y = next(batches)"),
    "something is drawn before it": ALL.replace("    x, y = next", "    noise = torch.randn(3)\n    x, y = next"),
    "something is drawn in between": ALL.replace("\nfor", "\nnoise = torch.randn(3)\nfor"),
    "something is drawn in between by a call alone": ALL.replace("\nfor", "\ntorch.randn(3)\nfor"),
    "what is shown of the last batch": ALL.replace("    x, y = next", "    seen = x if i else None\n    x, y = next"),
    "the iterator is read": ALL.replace("    ...", "    print(batches)\n    ..."),
    "another end": UNTIL.replace("break", "batches = None"),
    "something else at the end": UNTIL.replace("break", "print('end')"),
    "another error": UNTIL.replace("StopIteration", "RuntimeError"),
    "more in the draw": UNTIL.replace("= next(batches)\n", "= next(batches)\n        print(len(x))\n"),
    "another end of a walrus": NAMED.replace("None)", "0)"),
    "any that is true": NAMED.replace(
        "while (batch := next(batches, None)) is not None", "while batch := next(batches)"
    ),
    "counted in some steps": BELOW.replace("    i += 1", "    if i > 2: i += 1"),
    "counted by two": BELOW.replace("i += 1", "i += 2"),
    "set in some steps": BELOW.replace("    ...", "    if i == 3: i = 4\n    ..."),
    "begun elsewhere": BELOW.replace("i = 0", "i = 1"),
    "steps that are left out": BELOW.replace("    i += 1", "    if len(x) < 3: continue\n    i += 1"),
    "no loader": "rows = [(torch.ones(2, 5), torch.zeros(2, dtype=int))]\n" + ALL.replace("train_loader", "rows"),
    "the end of another": ALL.replace("iter(train_loader)", "iter(train_loader, None)"),
    "another loader by its name": ALL.replace("\nfor", "\ntrain_loader = test_loader\nfor"),
    "no end that is told": UNTIL.replace("next(batches)", "next(batches, None)"),
}


@pytest.mark.parametrize("loop", UNCHANGED.values(), ids=UNCHANGED)
def test_other_loops_stay(loop):
    assert draw_by_the_loop(Facts(script(loop))) is None


def test_what_is_none_below_the_loop_stays():
    assert draw_by_the_loop(Facts(script(NAMED) + "    print(batch)\n")) is None


GIVEN = "g = torch.Generator()\ntrain_loader = torch.utils.data.DataLoader(train_loader.dataset, generator=g)\n"
OWN = "class Own(torch.utils.data.Sampler):\n    pass\n"
GAN = "generator = nn.Linear(5, 5)\n"  # no generator of numbers


@pytest.mark.parametrize("loop", [ALL, BELOW])
@pytest.mark.parametrize("above, stays", [(GIVEN, True), (OWN, True), (GAN, False)])
def test_a_loader_may_go_on_behind_its_last_batch(loop, above, stays):
    text = script(loop).replace("\nfor epoch in", f"\n{above}\nfor epoch in", 1)
    assert (draw_by_the_loop(Facts(text)) is None) is stays


@pytest.mark.parametrize("above", [GIVEN, OWN])
def test_a_loop_that_comes_to_the_end_comes_to_it_as_before(above):
    text = script(UNTIL).replace("\nfor epoch in", f"\n{above}\nfor epoch in", 1)
    assert draw_by_the_loop(Facts(text)) is not None
