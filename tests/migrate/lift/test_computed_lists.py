"""Lists of what networks compute above the loop go where the Module is; they stay the same lists."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return [self.a(x), self.a(x) * 2]


def gram(y):
    return (y.t() @ y).detach()


net = nn.Linear(4, 4).to(device)
other = Other().to(device)
probe = torch.ones(2, 4).to(device)
ABOVE
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in loader:
        x = x.to(device)
        loss = (net(x) - STEP).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} {loss.item():.5f}")
"""
FILLED = "made = []\nfor (x,) in loader:\n    made.append(net(x.to(device)).detach())"
MOVED = [
    ("features = other(probe)\nmade = [gram(y) for y in features]", "made[0]", "self.made[:] = "),
    ("made = [gram(y).data for y in other(probe)]", "made[0]", "self.made[:] = "),
    ("made = [net(probe).detach(), net(probe * 2).detach()]", "made[1].mean(0)", "self.made[:] = "),
    (FILLED, "made[1]", "self.made[:] = "),
    ("made = {'a': net(probe).detach(), 'b': other(probe)[0].detach()}", "made['a'].mean(0)", "self.made.update("),
    ("made = [net(probe[:1].view(1, 4)).detach()]", "made[0]", "self.made[:] = "),
    ("features = other(probe)\nmade = {i: gram(y) for i, y in enumerate(features)}", "made[1]", "self.made.update("),
]


@pytest.mark.parametrize(("above", "step", "moved"), MOVED)
def test_they_go_where_the_module_is(tmp_path, above, step, moved):
    text = TEXT.replace("ABOVE", above).replace("STEP", step)
    assert f"{moved}self.transfer_batch_to_device(self.made, self.device, 0)" in check_same(text, "module")
    check_on_card(tmp_path, text)


@pytest.mark.parametrize(
    ("above", "step"),
    [
        ("made = [gram(y).cpu() for y in other(probe)]", "made[0].to(device)"),
        ("made = [y.mean().item() for y in other(probe)]", "made[0]"),
        ("made = [n for n, p in net.named_parameters()]", "len(made)"),
        ("made = [2.0 * i for i in range(3)]", "made[0]"),
    ],
)
def test_numbers_and_what_the_script_brings_to_the_cpu_do_not(tmp_path, above, step):
    text = TEXT.replace("ABOVE", above).replace("STEP", step)
    assert "transfer_batch_to_device" not in migrate_text(text).text
    check_on_card(tmp_path, text)


def test_copies_of_weights_go_once(tmp_path):
    text = TEXT.replace("ABOVE", "made = [p.detach().clone() for p in net.parameters()]").replace("STEP", "made[1]")
    assert check_on_card(tmp_path, text).count("self.made[:] = ") == 1
