"""A list that an agent keeps and fills: what is drawn from it is on the CPU, and its move stays in the step."""

import pytest

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
X = torch.randn(20, 4)


class Agent:
    def __init__(self):
        self.q = nn.Linear(4, 3).to(device)
        self.opt = torch.optim.SGD(self.q.parameters(), lr=0.1)
        self.memory = []

    def act(self, s):
        with torch.no_grad():
            return self.q(s.to(device)[None]).argmax(1).item()

    def learn(self, batch):
        DRAWN
        q = self.q(s).gather(1, a[:, None])[:, 0]
        loss = nn.functional.mse_loss(q, r)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


agent = Agent()
for episode in range(3):
    total = 0
    for i in range(20):
        a = agent.act(X[i])
        agent.memory.append((X[i], torch.tensor(a), X[i, 0]))
        if len(agent.memory) >= 8:
            total += agent.learn(agent.memory[-8:])
    print(episode, total)
"""
DRAWN = [
    "s, a, r = (torch.stack(p).to(device) for p in zip(*batch))",
    "s, a, r = [torch.stack(p).to(device) for p in zip(*batch)]",
    "s, a, r = zip(*batch)\n        s, a, r = (torch.stack(p).to(device) for p in (s, a, r))",
    "s, a, r = map(torch.stack, zip(*batch))\n        s, a, r = s.to(device), a.to(device), r.to(device)",
]


@pytest.mark.parametrize("drawn", DRAWN)
def test_what_is_drawn_is_moved(tmp_path, drawn):
    check_on_card(tmp_path, SCRIPT.replace("DRAWN", drawn))
