"""T1: what the function that goes through the batches is given stays moved: no loader gives it, nothing places it."""

import textwrap

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_project_on_card

DATA = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def make(name):
    x = torch.linspace(0, 1, 24).reshape(6, 4)
    return x, x.sum(1, keepdim=True), torch.eye(4)

def batches(x, y):
    return DataLoader(TensorDataset(x, y), batch_size=2)
"""
HEAD = """\
import torch
from torch import nn
from data import batches, make

def score(net, x, y, device):
    with torch.no_grad():
        return nn.functional.mse_loss(net(x.to(device)), y.to(device)).item()

"""
EPOCHS = """\
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for a, b in batches(x, y):
            a, b = a.to(device), b.to(device)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net({seen}), b)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            print(epoch, nn.functional.mse_loss(net(x.to(device)), y.to(device)).item())
    print(score(net, x, y, device))
"""
WHOLE = """\
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x.to(device) @ mix.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(net(x.to(device)).sum().item())
"""
DEVICE = '    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'


@pytest.mark.parametrize(
    "main",
    [
        f"def fit(x, y, mix):\n{DEVICE}{EPOCHS.format(seen='a')}\nx, y, mix = make('a')\nfit(x, y, mix)\n",
        f"def fit(x, y, mix):\n{DEVICE}{EPOCHS.format(seen='a @ mix.to(device)')}\nfit(*make('a'))\n",
        f"def fit(name):\n{DEVICE}    x, y, mix = make(name)\n{EPOCHS.format(seen='a')}\nfit('a')\n",
        f"def fit(name):\n{DEVICE}    x, y, mix = make(name)\n{WHOLE}\nfit('a')\n",
        f"def fit():\n{DEVICE}    x, y, mix = make('a')\n{WHOLE}\nfit()\n",
        textwrap.dedent(f"{DEVICE}    x, y, mix = make('a')\n{EPOCHS.format(seen='a')}"),
    ],
)
def test_it_is_where_the_network_is(tmp_path, main):
    after = check_project_on_card(tmp_path, main=HEAD + main, data=DATA)["main"]
    assert "(Module)" in after and "nn.Linear(4, 1).to" not in after


STEPS = """\
import torch
from torch import nn
from data import loader, make

def fit(loader, x, device):
    net = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for a in loader:
{step}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{calls}
"""


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        ("loss = net(a.to(device)).mean()", "fit(loader, None, 'cuda')"),  # a batch
        ("a = a[0].to(device)\nloss = net(a).mean() + (a @ a.T).mean()", "fit(loader, None, 'cuda')"),
        ("x = net(a.to(device))\nloss = x.to(device).mean()", "fit(loader, None, 'cuda')"),  # it has another value
    ],
)
def test_what_the_loop_gives_a_name_is_the_runtimes(step, calls):
    text = STEPS.format(step=textwrap.indent(step, " " * 8), calls=calls)
    assert ".to(" not in migrate_text(text).text


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("critic", "loss = (critic.to(device)(a) - net(a)).mean()"),
        ("teacher", "teacher.to(device)\nloss = (both(teacher, a) - net(a)).mean()"),
        ("disc", "D = disc.to(device)\nloss = (both(D.parameters(), a) - net(a)).mean()"),
        ("judge", "judge = judge.to(device)\nloss = (judge(a) - net(a)).mean()"),
    ],
)
def test_a_network_that_it_is_given_is_the_trainers(name, step):
    """By its name, because it is called, or as a statement moves it."""
    text = STEPS.format(step=textwrap.indent(step, " " * 8), calls="").replace("fit(loader, x,", f"fit(loader, {name},")
    assert f"{name}.to(" not in migrate_text(text).text


ADAPT = """\
import torch
from data import loader, make

def adapt(net, optimizer, x):
    for k in range(3):
        optimizer.zero_grad()
        net(x.cuda()).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("calls", "placed"),
    [
        ("", True),  # its rounds may be steps on one batch
        ("for x in loader:\n    adapt(net, optimizer, x)\n", True),
        ("adapt(net, optimizer, make('a'))\n", False),
        ("x = make('a')\nadapt(net, optimizer, x)\n", False),
        ("adapt(net, optimizer, make('a'))\nfor x in loader:\n    adapt(net, optimizer, x)\n", True),
    ],
)
def test_of_counted_rounds_the_callers_say_what_they_go_over(calls, placed):
    facts = Facts(ADAPT + calls)
    moved = next(a.value for a in facts.attributes["cuda"])
    assert facts.placed.by_runtime(moved) is placed
