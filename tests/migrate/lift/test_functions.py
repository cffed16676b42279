"""Functions that the steps call read the names of the loop, or names of their own that are written the same."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)


def shares(h):
    return [x for x in h]


for epoch in range(2):
    for x, y in loader:
        a, b = shares((model(x), y))
        loss = ((a - b) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
OWN = "return [x for x in h]"


@pytest.mark.parametrize(
    "own",
    [
        OWN,
        "return tuple(x + 0 for x in h)",
        "return list({i: x for i, x in enumerate(h)}.values())",
        "return [(lambda: x + 0)() for x in h]",
        "return list(map(lambda x: x + 0, h))",
        "x = list(h)\n    return x",
    ],
)
def test_a_name_of_the_functions_own_is_not_the_loops(own):
    text = SCRIPT.replace(OWN, own)
    assert "self.loss = " in check_same(text, "module")
    assert not migrate_text(text).attention
    changed = text.replace("        a, b", "        x = x * 2\n        a, b").replace(
        "epoch, loss", "len(x), epoch, loss"
    )
    assert "self.x" in check_same(changed, "module")


@pytest.mark.parametrize("read", ["return [v + 0 * x.sum() for v in h]", "return [z for z in h if len(x)]"])
def test_one_that_reads_the_loops_name_gets_it_from_the_step(read):
    result = migrate_text(SCRIPT.replace(OWN, read))
    assert [n.message for n in result.attention if "`x`" in n.message]


@pytest.mark.parametrize("own", [OWN, "return [y for y in h]", "return [(lambda: y)() for y in h]"])
def test_one_that_changes_the_loops_name_beside_its_own_keeps_the_loop(own):
    result = migrate_text(SCRIPT.replace(OWN, f"global y\n    {own.replace('return', 'y =')}\n    return y"))
    assert result.plan == "loop"
    assert "shares() changes `y`, which the loop reads" in result.attention[0].message
