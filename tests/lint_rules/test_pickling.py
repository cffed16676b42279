"""PTM2xx beyond the rules' own examples."""

import pytest
from checking import found

DATA = "import torch\nclass Data(torch.utils.data.Dataset):\n  def __init__(self):\n    "


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (DATA + "self.f = lambda x: x", ["PTM201 4"]),
        ("import torch\nData(root, transform=lambda x: x)", ["PTM201 2"]),
        (
            "import torch\nfrom torch.optim import lr_scheduler\nlr_scheduler.LambdaLR(o, lr_lambda=[lambda e: 1, f])",
            ["PTM201 3"],
        ),
        (
            "import torch\nclass Net(torch.nn.Module):\n  def __init__(self):\n    def f(): pass\n    self.f = f",
            ["PTM202 5"],
        ),
        (DATA + "self.f = open('a')", ["PTM204 4"]),
        (DATA + "self.c = sqlite3.connect('a')\nimport sqlite3", ["PTM204 4"]),
        ("import threading\n" + DATA + "self.f = threading.Event()", ["PTM205 5"]),
        (DATA + "self.f = (x for x in y)", ["PTM206 4"]),
        ("import torch\ndef f():\n  class D(torch.utils.data.Dataset): pass", ["PTM208 3"]),
        (
            "from torch.utils.data import DataLoader\nloader = DataLoader(d, num_workers=2)\nfor x in loader: pass",
            ["PTM207 2"],
        ),
    ],
)
def test_found(source, expected):
    assert found(source, "PTM2") == expected


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nsorted(x, key=lambda y: y); f = lambda x: x",
        "import torch\nclass Net:\n  def __init__(self):\n    self.f = lambda x: x",
        "import torch\nexport(model, transform=lambda x: x)",
        "from torchvision import transforms as T\nt = T.Compose([T.Lambda(lambda x: x)])\nt(image)",
        "import enum, torch\nif __name__ == '__main__':\n  class Mode(enum.Enum): pass",
        DATA + "self.path = 'a'\n  def __getitem__(self, i):\n    self.f = open(self.path)",
        DATA + "with open('a') as f:\n      self.lines = f.readlines()",
        "import torch\nclass Log:\n  def __init__(self):\n    self.f = open('a')",
        DATA + "self.f = open('a')\n  def __getstate__(self): return {}",
        DATA + "self.x = [y for y in z]; self.g = torch.Generator()",
        "import torch\ndef f():\n  class Block(torch.nn.Module): pass",
        "from torch.utils.data import DataLoader\nfor x in DataLoader(d): pass",
        "from torch.utils.data import DataLoader\nif __name__ == '__main__':\n  a = [*DataLoader(d, num_workers=2)]",
        "from torch.utils.data import DataLoader\ndef main():\n  for x in DataLoader(d, num_workers=2): pass",
    ],
)
def test_not_found(source):
    assert found(source, "PTM2") == []
