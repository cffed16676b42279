"""`{loss=}` of an f-string shows its own text."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
loader = DataLoader([torch.randn(3) for i in range(8)], batch_size=4)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
rounds, word, kinds = 0, "all", dict(one=1)
epoch = 0
while epoch < 2:
    total = 0.0
    for x in loader:
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        rounds += 1
    epoch += 1
    print(TEXT)
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('f"{epoch=}"', 'f"epoch={self.epoch!r}"'),
        ('f"{epoch = } {total / len(loader)=:.4f}"', 'f"epoch = {self.epoch!r} total / len(loader)={total / '),
        ("f'{word=!s} {(rounds)=}'", None),
        ("f'{ {epoch: rounds}=}'", None),
        ("f'{rounds=} {7=} {epoch:02d}'", "{7=}"),
        ("f'{rounds == 2} {rounds!r} {rounds:=3}'", None),
    ],
)
def test_the_text_stays_what_it_was(text, written):
    source = SCRIPT.replace("TEXT", text)
    result = migrate_text(source)
    assert "trainer.fit(" in result.text and (written is None or written in result.text), result.text
    assert run(result.text).output == run(source).output


def test_a_text_with_quotes_keeps_its_loop():
    source = SCRIPT.replace("TEXT", """f"{kinds['one'] + rounds=}\"""")
    result = migrate_text(source)
    assert "trainer.fit(" not in result.text and "shows its own text" in result.attention[0].message
    assert run(result.text).output == run(source).output
