"""Tensors that one call makes several of, kept by a module: each is a buffer."""
# ruff: noqa: E501

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card


def _module(lines: str) -> str:
    own = "".join(f"        {line}\n" for line in lines.splitlines())
    return f"import torch\nclass N(torch.nn.Module):\n    def __init__(self, n, m):\n        super().__init__()\n{own}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "self.a, self.b = torch.meshgrid(torch.arange(n), torch.arange(n))  # both",
            'a, b = torch.meshgrid(torch.arange(n), torch.arange(n)); self.register_buffer("a", a.contiguous()); self.register_buffer("b", b.contiguous())  # both',
        ),
        (
            "self.a, self.b = torch.meshgrid([torch.arange(n, device='cuda'), torch.arange(n).cuda()])",
            'a, b = torch.meshgrid([torch.arange(n), torch.arange(n)]); self.register_buffer("a", a.contiguous()); self.register_buffer("b", b.contiguous())',
        ),
        (
            "self.n, m = torch.eye(4).chunk(2); self.k = 3",
            'n_2, m = torch.eye(4).chunk(2); self.register_buffer("n", n_2); self.k = 3',
        ),
        (
            "self.a, self.b, self.c = torch.linalg.svd(torch.eye(n))",
            'a, b, c = torch.linalg.svd(torch.eye(n)); self.register_buffer("a", a); self.register_buffer("b", b); self.register_buffer("c", c)',
        ),
        (
            "x, y = torch.meshgrid(torch.arange(n), torch.arange(n))\nself.x = x\nself.y = y.to('cuda')",
            'x, y = torch.meshgrid(torch.arange(n), torch.arange(n))\nself.register_buffer("x", x.contiguous())\nself.register_buffer("y", y.contiguous())',
        ),
        (
            "u, v = torch.linspace(0, 1, 8).split(4)\nself.u, self.v = u, v",
            'u, v = torch.linspace(0, 1, 8).split(4)\nself.register_buffer("u", u); self.register_buffer("v", v)',
        ),
        (
            "x, y = torch.meshgrid(torch.arange(n), torch.arange(n))\nself.grid = torch.stack([x, y])",
            'x, y = torch.meshgrid(torch.arange(n), torch.arange(n))\nself.register_buffer("grid", torch.stack([x, y]))',
        ),
    ],
)
def test_each_is_a_buffer(before, after):
    check(_module(before), _module(after), select="PTM105")


@pytest.mark.parametrize(
    "line",
    [
        "self.a, self.b = m.chunk(2)",
        "self.a, self.b = torch.eye(4).shape",
        "a, b = torch.eye(4).chunk(2)",
        "a, b = n.split(m)\nself.a = a",
    ],
)
def test_what_is_no_tensor_made_there_stays(line):
    check_unchanged(_module(line))


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("self.a, self.b = torch.eye(4).chunk(2)\nself.b = None", "ab"),
        ("self.a, self.b[0] = torch.eye(4).chunk(2)", "a"),
        ("self.a, *self.b = torch.eye(4).chunk(2)", "a"),
        ("self.training, self.b = torch.eye(4).chunk(2)", ("b", "training")),
    ],
)
def test_what_no_buffer_takes_is_told(lines, names):
    says = [f"PTM105 line 5: `self.{name}` is a tensor that does not move with the module" for name in names]
    check_unchanged(_module(lines), says)


def test_they_are_where_the_network_is(tmp_path):
    text = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.rows, self.columns = torch.meshgrid(torch.arange(4.0, device=device), torch.arange(4.0).to(device))
        low, high = torch.linspace(0, 1, 8).to(device).chunk(2)
        self.low = low
        self.high = high.to(device)

    def forward(self, x):
        return self.fc(x) @ (self.rows - self.columns) * self.high - self.low

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in loader:
        loss = net(x.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} {loss.item():.5f}")
"""
    check_on_card(tmp_path, text)
    assert not [n for n in migrate_text(text).attention if "does not move" in n.message]
