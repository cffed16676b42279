"""A script that trains nothing has no Trainer that would place its model."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(2, 2).to(device)
model.load_state_dict(torch.load("model.pt"))
model.eval()
for x in loader:
    print(model(x.to(device)))
"""


def test_what_it_evaluates_stays_on_the_cpu_which_is_told():
    result = migrate_text(SCRIPT)
    assert "to(device)" not in result.text
    assert [(n.code, n.line) for n in result.attention if "nothing places it" in n.message] == [("PTM101", 5)]


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT.replace("model.eval()\n", "model.train()\n"),  # no evaluation
        SCRIPT.replace(".to(device)", ""),
        "import torch\ndef evaluate(model, loader):\n    model.eval()\n    return [model(x.cuda()) for x in loader]\n",
        SCRIPT + "    model(x).sum().backward()\n",
    ],
)
def test_nothing_is_told_of(text):
    assert not any("nothing places it" in n.message for n in migrate_text(text).attention)


GATHERED = """
found = []
for x, y in loader:
    out = model(x.to(device))
    found.append(y.numpy())
    near = index(out.cpu())
    near = near.to(device)
    print((near == y.to(device)).sum())
"""
TRAINED = "    loss = out.sum()\n    loss.backward()\n    opt.step()\n"


def test_nothing_comes_back_to_the_cpu_which_nothing_left():
    result = migrate_text(SCRIPT + GATHERED)
    assert "y.numpy()" in result.text and "== y)" in result.text
    assert migrate_text(result.text).text == result.text


def test_what_a_trainer_placed_does():
    assert "y.cpu().numpy()" in migrate_text(SCRIPT + GATHERED + TRAINED).text
