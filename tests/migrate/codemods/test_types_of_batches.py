"""T1: `x.type(torch.FloatTensor)` names the CPU; a batch that the script left there is where the model is now."""

from pathlib import Path

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests import forked

CARD = Path(__file__).parents[2] / "simulated_card.py"
LOOP = "import torch\nfor x, y in test_loader:\n    {}\n    n += f(model(x), y)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.type(torch.FloatTensor).cuda()", "x = x.type(torch.float32)"),
        ("x = x.type('torch.DoubleTensor').to(0)", "x = x.type(torch.float64)"),
        ("x = x[:, 0].type(torch.LongTensor).view(-1).cuda()", "x = x[:, 0].type(torch.int64).view(-1)"),
        ("x = x.type(torch.FloatTensor)", "x = x.type(torch.float32)"),
        ("y = y.view(-1).type(torch.LongTensor)", "y = y.view(-1).type(torch.int64)"),
        ("y = y.type(torch.ByteTensor).type(torch.LongTensor).cuda()", "y = y.type(torch.uint8).type(torch.int64)"),
        ("z = helper(y).type(torch.LongTensor).cuda()", "z = helper(y).type(torch.int64)"),
    ],
)
def test_a_type_is_a_dtype(before, after):
    check(LOOP.format(before), LOOP.format(after), select="PTM101,PTM108,PTM114")


@pytest.mark.parametrize(
    "kept",
    [
        "z = model(x).type(torch.FloatTensor)",
        "z = model(x).cpu().type(torch.FloatTensor)",
        "z = x.type(torch.float32)",
        "z = x.type(kind)",
        "z = x.type('torch.cpu.FloatTensor')",
        "z = x.type(other.FloatTensor)",
        "z = x.type()",
        "z = torch.FloatTensor(3)",
        "z = helper(y).type(torch.LongTensor)",
        "z = table.type(torch.FloatTensor)",
    ],
)
def test_others_stay(kept):
    check_unchanged(LOOP.format(kept), select="PTM108")


def test_it_is_as_good_as_cpu_for_what_was_moved():
    loop = "import torch\nfor x, y in test_loader:\n    p = model(x.cuda()).{}\n    n += (p == {}).sum()\n"
    cast = "type(torch.FloatTensor)"
    check(loop.format(cast, "y"), loop.format(cast, "y.cpu()"), select="PTM114")
    check_unchanged(loop.format("type(torch.float32)", "y"), select="PTM114")


SCRIPT = """
import torch
from torch import nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
{0}net = nn.Linear(4, 2){1}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(32, 4).double(), torch.randint(0, 2, (32,)).int()), batch_size=8)
right = 0
for epoch in range(2):
    for x, y in loader:
        x = x.type(torch.FloatTensor)
        x = (x + torch.zeros(8, 4)){1}
        y = y.type("torch.LongTensor")
        out = net(x)
        loss = nn.functional.cross_entropy(out, Variable(y.type(torch.LongTensor)){1})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (out.argmax(1).cpu() == y).sum().item()
    print(epoch, round(loss.item(), 5), right)
for x, y in loader:
    found = net(x.type(torch.FloatTensor){1}).argmax(1).type(torch.LongTensor)
    print((found == y).sum().item())
"""


@pytest.mark.parametrize(
    ("device", "move"),
    [
        ('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n', ".to(device)"),
        ("", ""),
    ],
)
def test_the_same_on_a_card(tmp_path, device, move):
    script = SCRIPT.format(device, move)
    (tmp_path / "before.py").write_text(script)
    (tmp_path / "after.py").write_text(migrate_text(script).text)
    runs = [forked.run(*given, cwd=tmp_path) for given in ([CARD, "before.py"], [CARD, "after.py"], ["after.py"])]
    assert [r.returncode for r in runs] == [0, 0, 0], runs
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout != ""
