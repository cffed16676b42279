"""T1: moves to what is a device by its name alone stay, and are told of; so are cards that an attribute names."""

import pytest

from tests.migrate.codemods.helpers import check_unchanged, migrated

HEAD = "import torch\n"
TOLD = {
    "a parameter": "def f(x, dev1):\n    return x.to(dev1)\n",
    "an attribute": "def f(self, x):\n    return x.to(self.dev0, non_blocking=True)\n",
    "another word for it": "def f(x, gpu_0):\n    return x.to(gpu_0)\n",
    "one of several": "def f(x, devices):\n    return x.to(devices[1])\n",
    "one of an object's": "def f(self, x):\n    return x.to(self.gpus[-1])\n",
    "each of several": "def f(xs, devices):\n    return [x.to(d) for x, d in zip(xs, devices)]\n",
    "a loop over them": "def f(x, devs):\n    for i, d in enumerate(devs):\n        g(x.to(d))\n",
    "an NPU": "def f(x):\n    return x.npu()\n",
    "an HPU by its number": "def f(x):\n    return x.hpu(0, non_blocking=True)\n",
    "a name on the way": 'print(torch.zeros(2).to(d := "cuda"), d)\n',
}
NOT_TOLD = {
    "a dtype": "def f(x, dtype1):\n    return x.to(dtype1)\n",
    "another tensor": "def f(x, y1):\n    return x.to(y1)\n",
    "one of other things": "def f(x, devices):\n    return x.to(dtypes[0])\n",
    "each of other things": "def f(xs, devices, ys):\n    return [x.to(y) for x, y, d in zip(xs, ys, devices)]\n",
    "a method of that name": "def f(x):\n    return x.npu(1, 2) + x.hpu(kind=3)\n",
    "no number": "def f(x, developer):\n    return x.to(developer)\n",
    "another name on the way": "def f(x):\n    return x.to(d := torch.float16), d\n",
}


@pytest.mark.parametrize("source", TOLD.values(), ids=TOLD)
def test_they_are_told_of(source):
    [note] = check_unchanged(HEAD + source).attention
    assert note.code == "PTM101" and "names a device, and stays" in note.message


@pytest.mark.parametrize("source", NOT_TOLD.values(), ids=NOT_TOLD)
def test_others_are_not(source):
    check_unchanged(HEAD + source, attention=[])


def test_cards_that_attributes_name_had_parts_each():
    result = migrated("""
import torch
class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = 1, 2
        self.first = "cuda:0"
        self.second = "cuda:1"
        self.a = torch.nn.Linear(3, 3).to(self.first)
        self.b = torch.nn.Linear(3, 3).to(self.second)
""")
    assert "Linear(3, 3)\n" in result.text
    assert any("cards 0 and 1 had parts each" in n.message for n in result.attention)


@pytest.mark.parametrize("name", ["transfer_batch_to_device", "to", "_apply"])
def test_methods_that_place_go_on_doing_so(name):
    check_unchanged(f"""
import torch
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def {name}(self, batch, device, dataloader_idx=0):
        batch.x = batch.x.to(device)
        return batch
""")
