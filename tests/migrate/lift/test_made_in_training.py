"""A network made anew in every epoch goes where the Module is itself: the Trainer has placed its own by then."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)

def make(width):
    return nn.Linear(4, width)

def main():
    loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)
    net = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        MADE
        for x in loader:
            x = x.to(device)
            loss = (net(x) - critic(x)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'{loss.item():.5f}')

main()
"""
MADE = [
    ("critic = nn.Linear(4, 2).to(device)", "self.critic = nn.Linear(4, 2).to(self.device)"),
    ("critic = make(2).to(device)\n        critic.eval()", "self.critic = make(2).to(self.device)"),
    ("critic = make(2).cuda() if False else make(2).to(device)\n        critic.eval()", "make(2).to(self.device)"),
    ("critic = nn.Linear(4, 2)\n        critic.to(device)", "self.critic.to(self.device)"),
]


@pytest.mark.parametrize(("made", "placed"), MADE)
def test_its_move_stays(made, placed):
    """It went, and on a GPU the network stayed on the CPU."""
    assert placed in check_same(TEXT.replace("MADE", made), "module")


FOLDS = TEXT.replace("    net = nn", "    for fold in range(2):\n        net = nn").replace("        MADE\n", "")


def test_one_for_a_training_that_follows_is_the_trainers():
    before, after = FOLDS.split("    optimizer", 1)
    text = before + "    " + ("    optimizer" + after).replace("\n    ", "\n        ").replace("critic(x)", "x.sum()")
    result = check_same(text, "module")
    assert "net = nn.Linear(4, 2)\n" in result and "nn.Linear(4, 2).to(" not in result


IN_A_FUNCTION = """
import torch
from torch import nn
torch.manual_seed(0)

def kept(optimizer):
    return optimizer

loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)

def train(name):
    if name:
        net = nn.Linear(4, 2).cuda()
    else:
        net = nn.Linear(4, 3).cuda()
    optimizer = torch.optim.SGD([{'params': p} for _, p in net.named_parameters()], lr=0.1)
    optimizer = kept(optimizer)
    for x in loader:
        x = x.cuda()
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), name)

names = ['a', 'b']
for i in range(len(names)):
    train(names[i])
"""


def test_one_that_the_function_of_the_epoch_makes():
    """It was left on the CPU, where the batches were on the card."""
    result = migrate_text(IN_A_FUNCTION)
    assert result.plan == "manual" and "self.net = nn.Linear(4, 2).to(self.device)" in result.text
    assert "x.to(" not in result.text
