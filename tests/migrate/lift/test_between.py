"""A model that works before each of several trainings: a Trainer would place it too late, so its loop is kept."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(8, 3), 4)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def forward(self, x):
        return self.net(x)

    def act(self, x):
        return self.net(x)


agent = Agent().to(device)
opt = torch.optim.SGD(agent.parameters(), lr=0.1)
seen = torch.zeros(4, 3).to(device)
for i in range(3):
    BEFORE
    for epoch in range(2):
        for start in range(0, 4, 2):
            loss = agent(seen[start:start + 2]).pow(2).mean() + 1
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(i, loss.item())
    AFTER
"""
KEPT = "works before each training"


def text_of(before, after="pass", top=""):
    return TEXT.replace("BEFORE", before).replace("AFTER", after).replace("agent = Agent", top + "agent = Agent")


@pytest.mark.parametrize(
    "before",
    [
        "with torch.no_grad():\n        seen[i] = agent.act(torch.randn(3).to(device))",
        "for k in range(4):\n        seen[k] = agent(torch.randn(3).to(device)).detach()",
    ],
)
def test_its_loop_is_kept(before):
    text = text_of(before)
    assert "agent = Agent()" in check_same(text, "loop")
    assert any(KEPT in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pass", "pass"),
        ("agent.train()", "pass"),
        ("print(sum(p.sum().item() for p in agent.parameters()))", "pass"),
        ("agent.load_state_dict(agent.state_dict())", "pass"),
        ("pass", "print(agent(torch.ones(2, 3).to(device)).sum().item())"),
        ("for x in loader:\n        print(agent(x.to(device)).sum().item())", "pass"),
    ],
)
def test_where_a_trainer_is_in_time(before, after):
    result = migrate_text(text_of(before, after))
    assert not any(KEPT in n.message for n in result.attention)


MADE = "agent = Agent().to(device)\n    opt = torch.optim.SGD(agent.parameters(), lr=0.1)\n    "
ABOVE = "agent = Agent().to(device)\nopt = torch.optim.SGD(agent.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    ("works", "plan"),
    [
        ("pass", "module"),
        ("print(sum(p.sum().item() for p in agent.parameters()))", "module"),
        ("print(agent(seen).sum().item())", "loop"),
        ("for x in loader:\n        print(agent(x.to(device)).sum().item())", "loop"),
    ],
)
def test_a_model_that_is_made_anew_for_each_training(works, plan):
    check_same(text_of(MADE + works).replace(ABOVE, ""), plan)


def test_a_script_without_devices_stays_on_the_cpu():
    before = "with torch.no_grad():\n        seen[i] = agent.act(torch.randn(3))"
    text = text_of(before).replace(".to(device)", "").replace(TEXT.splitlines()[4], "")
    assert not any(KEPT in n.message for n in migrate_text(text).attention)
