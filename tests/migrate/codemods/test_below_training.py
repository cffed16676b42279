"""T2: what a network meets below the training goes where that network is: the Trainer's, or one of the script's own."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))
loader = DataLoader(TensorDataset(X, Y), batch_size=4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x)


def load(state):
    net = Net()
    net.load_state_dict(state)
    return net.to(device)


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ABOVE
for epoch in range(2):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch)
with torch.no_grad():
    BELOW
"""
HERE = "next({}.parameters()).device"
BELOW = [
    ("out = model(X.to(device))\n    print(out.argmax(1).tolist())", [f"model(X.to({HERE.format('model')}))"]),
    (
        "out = model(X.to(device))\n    print((out.argmax(1) == Y.to(device)).sum().item())",
        [f"model(X.to({HERE.format('model')}))", "== Y.to(out.device)"],
    ),
    (
        "print((model(X.to(device)).argmax(1) == Y.to(device)).sum().item())",
        [f"X.to({HERE.format('model')})", f"Y.to({HERE.format('model')})"],
    ),
    ("x = X.to(device)\n    print(model(x).argmax(1).tolist())", [f"x = X.to({HERE.format('model')})"]),
    (
        "x, y = X.to(device), Y.to(device)\n    out = model(x)\n    print((out.argmax(1) == y).sum().item())",
        [f"x, y = X.to({HERE.format('model')}), Y.to({HERE.format('model')})"],
    ),
    ("fresh = Net().to(device)\n    print(fresh(X.to(device)).shape)", [f"fresh(X.to({HERE.format('fresh')}))"]),
    (
        "best = load(model.state_dict())\n    print(best(X[:2].to(device)).argmax(1).tolist())",
        [f"best(X[:2].to({HERE.format('best')}))"],
    ),
    (
        "out = model(X.to(device))\n    fresh = Net().to(device)\n    print(fresh(X.to(device)).shape, out.shape)",
        [f"fresh(X.to({HERE.format('fresh')}))"],
    ),
    (
        "model = nn.Linear(4, 2)\n    model.to(device)\n    print(model(X.to(device)).shape)",
        [f"model(X.to({HERE.format('model')}))"],
    ),
]


@pytest.mark.parametrize(("below", "placed"), BELOW)
def test_it_goes_where_that_is(below, placed):
    result = check_same(TEXT.replace("ABOVE\n", "").replace("BELOW", below), "module")
    assert all(p in result for p in placed)


KEPT = [
    ("", "print(X.to(device).sum().item())"),
    ("", "print(torch.relu(X.to(device)).sum().item())"),
    ("act = nn.ReLU()", "print(act(X.to(device)).sum().item())"),
    ("criterion = nn.L1Loss()\ncriterion.load_state_dict({})", "print(criterion(X.to(device), X.to(device)).item())"),
    ("far = nn.L1Loss()\nprint(len(list(far.parameters())))", "print(far(X.to(device), X.to(device)).item())"),
]


@pytest.mark.parametrize(("above", "below"), KEPT)
def test_what_meets_no_network_with_weights_does_not_ask_one(above, below):
    result = check_same(TEXT.replace("ABOVE", above).replace("BELOW", below), "module")
    assert "parameters()).device" not in result


def test_a_network_of_another_function_is_not_there():
    """Its name means nothing where the tensor is placed."""
    above = "def predict(net):\n    print(len(list(net.parameters())))\n    return net(seen)"
    below = "seen = X.to(device)\n    print(predict(model).argmax(1).tolist())"
    assert "net.parameters()).device" not in check_same(TEXT.replace("ABOVE", above).replace("BELOW", below), "module")


def test_a_function_that_gives_back_what_it_gives_itself():
    above = "def deeper(n):\n    if not n:\n        return model\n    net = deeper(n - 1)\n    return net"
    below = "found = deeper(2)\n    print(found(X.to(device)).shape)"
    check_same(TEXT.replace("ABOVE", above).replace("BELOW", below), "module")


def test_what_a_step_reads_is_placed_for_it():
    text = TEXT.replace("ABOVE", "shift = torch.ones(4).to(device)").replace("model(x)", "model(x + shift)")
    result = check_same(text.replace("BELOW", "print(model(X.to(device) + shift).shape)"), "module")
    assert "shift = torch.ones(4).to(next" not in result
