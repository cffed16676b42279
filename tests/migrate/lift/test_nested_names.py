"""What is written into its caller keeps the names of the functions, classes and handlers that it defines."""

import pytest

from tests.migrate.running import check_same

FIT = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(20, 3)
y = x.sum(1, keepdim=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 1)

    def forward(self, x):
        return self.a(x)

    def fit(self, optimizer, epochs):
        for epoch in range(epochs):
            {}
            loss = optimizer.step(closure)
            print(epoch, loss.item())


{}
net = Net()
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
net.fit(optimizer, 3)
print(closure)
"""
CLOSURE = """def closure():
                optimizer.zero_grad()
                loss = (self(x) - y).pow(2).mean()
                loss.backward()
                return loss"""
HANDLED = f"""try:
                float("none")
            except ValueError as closure:
                print(len(str(closure)))
            {CLOSURE}"""
MADE = f"""class closure:
                rate = 2
            print(closure.rate)
            {CLOSURE}"""


@pytest.mark.parametrize("other", ["closure = 1", 'closure = "closure()"'])
@pytest.mark.parametrize("defined", [CLOSURE, HANDLED, MADE], ids=["function", "handler", "class"])
def test_a_nested_definition_is_called_by_its_new_name(defined, other):
    assert "closure" in check_same(FIT.format(defined, other), "manual")


def test_one_that_no_other_is_called_as():
    check_same(FIT.format(CLOSURE, "").replace("print(closure)", ""), "manual")
