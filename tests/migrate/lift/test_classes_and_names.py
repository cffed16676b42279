"""Objects that hold the model, and names that meet those of a step: lifted, run before and after."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TRAIN_AND_TEST_METHODS = (
    HEAD
    + """
class Runner:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def train(self, loader):
        self.model.train()
        for x, y in loader:
            loss = criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(f'{loss.item():.6f}')

    def test(self, loader):
        self.model.eval()
        right = 0
        for x, y in loader:
            with torch.no_grad():
                right += (self.model(x).argmax(1) == y).sum().item()
        print(right)

runner = Runner(model, optimizer)
for epoch in range(args.epochs):
    runner.train(train_loader)
    runner.test(test_loader)
"""
)

AGENT = (
    HEAD
    + """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(5, 2), nn.Linear(5, 1)

    def evaluate(self, states):
        return self.actor(states), self.critic(states)

class Agent:
    def __init__(self):
        self.policy = Policy()
        self.optimizer = torch.optim.Adam([
            {'params': self.policy.actor.parameters()}, {'params': self.policy.critic.parameters(), 'lr': 1e-3}])

    def update(self, states):
        for _ in range(3):
            action, value = self.policy.evaluate(states)
            loss = action.pow(2).mean() + value.abs().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

agent = Agent()
for i in range(args.epochs):
    print(i, f'{agent.update(xs):.6f}')
"""
)

EVALUATED_BY_A_FUNCTION_THAT_KEEPS_ITS_MODE = (
    HEAD
    + """
def shown(net):
    was = net.training
    net.train(mode=False)
    with torch.no_grad():
        return net(xs[:2]).sum().item()

for epoch in range(args.epochs):
    model.train()
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f'{shown(model):.6f}')
"""
)

UNPACKED = (
    HEAD
    + """
def get_batch(n):
    at = torch.randint(0, len(xs), (n,))
    return xs[at], ys[at]

def train_step(x, target):
    optimizer.zero_grad()
    loss = criterion(model(x), target)
    loss.backward()
    optimizer.step()
    return loss.item(), len(x)

try:
    for step in range(1, 6):
        x = step
        value, _ = train_step(*get_batch(4))
        if step % 2 == 0:
            print(f'{x} {value:.6f}')
    print('done')
except KeyboardInterrupt:
    print('left')
"""
)

BATCH_IDX = (
    HEAD
    + """
for epoch in range(args.epochs):
    for batch_idx in range(0, 36, 6):
        loss = criterion(model(xs[batch_idx:batch_idx + 6]), ys[batch_idx:batch_idx + 6])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f'{batch_idx} {loss.item():.6f}')
"""
)

BATCH = (
    HEAD
    + """
for epoch in range(args.epochs):
    for batch, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y) * (1 + batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 2 == 0:
            print(f'{batch} {loss.item():.6f}')
"""
)


@pytest.mark.parametrize(
    "text",
    [TRAIN_AND_TEST_METHODS, AGENT, EVALUATED_BY_A_FUNCTION_THAT_KEEPS_ITS_MODE, BATCH_IDX, BATCH, UNPACKED],
    ids=[
        "methods named train and test",
        "an agent",
        "a mode that is left on",
        "index batch_idx",
        "index batch",
        "unpacked arguments",
    ],
)
def test_it_is_lifted_and_runs_the_same(text):
    check_same(text, "module")


def test_the_model_of_an_agent_is_the_modules_own():
    """What the module does not hold has no gradients averaged over processes."""
    text = check_same(AGENT, "module")
    assert "self.policy = policy\n" in text and "self.policy.evaluate(" in text


def test_a_loader_of_a_hooks_name_hides_no_hook():
    text = """
import torch
from torch import nn

torch.manual_seed(0)
train_dataloader = val_dataloader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in train_dataloader:
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, len(val_dataloader), f'{loss.item():.5f}')
"""
    assert "self.val_dataloader_ = val_dataloader" in check_same(text, "module")
