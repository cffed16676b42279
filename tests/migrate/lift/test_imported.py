"""What a loop or a pass imports is there in every method that reads it."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.imported import import_above

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

LOOP = """
for epoch in range(2):
    {first}
    losses = []
    for x, y in train_loader:
        {step}
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    {last}
"""
PASS = """
def train():
    {first}
    losses = []
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    {last}


for epoch in range(2):
    train()
"""
MAIN = "\ndef main():\n    {}\n\n\nmain()\n"


def in_main(text):
    return MAIN.format(text.strip().replace("\n", "\n    "))


def text(shape, first="pass", step="pass", last="print(losses)"):
    return HEAD + shape.format(first=first, step=step, last=last)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (text(LOOP, "import statistics as s", last="print(s.mean(losses))"), "\nimport statistics as s\n"),
        (text(LOOP, step="import math", last="print(math.fsum(losses))"), "\nimport math\n"),
        (text(in_main(LOOP), "import math", last="print(math.fsum(losses))"), "\n    import math\n"),
        (text(PASS, "from math import (\n        fsum,\n    )", last="print(fsum(losses))"), "\nfrom math import (\n"),
    ],
    ids=["in the loop", "in the step", "in main()", "in train()"],
)
def test_the_same_run(source, line):
    assert line in check_same(source, "module")


@pytest.mark.parametrize(
    "source",
    [
        text(LOOP, step="import math; math.fsum([1])"),  # a line that it shares
        text(LOOP, step="import math\n        math.fsum([1])"),  # its own method reads it alone
        text(LOOP, "if epoch:\n        import math"),
        text(LOOP, "try:\n        import math\n    except ImportError:\n        pass"),
        text(PASS, "import torch", last="print(torch.tensor(losses))"),  # which the file has
        text("import math\n" + LOOP, last="print(math.fsum(losses))"),
        HEAD + "def name():\n    import math\n    return math.pi\n",
        HEAD + "for i in range(3):\n    import math\n    print(math.pi)\n",
    ],
)
def test_what_stays(source):
    assert import_above(Facts(source)) is None
