"""T2: the device of a module's own parameter or buffer is right as it stands."""

import pytest
from helpers import check_unchanged
from ptmigrate.migrate.migrate import migrate_text

NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        {made}
    def sample(self, n):
        {lines}
"""
MADE = [
    'self.register_buffer("betas", torch.linspace(0, 1, 5))',
    "register = lambda name, value: self.register_buffer(name, value)\n        register('betas', torch.ones(5))",
    "self.betas = nn.Parameter(torch.ones(5))",
]
LINES = [
    "device = self.betas.device\n        return self.fc(torch.randn(n, 3, device=device))",
    "device = self.betas.device\n        return self.fc(torch.randn(n, 3).to(device))",
]


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("made", MADE)
def test_by_name(made, lines):
    check_unchanged(NET.format(made=made, lines=lines), [], select="PTM104")


@pytest.mark.parametrize("made", MADE)
def test_by_a_property(made):
    text = NET.format(made=made, lines="return self.fc(torch.randn(n, 3, device=self.device))")
    text += "    @property\n    def device(self):\n        return self.betas.device\n"
    check_unchanged(text, [], select="PTM104")


def test_of_a_tensor_that_becomes_a_buffer():
    result = migrate_text(NET.format(made="self.betas = torch.ones(5)", lines=LINES[0]))
    assert "device=device)" in result.text and "register_buffer" in result.text and not result.attention


OTHERS = ["self.betas = make()", "self.betas = torch.ones(5, requires_grad=True)"]


@pytest.mark.parametrize("made", OTHERS)
def test_of_what_need_not_move_with_the_module(made):
    result = migrate_text(NET.format(made=made, lines=LINES[0]))
    assert "device=self.fc.weight.device)" in result.text


def test_a_property_of_something_else_is_no_place_of_the_module():
    text = NET.format(made=MADE[0], lines="return self.fc(torch.randn(n, 3, device=self.device))")
    text += '    @property\n    def device(self):\n        return torch.device("cuda")\n'
    assert "device=self.fc.weight.device)" in migrate_text(text).text
