"""Steps that go by the gradient of each sample: what Opacus makes of an optimizer, and what is made so by hand."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(2, (16,))), batch_size=4)


class Engine:
    def make_private(self, module, optimizer):
        self.module, step = module, optimizer.step

        def clipped():
            for p in module.parameters():
                p.grad = p.grad.clamp(-0.1, 0.1) + 0.01 * torch.randn(p.shape)
            step()

        optimizer.step = clipped
        return module, optimizer


net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
PRIVATE
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        STEP
    print(epoch, f'{loss.item():.6f}')
"""
ENGINES = ["net, optimizer = Engine().make_private(net, optimizer)", "pass"]
STEPS = [
    "optimizer.step()",
    "for p in net.parameters():\n            p.grad_sample = p.grad\n        optimizer.step()",
]


@pytest.mark.parametrize(("private", "step"), [(ENGINES[0], STEPS[0]), (ENGINES[1], STEPS[1])])
def test_it_gets_whole_batches(private, step):
    text = TEXT.replace("PRIVATE", private).replace("STEP", step)
    result = migrate_text(text)
    assert "divide_batches = False" in result.text
    assert any(n.code == "PTM703" and "gradients of the samples" in n.message for n in result.attention)


def test_with_opacus():
    private = "from opacus import PrivacyEngine\nnet, optimizer, loader = PrivacyEngine().make_private_with_epsilon("
    private += "module=net, optimizer=optimizer, data_loader=loader)"
    result = migrate_text(TEXT.replace("PRIVATE", private).replace("STEP", STEPS[0]))
    assert "divide_batches = False" in result.text


def test_the_same_losses():
    check_same(TEXT.replace("PRIVATE", ENGINES[1]).replace("STEP", STEPS[1]), "manual")


@pytest.mark.parametrize("private", ["pass", "make_private = print"])
def test_other_optimizers_share_batches(private):
    assert "divide_batches" not in check_same(TEXT.replace("PRIVATE", private).replace("STEP", STEPS[0]), "module")
