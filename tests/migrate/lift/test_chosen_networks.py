"""Networks that branches give a value, so that the text above the loop alone does not show that there is one."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

HEAD = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--kind', default='wide')
parser.add_argument('--twice', action='store_true')
args = parser.parse_args()
torch.manual_seed(0)
xs = torch.randn(16, 4)
loader = torch.utils.data.DataLoader(xs, batch_size=4)
"""
CHOSEN = """
if args.kind == 'wide':
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
elif args.kind == 'deep':
    for _ in range(2):
        net = nn.Linear(4, 4)
else:
    exit('no such kind')
"""
LOOP = """
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        loss = (net(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
print(f'{loss.item():.5f}')
"""
ADAM = """
if not args.twice:
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
elif args.kind:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
IN_MAIN = "def main():\n" + "".join(f"    {line}\n" for line in (CHOSEN + ADAM + LOOP).splitlines()) + "\nmain()\n"
# a second one, which only some runs have: a Module that asked for it in every run would be no program
SOMETIMES = LOOP.replace(
    "        loss.backward()",
    "        if args.twice:\n            loss = loss + extra(x).mean()\n        loss.backward()",
)
EXTRA = "if args.twice:\n    extra = nn.Linear(4, 1)\n"


@pytest.mark.parametrize("asked", [[], ["--kind", "deep"]])
@pytest.mark.parametrize("text", [CHOSEN + ADAM + LOOP, CHOSEN + "net.train()\n" + ADAM + LOOP, IN_MAIN])
def test_the_module_holds_the_network_that_every_step_calls(text, asked):
    result = check_same(HEAD + text, "module", *asked)
    assert "self.net = net" in result and "net = None" not in result


@pytest.mark.parametrize("asked", [[], ["--twice"]])
def test_one_that_only_some_runs_have_is_not_asked_for_by_the_others(asked):
    check_same(HEAD + EXTRA + CHOSEN + ADAM + SOMETIMES, "module", *asked)


def test_a_step_that_may_go_on_before_it_calls_shows_nothing():
    skips = LOOP.replace(
        "        optimizer.zero", "        if args.twice:\n            continue\n        optimizer.zero", 1
    )
    later = CHOSEN.replace("if args.kind", "if args.twice:\n    exit\nelif args.kind", 1)
    result = migrate_text(HEAD + later + ADAM + skips)
    assert "self.net = net" not in result.text
