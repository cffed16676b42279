"""T9: a time that names a file which every rank loads is rank 0's: each of them has a clock of its own."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import datetime, os, time
from datetime import datetime as now
import torch
from torch import nn
net = nn.Linear(2, 2).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = """\
for epoch in range(2):
    for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4):
        opt.zero_grad()
        loss = net(x.cuda()).mean()
        loss.backward()
        opt.step()
"""
SAVED = "torch.save(net.state_dict(), path)\n"
LOADED = SAVED + "net.load_state_dict(torch.load(path))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("path = f'{time.time()}.pt'\n", "path = f'{rank_zero_value(time.time())}.pt'\n"),
        (
            "folder = time.strftime('%H%M%S')\nos.makedirs(folder)\npath = os.path.join(folder, 'best.pt')\n",
            "folder = rank_zero_value(time.strftime('%H%M%S'))\n",
        ),
        (
            "path = 'run-' + datetime.datetime.now().strftime('%H%M%S')\n",
            "path = 'run-' + rank_zero_value(datetime.datetime.now()).strftime('%H%M%S')\n",
        ),
        (
            "name = None\nif name is None:\n    name = time.strftime('%H')\npath = name + '.pt'\n",
            "    name = rank_zero_value(time.strftime('%H'))\n",
        ),
        ("path = str(now.now())\n", "path = str(rank_zero_value(now.now()))\n"),
    ],
)
def test_the_clock_of_what_is_loaded(before, after):
    text = migrate_text(HEAD + before + LOOP + LOADED).text
    assert after in text
    assert migrate_text(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "path = f'{time.time()}.pt'\n" + SAVED,  # rank 0 alone writes it
        "start = time.time()\npath = 'best.pt'\n" + LOADED + "print(time.time() - start)\n",
        "path = f'{time.time()}.txt'\nwith open(path, 'w') as f:\n    f.write('x')\n",
        "if int(os.environ['RANK']) == 0:\n    path = f'{time.time()}.pt'\n    torch.load(path)\n",
        "for i in range(2):\n    path = f'{time.time()}.pt'\n    net.load_state_dict(torch.load(path))\n",
    ],
)
def test_other_clocks(text):
    assert "rank_zero_value" not in migrate_text(HEAD + LOOP + text).text


def test_a_clock_below_the_main_guard():
    body = "path = f'{time.time()}.pt'\n" + LOOP + LOADED
    text = HEAD + "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert "path = f'{rank_zero_value(time.time())}.pt'" in migrate_text(text).text
