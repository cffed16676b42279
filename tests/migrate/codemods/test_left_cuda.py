"""T1: what is moved by hand in the result goes where there is CUDA, so that it ends no machine without."""

from pathlib import Path

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.migrate import Options, migrate_text

from tests import forked
from tests.migrate.running import check_same, run

CARD = Path(__file__).parents[2] / "simulated_card.py"

THERE = '.to("cuda" if torch.cuda.is_available() else "cpu")'
GIVEN = "def f(flag, n):\n    return torch.zeros(n)"
LOOP = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
HELP
net = torch.nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), 4):
        loss = ((net(x.cuda()) - y.cuda() * USE) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
MADE = {
    "by a function": ("def made(n):\n    return torch.ones(n).cuda()\n", "made(1)"),
    "with an option": ("def made(n):\n    return torch.ones(n).cuda(non_blocking=True)\n", "made(1)"),
    "for an object": (
        "class Scale:\n    def __init__(self, by):\n        self.by = by.cuda()\n\nscale = Scale(torch.ones(1))\n",
        "scale.by",
    ),
    "of an object": (
        "class Scale:\n    def __init__(self, by):\n        self.by = by\n        self.by = self.by.cuda()\n\n"
        "scale = Scale(torch.ones(1))\n",
        "scale.by",
    ),
    "for a data set's sake": (
        "def batchify(data, n):\n    data = data[: len(data) // n * n].view(n, -1)\n    return data.cuda()\n\n"
        "data = batchify(torch.randn(24), 8)\n",
        "data[0, 0]",
    ),
}


def loop(name):
    helper, use = MADE[name]
    return LOOP.replace("HELP", helper).replace("USE", use)


@pytest.mark.parametrize("name", MADE)
def test_it_trains_where_there_is_no_cuda(name):
    """As the script would without its moves."""
    result = migrate_text(loop(name))
    assert result.plan == "module" and ".cuda()" not in result.text and '.to("cuda" if' in result.text
    assert [e.code for e in result.edits].count("PTM115") == 1 and not result.attention
    assert migrate_text(result.text).text == result.text
    plain = loop(name).replace(".cuda()", "").replace(".cuda(non_blocking=True)", "")
    assert run(result.text).losses == run(plain).losses != []


@pytest.mark.parametrize("name", MADE)
def test_it_trains_on_a_card(tmp_path, name):
    """There the original runs too, and prints the same."""
    for file, text in (("old.py", loop(name)), ("new.py", migrate_text(loop(name)).text)):
        (tmp_path / file).write_text(text)
    old, new = (forked.run(CARD, file, cwd=tmp_path) for file in ("old.py", "new.py"))
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert new.stdout.splitlines()[-2:] == old.stdout.splitlines() != []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = load().cuda()", f"x = load(){THERE}"),
        ("x = load().cuda(non_blocking=True)", f"x = load(){THERE[:-1]}, non_blocking=True)"),
        ("def f(d):\n    return d[0] + torch.zeros(2).cuda()", f"def f(d):\n    return d[0] + torch.zeros(2){THERE}"),
        (f"{GIVEN}.cuda() if flag else n", f"{GIVEN}{THERE} if flag else n"),
        ("f(torch.zeros(2).cuda(), torch.ones(2).cuda())", f"f(torch.zeros(2){THERE}, torch.ones(2){THERE})"),
    ],
)  # fmt: skip
def test_wherever_it_stands(before, after):
    result = migrate_text(f"import torch\n{before}\n", is_script=False)
    assert result.text == f"import torch\n{after}\n" and not result.attention
    assert migrate_text(result.text, is_script=False).text == result.text


def test_by_the_files_own_name_for_torch_which_is_imported_where_it_has_none():
    assert "t.cuda.is_available()" in migrate_text("import torch as t\nx = load().cuda()\n").text
    text = migrate_text("from torch import nn\nx = load().cuda()\n").text
    assert "import torch\n" in text and f"x = load(){THERE}" in text


@pytest.mark.parametrize(
    "source",
    [
        "x = load().cuda(1)",
        "x = load().cuda(device)",
        "print(f'{load().cuda()=}')",
        "if torch.cuda.is_available():\n    x = load().cuda()",
        "use = torch.cuda.is_available()\nx = load().cuda() if use else load()",
        "args.cuda = args.cuda and torch.cuda.is_available()\nif args.cuda:\n    x = load().cuda()",
        "class Money:\n    def cuda(self):\n        return self\nx = load().cuda()",
        "with torch.cuda.stream(side):\n    x = load().cuda()",
        "move = load().cuda",
    ],
)
def test_what_stays(source):
    assert "is_available() else" not in migrate_text(f"import torch\n{source}\n", is_script=False).text


def test_it_is_left_out_where_it_is_not_wanted():
    text = "import torch\nx = load().cuda()\n"
    result = migrate_text(text, Options(ignore=("PTM115",)), is_script=False)
    assert result.text == text and result.attention


def test_what_is_given_what_another_tensor_is_moved_for_does_not_follow_one_that_stays():
    """`y.to(x.device)` would leave y where x came from."""
    helper = "class Pair:\n    def __init__(self, x, y):\n        self.x = x.cuda()\n        self.y = y.cuda()\n\n"
    text = LOOP.replace("HELP", helper + "pair = Pair(torch.ones(1), torch.ones(1))").replace("USE", "pair.x * pair.y")
    result = migrate_text(text).text
    assert f"self.x = x{THERE}" in result and f"self.y = y{THERE}" in result


def test_where_there_is_no_cuda_it_is_the_same():
    text = LOOP.replace("HELP", "gpu = False").replace("USE", "(torch.ones(1).cuda() if gpu else torch.ones(1))")
    text = text.replace("Linear(3, 1).cuda()", "Linear(3, 1)").replace("x.cuda()", "x").replace("y.cuda()", "y")
    check_same(text, "module")


UNTRAINED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.scales = [torch.ones(1).cuda(), torch.zeros(2).cuda()]

    def forward(self, x):
        return self.fc(x) * self.scales[0]

if __name__ == "__main__":
    torch.manual_seed(0)
    net = Net().cuda()
    x = torch.randn(3, 2).cuda(non_blocking=True)
    print(net(x).sum().item())
"""


def test_where_nothing_places_the_networks_all_stays_on_the_cpu_with_them(tmp_path):
    result = migrate_text(UNTRAINED)
    assert result.plan == "definitions" and "cuda" not in result.text
    told = [e.message for e in result.edits if e.code == "PTM115"]
    assert len(told) == 3 and all("stays on the CPU with the networks" in message for message in told)
    assert migrate_text(result.text).text == result.text
    (tmp_path / "script.py").write_text(result.text)
    ran = [forked.run(*start, tmp_path / "script.py") for start in ([CARD], [])]
    assert ran[0].returncode == 0 and ran[0].stdout == ran[1].stdout != "", ran[0].stderr


@pytest.mark.parametrize(
    "text",
    [
        UNTRAINED.replace("Net().cuda()", "Net()"),  # it was on the CPU, and what it got was not
        UNTRAINED[: UNTRAINED.index("if __name__")],  # for whoever imports it
    ],
)
def test_elsewhere_it_goes_where_cuda_is(text):
    result = migrate_text(text)
    assert THERE in result.text and ".cuda(" not in result.text


def test_what_others_import_goes_where_cuda_is():
    result = migrate_text(UNTRAINED, elsewhere=Elsewhere(imported=True))
    assert THERE in result.text and "stays on the CPU with" not in str(result.edits)
