"""A batch that is drawn once, for a picture at every epoch's end: the function that shows it moves it itself."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same

CARD = Path(__file__).parents[2] / "simulated_card.py"
SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
loader = DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), 4)
net = torch.nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def shown(x, net):
    with torch.no_grad():
        x = x.to(device)
        y = net(x)
    return y


DRAWN
ABOVE
for epoch in range(2):
    for x, y in loader:
        loss = ((net(x.to(device)) - y.to(device)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), shown(fixed, net).sum().item())
"""
DRAWN = {
    "of a loader": "fixed, _ = next(iter(loader))",
    "of an iterator": "batches = iter(loader)\nfixed = next(batches)[0]",
    "of a data set": "fixed = loader.dataset[0][0]",
}
ABOVE = ["", "print(shown(fixed, net).sum().item())"]


def script(drawn, above):
    return SCRIPT.replace("DRAWN", DRAWN[drawn]).replace("ABOVE", above)


@pytest.mark.parametrize("above", ABOVE, ids=["", "above it too"])
@pytest.mark.parametrize("drawn", DRAWN)
def test_the_same(drawn, above):
    assert "x = x.to(next(net.parameters()).device)" in check_same(script(drawn, above), "module")


@pytest.mark.parametrize("drawn", DRAWN)
def test_the_same_on_a_card(tmp_path, drawn):
    (tmp_path / "old.py").write_text(script(drawn, ABOVE[1]))
    (tmp_path / "new.py").write_text(migrate_text(script(drawn, ABOVE[1])).text)
    old, new = (forked.run(CARD, file, cwd=tmp_path) for file in ("old.py", "new.py"))
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert [line for line in new.stdout.splitlines() if not line.startswith("ptmigrate")] == old.stdout.splitlines()


def test_of_what_batches_alone_are_given_the_move_goes():
    text = SCRIPT.replace("DRAWN", "").replace("ABOVE", "").replace("shown(fixed, net).sum().item()", "'.'")
    text = text.replace("    print(loss", "        shown(x, net)\n    print(loss")
    assert "    with torch.no_grad():\n        y = net(x)\n" in check_same(text, "manual")
