"""A name that a function of an epoch tries before it has a value: as an attribute it had the last epoch's."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2, shuffle=True)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(epoch):
    BEFORE
    for _ in range(6):
        try:
            x = next(it)
        except CAUGHT:
            it = iter(loader)
            x = next(it)
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f'{loss.item():.5f}')

for epoch in range(3):
    train(epoch)
"""


def text(caught, before="pass"):
    return TEXT.replace("except CAUGHT", f"except {caught}".rstrip()).replace("BEFORE", before)


@pytest.mark.parametrize("caught", ["", "Exception", "(NameError, StopIteration)"])
def test_its_loop_is_kept(caught):
    """Other batches were drawn, and other losses came of them, without a word."""
    check_same(text(caught), "loop")


def test_one_that_has_a_value_as_the_epoch_begins():
    check_same(text("", "it = iter(loader)"), "module")


def test_one_that_goes_on_from_epoch_to_epoch():
    check_same(text("").replace("def train(epoch):\n", "def train(epoch):\n    global it\n"), "module")
