"""A tensor that goes where the Module is goes there without asking for a card, and without a move in the network."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

CHOSEN = """\
import torch
from torch import nn

torch.manual_seed(0)
use_cuda = torch.cuda.is_available()
net = nn.Linear(3, 1)
if use_cuda:
    net.cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(2, 3)
    {chosen}
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ("x = x.cuda(non_blocking=True) if use_cuda else x", "x = x.to(self.device, non_blocking=True)"),
        ("x = x if not torch.cuda.is_available() else x.cuda()", "x = x.to(self.device)"),
        ("x = (x.cuda() if use_cuda else x) * 2", "x = (x.to(self.device)) * 2"),
        ("x = x + (torch.ones(3).cuda() if use_cuda else torch.ones(3))", "x = x + (torch.ones(3).to(self.device))"),
    ],
)
def test_what_goes_where_the_module_is_needs_no_choice(tmp_path, chosen, left):
    """With another accelerator than CUDA the tensor would stay on the CPU."""
    source = CHOSEN.format(chosen=f"x = x.cuda() if use_cuda else x\n    {chosen}" if "x + " in chosen else chosen)
    text = check_on_card(tmp_path, source)
    assert f"        {left}\n" in text and "use_cuda" not in text and "is_available" not in text


@pytest.mark.parametrize("chosen", ["x = x.cuda() if use_cuda else x.float() * 1", "x = x if use_cuda else x.cuda()"])
def test_a_choice_of_something_else_stays(chosen):
    text = migrate_text(CHOSEN.format(chosen=chosen)).text
    assert chosen.replace("use_cuda", "self.use_cuda").replace("cuda()", "to(self.device)") in text


MOVING = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.layer = nn.Linear(2, 3)
        self.to(device)

    def forward(self, x):
        x = x.to(self.device)
        return self.layer(x)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    {made}
    loss = ({given} - y.to(device)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("made", "given", "placed"),
    [
        ("x, y = torch.randn(4, 2), torch.randn(4, 3)", "net(x)", "torch.randn(4, 2).to(self.device), torch.randn("),
        ("x = torch.ones(4, 2); y = torch.randn(4, 3)", "net(x)", "x = torch.ones(4, 2, device=self.device)"),
        ("y = torch.randn(4, 3)", "net(torch.rand(4, 2))", "(self.net(torch.rand(4, 2).to(self.device)) - y.to("),
    ],
)  # fmt: skip
def test_what_the_network_moved_goes_there_as_it_was_drawn(tmp_path, made, given, placed):
    """The network's own move is gone; a card draws other numbers than the CPU, where the script drew them."""
    text = check_on_card(tmp_path, MOVING.format(made=made, given=given))
    assert placed in text and "x.to(" not in text


@pytest.mark.parametrize("reads", ["x = x.to(device)", "seen = x.numpy()"])
def test_what_is_moved_or_read_on_the_cpu_is_made_as_before(reads):
    made = f"x, y = torch.randn(4, 2), torch.randn(4, 3)\n    {reads}"
    assert (
        "x, y = torch.randn(4, 2), torch.randn(4, 3)\n" in migrate_text(MOVING.format(made=made, given="net(x)")).text
    )
