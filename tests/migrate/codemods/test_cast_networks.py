"""A tensor that a module keeps stays what it is where the script brings the module to another precision."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        KEPT
        self.order = torch.arange(4, dtype=torch.long)
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        x = x.float()[:, self.order] * self.scale
        return self.layer(x.to(self.layer.weight.dtype)).float()


net = Net()
CAST
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
KEPT = ["self.scale = torch.tensor([0.1] * 4)", "self.scale, self.other = torch.full((4,), 0.1), torch.ones(4)"]


def script(cast, kept=KEPT[0]):
    return SCRIPT.replace("CAST", cast).replace("KEPT", kept)


@pytest.mark.parametrize(
    "cast", ["net.bfloat16()", "net = net.train().to(torch.bfloat16)", "net.to(dtype=torch.bfloat16)", "net.double()"]
)
@pytest.mark.parametrize("kept", KEPT)
def test_stays_an_attribute(cast, kept):
    after = check_same(script(cast, kept), "module")
    assert 'register_buffer("scale"' not in after and 'register_buffer("order"' in after
    says = [n.message for n in migrate_text(script(cast, kept)).attention if n.code == "PTM105"]
    assert says and "`self.scale` is a tensor that does not move with the module" in says[0]


@pytest.mark.parametrize("cast", ["net.float()", "half = torch.ones(2).bfloat16()", "kind = torch.float16"])
def test_becomes_a_buffer(cast):
    assert 'register_buffer("scale"' in check_same(script(cast), "module")


def test_of_the_precision_that_it_has_becomes_a_buffer():
    kept = "self.scale = torch.full((4,), 0.1, dtype=torch.float64)"
    assert 'register_buffer("scale"' in check_same(script("net.double()", kept), "module")
