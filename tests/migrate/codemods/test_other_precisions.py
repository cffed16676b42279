"""T2: where a project speaks of other precisions than float32, what is placed like an input keeps its own."""

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x), torch.zeros(x.size(0)).cuda(), x.mean() + torch.rand(3).cuda()
"""
SCRIPT = """
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net().to(device)DOUBLE
for out in net(torch.ones(2, 3).to(device)DOUBLE):
    print(out.dtype)
"""


@pytest.mark.parametrize(("cast", "placed"), [(".double()", ".to(x.device)"), ("", ".type_as(x)")])
def test_a_network_of_doubles(tmp_path, cast, placed):
    text = check_on_card(tmp_path, NET + SCRIPT.replace("DOUBLE", cast))
    assert text.count(placed) == 2


@pytest.mark.parametrize(
    ("other", "placed"),
    [
        ("net = Net().double()", ".to(x.device)"),
        ("torch.set_default_dtype(torch.float64)", ".to(x.device)"),
        ("net = Net().float()", ".type_as(x)"),
        ("table = numpy.float64(3)", ".type_as(x)"),
    ],
)
def test_what_another_file_makes_of_it(other, placed):
    known = Elsewhere(imported=True, others=(OtherFile("main", other),))
    assert migrate_text(NET, is_script=False, elsewhere=known).text.count(placed) == 2
