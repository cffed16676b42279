"""What statements may read before they have written it."""

import ast
from textwrap import indent

import pytest
from ptmigrate.migrate.lift.reads import exposed

from tests.migrate.running import check_same

CASES = {
    "an if of the same test": ("if a.c:\n    x = 1\nfor p in r:\n    if a.c:\n        f(x)\n", False),
    "and of more": ("if a.c and b > 2:\n    x = 1\nelse:\n    y = 2\nif a.c and b > 2:\n    f(x)\n", False),
    "another test": ("if a.c:\n    x = 1\nif a.d:\n    f(x)\n", True),
    "its other branch": ("if a.c:\n    x = 1\nif a.c:\n    pass\nelse:\n    f(x)\n", True),
    "the test's option is set": ("if a.c:\n    x = 1\na.c = 2\nif a.c:\n    f(x)\n", True),
    "the test's name is set": ("if a.c:\n    x = 1\na = 2\nif a.c:\n    f(x)\n", True),
    "the first branch sets it": ("if a.c:\n    x = 1\n    a.c = 2\nif a.c:\n    f(x)\n", True),
    "the loop between sets it": ("if a.c:\n    x = 1\nfor p in r:\n    if a.c:\n        f(x)\n    a.c = p\n", True),
    "a test that may change its mind": ("if g():\n    x = 1\nif g():\n    f(x)\n", True),
    "under a condition in it": ("if a.c:\n    if b:\n        x = 1\nif a.c:\n    f(x)\n", True),
    "what a loop over it is made of": ("for x in range(x + 1, 9):\n    f(x)\n", True),
    "the loop's own": ("for x in range(9):\n    f(x)\n", False),
    "what is opened by its name": ("with open(x) as x:\n    f(x)\n", True),
    "opened before": ("with open(p) as x, g(x):\n    f(x)\n", False),
    "in a loop that may be empty": ("for i in r:\n    if a.c:\n        x = 1\nif a.c:\n    f(x)\n", True),
}


@pytest.mark.parametrize(("text", "may"), CASES.values(), ids=CASES.keys())
def test_a_name_written_under_a_condition(text, may):
    assert ("x" in exposed(ast.parse(text).body)) is may


OWN = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
xs = torch.randn(18, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD([{"params": [w for n, w in model.named_parameters()]}], lr=0.1)
for epoch in range(2):
    for x in DataLoader(xs, batch_size=8):
        loss = model(x).pow(2).mean()
        for w in model.parameters():
            loss = loss + 1e-3 * w.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, SHOWN)
"""


@pytest.mark.parametrize("shown", ["[w.sum().item() for w in model.parameters()]", "{w: w for w in range(2)}"])
@pytest.mark.parametrize("trunk", ["", "def main():\n", "for fold in range(2):\n"])
def test_a_name_that_a_comprehension_binds_is_none_of_the_steps(trunk, shown):
    head, loop = OWN.replace("SHOWN", shown).split("model = ", 1)
    loop = "model = " + loop
    text = head + (trunk + indent(loop, "    ") if trunk else loop) + ("main()\n" if "main" in trunk else "")
    result = check_same(text, "module")
    assert "self.w" not in result and "[w for n, w in" in result


def test_one_that_is_read_after_the_step_is():
    result = check_same(OWN.replace("SHOWN", "w.sum().item(), [w for w in range(2)]"), "module")
    assert "for self.w in self.model.parameters()" in result and "self.w.sum().item(), [w for w in range(2)]" in result
