"""T1: lengths stay on the CPU, where `pack_padded_sequence` takes them, though the batch is placed whole."""

from pathlib import Path

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests import forked

CARD = Path(__file__).parents[2] / "simulated_card.py"
NET = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
class Net(nn.Module):
    def forward(self, x, n):
        {}
        return self.rnn({})
"""
ANY = 'torch.as_tensor(n, device="cpu")'


def net(packed, above="x = self.emb(x)"):
    return NET.format(above, packed)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pack_padded_sequence(x, n)", f"pack_padded_sequence(x, {ANY})"),
        ("nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)",
         f"nn.utils.rnn.pack_padded_sequence(x, {ANY}, batch_first=True)"),
        ("pack_padded_sequence(x, lengths=n)", f"pack_padded_sequence(x, lengths={ANY})"),
        ("pack_padded_sequence(x, n.view(-1))", "pack_padded_sequence(x, n.view(-1).cpu())"),
        ("pack_padded_sequence(x, n.long().squeeze(1))", "pack_padded_sequence(x, n.long().squeeze(1).cpu())"),
        ("pack_padded_sequence(x, n.data)", "pack_padded_sequence(x, n.data.cpu())"),
        ("pack_padded_sequence(x, n[1])", 'pack_padded_sequence(x, torch.as_tensor(n[1], device="cpu"))'),
    ],
)  # fmt: skip
def test_what_a_network_is_given(before, after):
    check(net(before), net(after), select="PTM114")


@pytest.mark.parametrize(
    "above",
    ["n, order = torch.sort(n, descending=True)", "n = n.view(-1)", "mask = n.unsqueeze(1) > 0", "n = torch.sub(n, 1)"],
)
def test_what_shows_itself_to_be_a_tensor(above):
    check(net("pack_padded_sequence(x, n)", above), net("pack_padded_sequence(x, n.cpu())", above), select="PTM114")


@pytest.mark.parametrize(
    "packed",
    [
        "pack_padded_sequence(x, n.cpu())",
        "pack_padded_sequence(x, n.to('cpu'), batch_first=True)",
        "pack_padded_sequence(x, n.tolist())",
        "pack_padded_sequence(x, n.cpu().long())",
        "pack_padded_sequence(x, list(n))",
        "pack_padded_sequence(x, [len(row) for row in x])",
        "pack_padded_sequence(x, torch.tensor([x.size(0)]))",
        "pack_padded_sequence(x, n.cpu().numpy())",
        "pack_padded_sequence(*n)",
        "pack_sequence([x, x])",
        "own.pack_padded_sequence(x, n)",
    ],
)
def test_what_is_there_already(packed):
    check_unchanged(net(packed), select="PTM114")


@pytest.mark.parametrize("above", ["n = n.cpu()", "n = n.cpu().int()", "n = [4] * 8", "n, y = n.tolist(), x"])
def test_what_was_brought_there(above):
    check_unchanged(net("pack_padded_sequence(x, n)", above), select="PTM114")


def test_what_is_brought_there_here_and_there_only():
    above = "if x.is_cuda:\n            n = n.cpu()"
    check(net("pack_padded_sequence(x, n)", above), net("pack_padded_sequence(x, n.cpu())", above), select="PTM114")


def test_what_all_calls_give_from_there():
    code = "from torch.nn.utils.rnn import pack_padded_sequence\n"
    code += "def packed(x, n):\n    return pack_padded_sequence(x, n)\n"
    check_unchanged(code + "packed(a, [3, 2])\npacked(b, m.tolist())\n", select="PTM114")
    after = "import torch\n" + code.replace("(x, n)\n", '(x, torch.as_tensor(n, device="cpu"))\n')
    check(code + "packed(a, [3, 2])\npacked(b, m)\n", after + "packed(a, [3, 2])\npacked(b, m)\n", select="PTM114")


def test_by_another_name():
    code = "import torch as t\nfor x, n in loader:\n    p = t.nn.utils.rnn.pack_padded_sequence(x, {})\n    net(p)\n"
    check(code.format("n"), code.format('t.as_tensor(n, device="cpu")'), select="PTM114")


MAKES = """\
import torch
from torch import nn
from torch.nn.utils.rnn import {}
class Net(nn.Module):
    def forward(self, x):
        n = torch.full((x.size(0),), x.size(1){})
        return self.rnn({}(x, n){})
"""


@pytest.mark.parametrize(
    ("name", "call"),
    [("pack_padded_sequence", "pack_padded_sequence"), ("pack_padded_sequence as pack", "pack")],
)
def test_what_a_network_makes_for_packing_stays_there(name, call):
    check_unchanged(MAKES.format(name, "", call, ""), attention=[])
    other = ("pad_sequence as pack", "pack")  # which takes no lengths
    text = MAKES.format(other[0], "{}", other[1], " * n")
    check(text.replace("{}", ""), text.replace("{}", ", device=x.device"), select="PTM104")


SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = [(torch.randn(2 + i % 4, 3), i % 2) for i in range(24)]

def collate(items):
    items.sort(key=lambda item: len(item[0]), reverse=True)
    rows, labels = zip(*items)
    lengths = [len(row) for row in rows]
    return pad_sequence(rows, batch_first=True), {lengths}, torch.tensor(labels)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.out = nn.Linear(4, 2)

    def forward(self, x, lengths):
        _, h = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
        return self.out(h[-1])

model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, lengths, y in DataLoader(data, batch_size=6, shuffle=True, collate_fn=collate):
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("lengths", ["lengths", "torch.tensor(lengths)"])
def test_on_a_card(tmp_path, lengths):
    script = SCRIPT.replace("{lengths}", lengths)
    (tmp_path / "old.py").write_text(script)
    result = migrate_text(script)
    (tmp_path / "new.py").write_text(result.text)
    assert result.plan == "module"
    commands = [["old.py"], [CARD, "old.py"], ["new.py"], [CARD, "new.py"]]
    lines = [_run(tmp_path, *command) for command in commands]
    assert lines[0] and all(other == lines[0] for other in lines)


def _run(folder, *command):
    done = forked.run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("ptmigrate")]
