"""A buffer of a module whose states are read stays out of them: no key is missing, and none is gone through."""

import pytest
import torch
from ptmigrate.migrate.facts.loaded_states import reads_states
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.order = torch.tensor([1, 0])
        self.low, self.high = torch.zeros(2), torch.ones(2)
        self.a = self.b = torch.ones(1)
        for i in range(2):
            setattr(self, f"m{i}", torch.ones(i))

    def forward(self, x):
        return self.fc(x[:, self.order].clamp(self.low, self.high)) * self.a


net = Net()
"""
READ = [
    "net.load_state_dict(torch.load('net.pt'))",
    "net.fc.load_state_dict(torch.load('net.pt'), strict=False)",
    "for k, v in net.state_dict().items():\n    print(k, v)",
    "ema = {k: v.clone() for k, v in net.state_dict().items()}",
    "for k in net.state_dict():\n    print(k)",
    "state = net.state_dict()",
    "values = list(net.state_dict().values())",
    "print(sorted(net.state_dict()), len(net.state_dict()))",
    "for a, b in zip(names, net.state_dict()):\n    print(a, b)",
]
MOVES = "import torch\n\n\ndef to_card(x):\n    return x.cuda()\n"
NOT_READ = [
    "print(net)",
    "torch.save(net.state_dict(), 'net.pt')",
    "optimizer.load_state_dict(torch.load('opt.pt'))",
    "torch.save({'net': net.state_dict()}, 'net.pt')",
    "state = {'net': net.state_dict()}",
    "save(len(names), net.state_dict())",
]


@pytest.mark.parametrize("line", READ)
def test_read(line):
    assert reads_states(Facts(NET + line + "\n"))
    script = Facts(NET)
    script.others = (OtherFile("train", line + "\n"),)
    assert reads_states(script)


@pytest.mark.parametrize("line", NOT_READ)
def test_not_read(line):
    assert not reads_states(Facts(NET + line + "\n"))


@pytest.mark.parametrize("line, persistent", [(READ[2], False), (NOT_READ[1], True)])
def test_the_keys_are_what_is_told(line, persistent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = NET + line + "\n"
    result = migrate_text(text, Options(select=("PTM105",)), is_script=False)
    told = [e.message for e in result.edits]
    assert len(told) == 4 and all(("new key" in message) is persistent for message in told)
    before, after = {}, {}
    exec(text, before)
    exec(result.text, after)
    buffers = {"order", "low", "high", "a", "b", "m0", "m1"}
    assert {name for name, _ in after["net"].named_buffers(remove_duplicate=False)} == buffers
    new = set(after["net"].state_dict()) - set(before["net"].state_dict())
    assert new == (buffers if persistent else set())
    x = torch.rand(3, 2) * 3
    after["net"].fc = before["net"].fc
    assert torch.equal(before["net"](x), after["net"](x))
    again = migrate_text(result.text, Options(select=("PTM105",)), is_script=False)
    assert again.text == result.text


@pytest.mark.parametrize("more", ["", MOVES], ids=["", "which moves, too"])
@pytest.mark.parametrize("line, persistent", [(READ[0], False), (NOT_READ[1], True)])
def test_a_module_of_a_script_that_loads_its_state(line, persistent, more, tmp_path):
    (tmp_path / "model.py").write_text(NET)
    (tmp_path / "helper.py").write_text(f"from model import net\n{more}")
    (tmp_path / "train.py").write_text(f"import torch\nfrom helper import net\n{line}\n")
    files = collect([tmp_path / "train.py"])
    told = [e for m in migrate_all(files, Options(select=("PTM105",))) for e in m.report.edits]
    assert len(told) == 4 and all(("new key" in e.message) is persistent for e in told)
