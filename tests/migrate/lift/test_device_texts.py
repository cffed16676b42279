"""Devices that a script has as texts and hands to functions that read them so: the Module's own is no text."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_on_card, check_project_on_card, check_same

PICK = """
def pick():
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    return BACK


"""
BATCH = """
def get_batch(n, device):
    x = torch.randn(n, 4)
    READ
    return x.to(device)

"""
TRAIN = """
def train():
    torch.manual_seed(0)
    DEVICE
    net = torch.nn.Linear(4, 4).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        x = get_batch(8, GIVEN)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f'{loss.item():.5f}')


train()
"""
CHOICE = "device = 'cuda' if torch.cuda.is_available() else 'cpu'"
ASKS = "if device.startswith('cuda'):\n        x = x + 0"


def script(device: str, read: str = ASKS, given: str = "device", back: str = "device, 1", above: str = "") -> str:
    train = TRAIN.replace("DEVICE", device).replace("GIVEN", given)
    return "import torch\n" + PICK.replace("BACK", back) + above + BATCH.replace("READ", read) + train


TEXTS = {
    "chosen there": script(CHOICE),
    "of a function": script("device = pick()", back="device"),
    "with another value": script("device, n = pick()"),
    "by keyword": script(CHOICE, given="device=device"),
    "of the file": script("pass", above=f"{CHOICE}\n"),
    "of the file, of a function": script("pass", above="device, n = pick()\n"),
    "compared": script(CHOICE, "if device == 'cuda' or 'cuda' in device:\n        x = x + 0"),
    "handed on": script(
        CHOICE, "x = add(x, device)", above="def add(x, device):\n    return x + 0 * len(device.split(':'))\n"
    ),
    "a card by its number": script("device = 'cuda:0' if torch.cuda.is_available() else 'cpu'"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_stays_one(text, tmp_path):
    result = check_on_card(tmp_path, text)
    assert check_same(text, "module") == result
    assert "self.device.type)" in result or "str(self.device))" in result


DEVICES = {
    "a device": script("device = torch.device('cpu')", "if device.type == 'cuda':\n        x = x + 0"),
    "only moved to": script(CHOICE, "x = x + 0"),
    "made a device there": script(CHOICE, "device = torch.device(device)"),
    "one of the file": script("pass", "x = x + 0", above=f"{CHOICE}\n"),
}


@pytest.mark.parametrize("text", DEVICES.values(), ids=DEVICES)
def test_what_is_not_read_so_gets_the_device(text):
    result = check_same(text, "module")
    assert "self.device.type" not in result and "str(self.device)" not in result


def test_a_function_of_another_file_that_reads_a_text_gets_one(tmp_path):
    main = "import torch\nfrom batches import get_batch\n" + TRAIN.replace("DEVICE", CHOICE).replace("GIVEN", "device")
    texts = check_project_on_card(tmp_path, main=main, batches="import torch\n" + BATCH.replace("READ", ASKS))
    assert "get_batch(8, self.device.type)" in texts["main"]


def test_one_that_reads_none_gets_the_device(tmp_path):
    main = "import torch\nfrom batches import get_batch\n" + TRAIN.replace("DEVICE", CHOICE).replace("GIVEN", "device")
    for name, text in (("main", main), ("batches", "import torch\n" + BATCH.replace("READ", "x = x + 0"))):
        (tmp_path / f"{name}.py").write_text(text)
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    assert "get_batch(8, self.device)" in done[0].result.text
