"""T1: a network that the script took to the CPU goes back by the script's own move, wherever the two stand."""

import textwrap

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def main(use_cuda, device):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.linspace(0, 1, 64).reshape(16, 4), torch.linspace(0, 2, 16)[:, None])
    loader = DataLoader(data, batch_size=4)
    for epoch in range(3):
{first}
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        print(loss.item())
{last}

main(torch.cuda.is_available(), "cuda" if torch.cuda.is_available() else "cpu")
"""
SAVE = "torch.save(model.state_dict(), 'm.pth')"


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("pass", f"if use_cuda:\n    model.cpu()\n{SAVE}\nif use_cuda:\n    model.cuda()"),
        ("pass", f"if use_cuda:\n    model.cpu()\n    {SAVE}\nmodel.to(device)"),
        ("pass", f"model.cpu()\n{SAVE}\nif use_cuda:\n    model.cuda()"),
        ("pass", f"with torch.no_grad():\n    model = model.to('cpu')\n{SAVE}\nmodel = model.to(device)"),
        ("pass", "torch.save(model.cpu(), 'm.pth')\nmodel.to(device)"),
        ("pass", "torch.save({'net': model.eval().cpu()}, 'm.pth')\nmodel.train().to(device)"),
        ("model.to(device)", f"model.cpu()\n{SAVE}"),
        ("model = model.to(device)", f"model = model.cpu()\n{SAVE}"),
        ("if use_cuda:\n    model.cuda()", f"if use_cuda:\n    model.cpu()\n{SAVE}"),
    ],
)
def test_it_goes_back(tmp_path, first, last):
    text = TRAIN.format(first=textwrap.indent(first, " " * 8), last=textwrap.indent(last, " " * 8))
    after = check_on_card(tmp_path, text)
    assert "(Module)" in after and "x.to(" not in after


@pytest.mark.parametrize(
    "text",
    [
        "def f(net, x, flag):\n    if flag:\n        x = x.cuda()\n    return net(x).cpu()\n",
        "def f(net, out):\n    kept.append(out.cpu())\n    out = out.cuda()\n    y = net(out)\n",
        "def f(net, out):\n    y = out.cpu()\n    x = 2\n    net.cuda()\n",
        "def f(net):\n    def other():\n        net.cpu()\n    net.cuda()\n",
        "def f(net, flag):\n    net.cpu()\n    net.cuda()\n    if flag:\n        net.cuda()\n",
        "for x in loader:\n    x = x.cuda()\n    kept.append(net(x).cpu())\n    x = x.cpu()\n",
        "for x in loader:\n    x = x.cuda()\n    kept.append(x.cpu())\n",
        "for net in nets:\n    net.cuda()\n    kept.append(run(net))\nfirst.cpu()\n",
    ],
)
def test_what_nothing_took_away_is_moved_by_nobody(text):
    facts = Facts("import torch\nfrom other import kept, loader, nets, run, first, net\n" + text)
    last = max((a for a in facts.attributes["cuda"]), key=lambda a: a.lineno)
    assert facts.placed.by_runtime(last.value)


@pytest.mark.parametrize("took", ["self.net.module.cpu().state_dict()", "self.net.cpu().state_dict()"])
def test_what_was_wrapped_goes_back_too(took):
    """pix2pix: the wrapper takes itself back, its network went."""
    text = (
        f"import torch\nclass A:\n    def save(self):\n        s = {took}\n        self.net.cuda(0)\n        return s\n"
    )
    text += "net = torch.nn.DataParallel(torch.nn.Linear(2, 2))\n"
    result = migrate_text(text)
    assert "self.net.cuda(0)" in result.text and any("self.net.cuda(0)" in n.message for n in result.attention)
