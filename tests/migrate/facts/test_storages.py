"""`map_location` functions move storages, which take a device by its name alone."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.facts.storages import is_storage
from ptmigrate.migrate.migrate import migrate_text

from tests import forked

SCRIPT = """\
import os
import torch
from torch import nn

torch.manual_seed(0)
MOVER
net = nn.Linear(4, 2).cuda()
if os.path.exists('last.pt'):
    net.load_state_dict(torch.load('last.pt', WHERE))
    print('resumed')
optimizer = torch.optim.SGD(net.parameters(), 0.1)


def train(n):
    for _ in range(n):
        x, y = torch.randn(8, 4).cuda(), torch.randint(0, 2, (8,)).cuda()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item())


for epoch in range(4):
    if epoch > 1:
        train(3)
torch.save(net.state_dict(), 'last.pt')
"""
MOVERS = {
    "a lambda": ("", "map_location=lambda storage, loc: storage.cuda(0)"),
    "by its place": ("", "lambda storage, loc: storage.cuda()"),
    "a function": ("def placed(storage, loc):\n    return storage.cuda()\n", "map_location=placed"),
}


@pytest.mark.parametrize("mover, where", MOVERS.values(), ids=MOVERS)
def test_what_a_kept_loop_saved_is_loaded_again(mover, where, tmp_path):
    text = SCRIPT.replace("MOVER", mover).replace("WHERE", where)
    result = migrate_text(text)
    assert result.plan == "loop" and "storage.to(device=runtime.device)" in result.text
    assert migrate_text(result.text).text == result.text
    (tmp_path / "script.py").write_text(result.text)
    runs = [forked.run("script.py", cwd=tmp_path) for _ in range(2)]
    assert [p.returncode for p in runs] == [0, 0], runs[1].stderr
    assert "resumed" in runs[1].stdout


def of(source, name="x"):
    facts = Facts("import torch\n" + source + "\n")
    return is_storage(facts, facts.calls_of("cuda")[0].func.value)


def test_others_are_none():
    assert of("torch.load(p, lambda x, at: x.cuda())")
    assert not of("torch.load(p, lambda at, x: x.cuda())")
    assert not of("f = lambda x, at: x.cuda()\ntorch.load(p, at)")
    assert not of("xs = map(lambda x: x.cuda(), torch.load(p))")
    assert not of("x.cuda()")
