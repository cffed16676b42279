"""Tensors that a script makes above its loop and moves to a device: buffers of the Module, which move with it."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
xs = torch.randn(16, 4)
loader = torch.utils.data.DataLoader(xs, batch_size=4)
net = nn.Linear(4, 4).to(device)
noise = torch.randn(3, 4).to(device)  # the same in every epoch
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def sample():
    return net(SEEN).sum().item()


for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f'{net(noise).sum().item():.5f}')
"""
BUFFER = 'self.register_buffer("noise", noise, persistent=False)'


def test_it_is_a_buffer_and_the_device_goes():
    text = TEXT.replace("SEEN", "xs")
    result = check_same(text, "module")
    assert BUFFER in result and "noise = torch.randn(3, 4)  # the same in every epoch\n" in result
    assert "device" not in result and not [n for n in migrate_text(text).attention if n.code in ("PTM104", "PTM102")]


OTHERS = {
    "a function of the script reads it": ("SEEN", "noise"),
    "it is read after the loop": ("if __name__", "if __name__"),
    "it may be another": ("optimizer = ", "if len(xs) > 3:\n    noise = torch.zeros(1, 4)\noptimizer = "),
    "it gets a type too": (".to(device)  #", ".to(device, torch.float64).float()  #"),
}


@pytest.mark.parametrize("old, new", OTHERS.values(), ids=OTHERS.keys())
def test_it_stays_and_is_told(old, new):
    text = TEXT.replace(old, new).replace("SEEN", "xs")
    text += "print(net(noise).sum().item())\n" if old == new else ""
    result = check_same(text, "module")
    assert "torch.randn(3, 4).to(device" in result
    assert [n for n in migrate_text(text).attention if n.code == "PTM104"]


def test_where_such_edits_are_not_asked_for_it_stays():
    text = TEXT.replace("SEEN", "xs")
    assert "torch.randn(3, 4).to(device)" in migrate_text(text, Options(ignore=("PTM104",))).text


def test_the_class_stands_two_lines_below_what_is_above_it():
    text = TEXT.replace("def sample():\n    return net(SEEN).sum().item()\n\n\n", "")
    result = check_same(text, "module")
    assert "persistent" in result and "# the same in every epoch\n\n\nclass LinearModule(Module):\n" in result
