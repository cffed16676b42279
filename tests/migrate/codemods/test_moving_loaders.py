"""Classes of a script that go over a loader and move its batches: a DataLoader is left, and its batches are divided."""

import ast

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card, check_same

# the shape of https://jovian.com/aakashns/04-feedforward-nn
CLASS = """\
class DeviceDataLoader():
    \"\"\"Moves what a loader gives.\"\"\"
    def __init__(self, dl, device):
        self.dl = dl
        self.device = device

    def __iter__(self):
        \"\"\"Each batch, moved.\"\"\"
        for b in self.dl:
            yield to_device(b, self.device)

    def __len__(self):
        return len(self.dl)
"""
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def to_device(data, device):
    if isinstance(data, (list, tuple)):
        return [to_device(x, device) for x in data]
    return data.to(device, non_blocking=True)


CLASS

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
xs, ys = torch.randn(20, 4), torch.randint(0, 3, (20,))
loader = DataLoader(TensorDataset(xs, ys), batch_size=4, shuffle=True)
valid = DataLoader(TensorDataset(xs, ys), batch_size=8)
WRAPS
model = to_device(nn.Linear(4, 3), device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.5f}", len(loader))
model.eval()
print(f"{sum(nn.functional.cross_entropy(model(x), y).item() for x, y in valid):.5f}")
"""
WRAPS = "loader = DeviceDataLoader(loader, device)\nvalid = DeviceDataLoader(valid, device)"


def script(cls=CLASS, wraps=WRAPS):
    return SCRIPT.replace("CLASS", cls).replace("WRAPS", wraps)


GOES = {
    "by a mover that calls itself": CLASS,
    "of object, without a length": CLASS.replace("()", "(object)")[: CLASS.index("    def __len__") + 6],
    "by a method": CLASS.replace("to_device(b, self.device)", "[t.to(self.device) for t in b]"),
    "of two": CLASS.replace("for b in", "for x, y in").replace(
        "to_device(b, self.device)", "x.to(self.device), y.cuda() if False else y.to(self.device)"
    ),
    "both moved": CLASS.replace("for b in", "for x, y in").replace(
        "to_device(b, self.device)", "x.to(self.device), y.to(self.device, non_blocking=True)"
    ),
    "at once": CLASS.replace(
        "        self.dl = dl\n        self.device = device\n", "        self.dl, self.device = dl, device\n"
    ),
    "to a device of the script": CLASS.replace("to_device(b, self.device)", "to_device(b, device)"),
}
DEEPER = ("of two",)  # which moves in ways of its own
GOES |= {
    "from a generator": CLASS.replace("for b in self.dl:\n            yield ", "yield from (").replace(
        "to_device(b, self.device)", "tuple(t.to(self.device) for t in b) for b in self.dl)"
    ),
}


@pytest.mark.parametrize("name", [name for name in GOES if name not in DEEPER])
def test_the_class_goes_and_a_loader_is_left(tmp_path, name):
    text = script(GOES[name])
    if "def __len__" not in GOES[name]:
        text = text.replace(", len(loader)", "")
    result = check_same(text, "module")
    assert "DeviceDataLoader" not in result and "to_device" not in result and "divide_batches" not in result
    assert "device" not in result.replace("on_device", "")
    assert check_on_card(tmp_path, text) == result


@pytest.mark.parametrize(
    ("wraps", "left"),
    [
        ("loader = DeviceDataLoader(loader, device)", ""),
        (
            "loader, valid = DeviceDataLoader(loader, device), DeviceDataLoader(valid, device)",
            "loader, valid = loader, valid\n",
        ),
        (
            "loader = DeviceDataLoader(DataLoader(TensorDataset(xs, ys), 5), device)",
            "loader = DataLoader(TensorDataset(xs, ys), 5)\n",
        ),
        ("loader = DeviceDataLoader(loader, device=device)  # moved", ""),
    ],
)
def test_its_calls_give_the_loader(wraps, left):
    result = check_same(script(wraps=wraps), "module")
    assert "DeviceDataLoader" not in result and f"batch_size=8)\n{left}" in result


STAYS = {
    "does more": CLASS.replace("            yield", "            b[0] += 1\n            yield"),
    "counts": CLASS.replace("len(self.dl)", "2"),
    "has a method": CLASS + "\n    def show(self):\n        print(self.dl)\n",
    "has a base": CLASS.replace("()", "(Base)", 1).replace("class Dev", "class Base:\n    size = 3\n\n\nclass Dev", 1),
    "has a constant": CLASS.replace("    def __len__", "    size = 3\n\n    def __len__"),
    "is kept by": CLASS.replace("self.dl = dl\n", "self.dl = dl\n        self.seen = []\n"),
    "gives a part": CLASS.replace("to_device(b, self.device)", "to_device(b[:2], self.device)"),
    "gives others": CLASS.replace("for b in", "for x, y in").replace(
        "to_device(b, self.device)", "y.to(self.device), x"
    ),
    "takes the first": CLASS.replace("in self.dl:", "in list(self.dl)[:1]:"),
    "changes the type": CLASS.replace("to_device(b, self.device)", "[t.to(self.device, torch.float) for t in b]"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_does_more_stays(name):
    result = migrate_text(script(STAYS[name]))
    ast.parse(result.text)
    assert "class DeviceDataLoader" in result.text


@pytest.mark.parametrize(
    "wraps",
    [
        f"{WRAPS}\nprint(loader.dl.batch_size)",
        f"{WRAPS}\nprint(loader.device)",
        f"{WRAPS}\nprint(isinstance(loader, DeviceDataLoader))",
        "make = DeviceDataLoader\nloader = make(loader, device)",
        "loader = DeviceDataLoader(*[loader, device])",
        "loader = DeviceDataLoader(device=device, dl=loader)",
    ],
)
def test_what_is_read_of_it_keeps_it(wraps):
    result = migrate_text(script(wraps=wraps))
    ast.parse(result.text)
    assert "class DeviceDataLoader" in result.text


def test_a_script_that_trains_nothing_places_its_batches_as_it_did():
    text = script()
    start, stop = text.index("optimizer ="), text.index("model.eval()")
    assert "class DeviceDataLoader" in migrate_text(text[:start] + text[stop:]).text


def test_so_does_a_loop_that_is_kept():
    result = migrate_text(script(), Options(plan="loop"))
    assert result.plan == "loop" and "class DeviceDataLoader" in result.text
