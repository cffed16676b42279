"""What the lifted text puts where its Module is, is told of once: as an edit, and as nothing to look at."""

from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

AGENT = """
import numpy
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = nn.Linear(4, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.random = numpy.random.RandomState(0)

    def sample(self):
        return {"seen": self.random.randn(8, 4), "reward": self.random.randn(8)}

    def update(self):
        device = self.device
        samples = self.sample()
        state = torch.FloatTensor(samples["seen"]).to(device)
        reward = torch.FloatTensor(samples["reward"].reshape(-1, 1)).to(device)
        loss = nn.functional.mse_loss(self.net(state), reward)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, frames):
        losses = []
        for frame in range(1, frames + 1):
            losses.append(self.update())
        print(losses[0], losses[-1])


torch.manual_seed(0)
Agent().train(10)
"""


def test_a_call_whose_names_got_a_prefix():
    """A method that is written into the step has its names apart from those of the loop around it."""
    assert ".reshape(-1, 1)).to(self.device)" in check_same(AGENT, "module")
    result = migrate_text(AGENT)
    reward = next(n for n, line in enumerate(AGENT.splitlines(), 1) if "reward = " in line)
    assert [e.line for e in result.edits if "goes where the Module is" in e.message] == [reward]
    assert not [n for n in result.attention if n.code == "PTM104"]
