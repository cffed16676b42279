"""Python's print by another name, and pprint: each rank printed all it was given, and nothing said so."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import sys
from functools import partial
import torch
{read}
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.randn(8, 3), 4):
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def result_of(read):
    result = migrate_text(SCRIPT.format(read=read))
    assert result.plan == "module" and migrate_text(result.text).text == result.text
    return result


@pytest.mark.parametrize(
    "read",
    [
        "log = {}",
        "log = partial({}, flush=True)",
        "log = partial({}, file=sys.stderr)",
        "print = partial({}, flush=True)\nprint(1)",
        "list(map({}, lines))",
        "({} if verbose else say)('x')",
        "def fit(model, log={}):\n    log(model)\n\n",
        "for say in ({}, note):\n    say(1)",
        "callbacks = {{'say': {}}}",
        "say(1, log={})",
    ],
)
def test_it_is_rank_0_s(read):
    result = result_of(read.format("print"))
    assert f"{read.format('rank_zero_print')}\n" in result.text
    assert "Trainer, rank_zero_print\n" in result.text
    assert len([e for e in result.edits if "by whatever name" in e.message]) == 1


@pytest.mark.parametrize(
    "read",
    [
        "log = partial(print, file=out)",
        "def print(x):\n    say(x)\nlog = print",
        "def f(print):\n    return print\n\n",
        "log = sys.modules['builtins'].print",
        "same = say is print",
        "name = print.__name__",
        "say(f'{print}')",
        "print = rich.print\nlog = print",
    ],
)
def test_what_is_another_stays(read):
    result = result_of(read)
    assert f"{read}\n" in result.text and "rank_zero_print" not in result.text


@pytest.mark.parametrize(
    ("imported", "call"),
    [("from pprint import pprint", "pprint"), ("import pprint as p", "p.pprint"), ("import pprint", "pprint.pp")],
)
def test_pretty_prints(imported, call):
    text = result_of(f"{imported}\n{call}(options)\ntext = {call.replace('pp', 'x')}(options)").text
    assert f"\non_rank_zero({call})(options)\ntext = {call.replace('pp', 'x')}(options)\n" in text


def test_in_a_lifted_loop():
    source = SCRIPT.format(read="say = partial(print, flush=True)") + "        say('loss', loss.item())\n"
    text = migrate_text(source).text
    assert "say = partial(rank_zero_print, flush=True)" in text
    assert "self.say('loss', self.batch_mean(loss.item()))" in text
