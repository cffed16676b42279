"""A function that trains and that nothing calls stays as it is, and the loop beside it is lifted."""

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

OTHER = """
def train_another_way(x):
    loss = net(x).abs().mean()  # kept for comparison
    net.zero_grad()

    loss.backward()
    optimizer.step()
    return loss.item()
"""
TEXT = f"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(12, 3), batch_size=4)

{OTHER}

def train(x):
    loss = net(x).pow(2).mean()
    net.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(2):
    for i, x in enumerate(loader):
        loss = train(x)
        print(epoch, i, loss)
"""


def test_it_stays_and_finds_what_it_reads():
    result = check_same(TEXT, "module")
    assert OTHER in result and "return self.optimizer" in result
    assert "LinearModule(net, optimizer), loader)" in result


def test_the_ends_of_lines_make_no_difference():
    result = migrate_text(TEXT.replace("\n", "\r\n"))
    assert result.plan == "module" and OTHER.replace("\n", "\r\n") in result.text
    assert result.text.replace("\r\n", "\n") == migrate_text(TEXT).text


def test_two_of_them():
    text = TEXT.replace(OTHER, OTHER + "\n" + OTHER.replace("another", "a_third"))
    result = check_same(text, "module")
    assert OTHER in result and OTHER.replace("another", "a_third") in result


@pytest.mark.parametrize(
    "below",
    ["train_another_way(torch.randn(4, 3))", "print(globals()['train_another_way'](torch.randn(4, 3)))"],
)
def test_one_that_is_named_again_keeps_the_loop(below):
    check_same(TEXT + below + "\n", "loop")


def test_one_that_another_file_names_keeps_the_loop():
    other = OtherFile("again", "from main import train_another_way\n")
    assert migrate_text(TEXT, elsewhere=Elsewhere(others=(other,))).plan == "loop"
    assert migrate_text(TEXT, elsewhere=Elsewhere(others=(OtherFile("again", "import os\n"),))).plan == "module"
