"""T2: a move to where a network is, or to what the callers say, is right as it stands, and is not told of."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card, check_same

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mask(size):
    return torch.triu(torch.ones(size, size), 1)


def decode(net, source, length, device):
    out = torch.zeros(1, 1).to(device)
    while out.size(1) < length:
        step = net(source) * mask(out.size(1)).to(device).mean() + out[:, -1:]
        out = torch.cat([out, step[:, :1]], 1)
    return out


def validate(net, loader, device):
    for batch in loader:
        x = batch[0].to(device)
        print(decode(net, x[:1], 3, device).sum().item())


def features(net, parts):
    device = next(net.parameters()).device
    for item in parts:
        x = item[0].to(device)
        print(net(x).sum().item())


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(8, 3), torch.randn(8, 1))
    net = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(2):
        for x, y in DataLoader(data, 4):
            x, y = x.to(device), y.to(device)
            loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validate(net, DataLoader(data, 2), device)
    features(net, DataLoader(data, 2))


main()
"""
NOTHING = "nothing here shows which it should be"


def told(text):
    return [n.message for n in migrate_text(text).attention if NOTHING in n.message]


def test_it_is_right_on_a_card(tmp_path):
    check_on_card(tmp_path, SCRIPT)
    check_same(SCRIPT, "module")
    assert not told(SCRIPT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    features(net", "    decode(net, x, 2, 'cuda:0')\n    features(net"),  # by its own text
        ("    optimizer =", "    decode(net.cpu(), data[0][0], 2, device)\n    optimizer ="),  # not placed yet
        ("    features(net", "    run(decode)\n    features(net"),  # by whom does not show
        ("    out = torch.zeros", "    device = find()\n    out = torch.zeros"),
        ("net, x[:1], 3, device", "net, x[:1], 3, place"),
    ],
)
def test_what_the_callers_do_not_say_is_told(before, after):
    assert before in SCRIPT and told(SCRIPT.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "says"),
    [("", False), ("trainer.fit(net)", True), ("optimizer.step()", True), ("device = place()", True)],
)
def test_where_a_network_was_before_its_training_says_nothing(before, says):
    """Of what comes from other files."""
    lines = ["device = next(net.parameters()).device", before, "a = torch.zeros(2).to(device)", "return a.sum()"]
    text = "import torch\n\n\ndef features(net):\n" + "".join(f"    {line}\n" for line in lines if line)
    result = migrate_text(text, Options(ignore=("PTM115",)), is_script=False)
    assert any(NOTHING in n.message for n in result.attention) is says and result.text == text
