"""A script that trains nothing and places things where there is CUDA goes on doing so, and is told as ptlint does."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import CARD

HEAD = "import torch\nnet = torch.nn.Linear(2, 2)\nx = torch.randn(3, 2)\n"
ASKS = (
    "if torch.cuda.is_available():\n    net = net.cuda()\n    x = x.cuda()\n",
    "use_cuda = torch.cuda.is_available()\nif use_cuda:\n    net.cuda()\nx = x.cuda() if use_cuda else x\n",
)
LAST = "print(net(x))\n"


@pytest.mark.parametrize("asks", ASKS)
def test_what_stays_is_told(asks):
    result = migrate_text(HEAD + asks + LAST)
    assert result.text == HEAD + asks + LAST
    lines = [i for i, line in enumerate(result.text.splitlines(), 1) if ".cuda()" in line]
    assert [(n.line, n.code) for n in result.attention] == [(i, "PTM101") for i in lines]


def test_what_goes_to_a_card_by_its_number_is_told_with_that():
    text = HEAD + "if torch.cuda.is_available():\n    net, x = net.cuda(), x.to('cuda:1')\n" + LAST
    (told,) = [n.message for n in migrate_text(text).attention if "written into the code" in n.message]
    assert "x.to('cuda:1')" in told


def test_where_no_runtime_comes_no_edit_says_that_one_places_it():
    text = "import torch\ndef predict(x):\n    if torch.cuda.is_available():\n        x = x.cuda()\n    return net(x)\n"
    text += "net = torch.nn.Linear(2, 2)\nif __name__ == '__main__':\n    print(predict(torch.ones(1, 2)))\n"
    told = [e.message for e in migrate_text(text).edits if e.code == "PTM101"]
    assert told == ["`x = x.cuda()` removed: nothing here trains, and all of it stays on the CPU"]


def test_the_simulated_card_knows_types_of_cuda(tmp_path):
    (tmp_path / "asks.py").write_text(
        "import torch\nx = torch.randn(2)\ny = x.cuda()\n"
        "print(*(isinstance(z, torch.cuda.FloatTensor) for z in (x, y, y.long())))\n"
    )
    assert forked.run(CARD, "asks.py", cwd=tmp_path).stdout == "False True False\n"
