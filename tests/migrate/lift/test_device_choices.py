"""A tensor that goes where the Module is goes there without asking for a card."""

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
