"""Generators that go over a loader again and again, drawn from once a step: lifted as the loader's epochs."""

from textwrap import indent

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.endless import draw_from_an_iterator
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

CYCLE = '''
def cycle(batches):
    """Again and again."""
    while True:
        for batch in batches:
            yield batch

'''
STEP = """    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f'{step} {loss.item():.6f}')
"""
PLAIN = f"""{HEAD}{CYCLE}
data = cycle(train_loader)
for step in range(11):
    x, y = next(data)
{STEP}"""
MADE = PLAIN.replace("cycle(train_loader)", "cycle(torch.utils.data.DataLoader(train_loader.dataset, 3, shuffle=True))")
FROM = PLAIN.replace("        for batch in batches:\n            yield batch\n", "        yield from batches\n")
PAIRS = PLAIN.replace("for batch in batches:", "for x, y in batches:").replace("yield batch", "yield x, y")
LATER = PLAIN.replace("    optimizer.zero_grad()\n", "").replace(
    "    x, y = next", "    model.train()\n    optimizer.zero_grad()\n    x, y = next"
)
PART = PLAIN.replace("x, y = next(data)", "x = next(data)[0]\n    y = torch.zeros(len(x), dtype=torch.long)")
WHILE = PLAIN.replace("for step in range(11):", "step = 0\nwhile step < 11:") + "    step += 1\n"
INSIDE = PLAIN.replace("data = cycle", "def main():\n    data = cycle").replace(
    PLAIN[PLAIN.index("for step") :], indent(PLAIN[PLAIN.index("for step") :], "    ") + "\nmain()\n"
)
SETTING = PLAIN.replace("range(11)", "range(1, cfg['train']['n'] + 1)").replace(
    "data = ", "cfg = {'train': {'n': 11}}\ndata = "
)
LENGTH = PLAIN.replace("range(11)", "range(2 * len(train_loader))")
SAME = {
    "a loop": PLAIN, "a loader made there": MADE, "yield from": FROM, "pairs": PAIRS, "after what draws nothing": LATER,
    "a part of the batch": PART, "while": WHILE, "in a function": INSIDE, "as a setting tells": SETTING,
    "as many as a loader's batches": LENGTH,
}  # fmt: skip


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_it_is_lifted_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "next(" not in result and "divide_batches" not in result and "data)" in result.split(".fit(")[1]


UNCHANGED = {
    "once": PLAIN.replace("    while True:", "    for _ in range(9):"),
    "something else is given": PLAIN.replace("yield batch", "yield batch[0]"),
    "something is done": PLAIN.replace("            yield batch", "            yield batch\n        print('again')"),
    "another argument": PLAIN.replace("cycle(batches)", "cycle(batches, n=3)"),
    "no loader": PLAIN.replace("cycle(train_loader)", "cycle([(torch.ones(2, 5), torch.zeros(2, dtype=int))])"),
    "two draws": PLAIN.replace("    loss = ", "    x, y = next(data)\n    loss = "),
    "a draw in some steps": PLAIN.replace("    x, y = next(data)", "    if step % 2 == 0:\n        x, y = next(data)"),
    "goes on in the next of the loops around it": PLAIN.replace(
        PLAIN[PLAIN.index("for step"):], "for epoch in range(2):\n" + indent(PLAIN[PLAIN.index("for step"):], "    ")),
    "something is drawn in the same line": PLAIN.replace("x, y = next(data)", "x, y = [torch.rand(1), next(data)][1]"),
    "something is drawn before": PLAIN.replace("    x, y = next", "    noise = torch.randn(3)\n    x, y = next"),
    "several of a step": PLAIN.replace("    x, y = next", "    for _ in range(2):\n        x, y = next"),
    "nothing is trained": PLAIN.replace("    loss.backward()\n", ""),
    "given again": PLAIN.replace("data = cycle", "data = None\ndata = cycle"),
    "of a decorated one": PLAIN.replace("def cycle", "@torch.no_grad()\ndef cycle"),
}  # fmt: skip


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_others_stay(text):
    assert draw_from_an_iterator(Facts(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        SETTING.replace("    x, y = next", "    cfg['train']['n'] = 9\n    x, y = next"),
        LENGTH.replace("len(train_loader)", "len(input())").replace("data = ", "input = str\ndata = "),
    ],
)
def test_a_number_that_may_change_is_counted_as_it_was(text):
    assert "divide_batches = False" in migrate_text(text).text
