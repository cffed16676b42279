"""What is told of cards is told where there may be one: not of a script that named none and stays on the CPU."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.report import Note
from ptmigrate.migrate.stays_on_cpu import without_cards

TEXT = """
import numpy as np
import torch
from torch import nn

{}
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    x = torch.from_numpy(np.ones((2, 3), dtype=np.float32)){}
    target = torch.FloatTensor([[1.0], [2.0]])
    loss = nn.functional.mse_loss(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.data.numpy())
"""


@pytest.mark.parametrize(
    ("device", "move", "stays"),
    [
        ("", "", True),
        ("device = torch.device('cpu')", ".to(device)", True),
        ("device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", ".to(device)", False),
    ],
)
def test_notes_of_cards(device, move, stays):
    result = migrate_text(TEXT.format(device, move))
    assert result.plan == "module" and ('accelerator="cpu"' in result.text) == stays
    told = {n.code for n in result.attention if n.code in ("PTM102", "PTM104", "PTM304")}
    assert bool(told) != stays
    assert not stays or "PTM700" in {n.code for n in result.attention}


@pytest.mark.parametrize(("other", "told"), [('accelerator="cpu"', []), ("", ["PTM104"])])
def test_one_trainer_that_may_take_a_card_is_enough(other, told):
    text = f'from ptmigrate.runtime import Trainer\na = Trainer(accelerator="cpu")\nb = Trainer({other})\n'
    assert [n.code for n in without_cards(Facts(text), [Note(1, 1, "PTM104", "made on the CPU")])] == told
