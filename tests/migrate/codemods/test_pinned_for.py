"""The device that a loader pins memory for is the one at hand."""

import pytest
from helpers import check, check_unchanged

HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"
PLAIN = "loader = DataLoader(data, batch_size=4, pin_memory=True)\n"


@pytest.mark.parametrize(
    "source",
    [
        'loader = DataLoader(data, batch_size=4, pin_memory=True, pin_memory_device="cuda")\n',
        'loader = DataLoader(data, batch_size=4, pin_memory_device="cuda:1", pin_memory=True)\n',
        'loader = DataLoader(data, batch_size=4, pin_memory=True, pin_memory_device=f"cuda:{rank}")\n',
        "loader = DataLoader(data, batch_size=4, pin_memory=True, pin_memory_device=args.pin_device)\n",
        "on = torch.cuda.is_available()\nloader = DataLoader(\n    data, batch_size=4, pin_memory=on, "
        'pin_memory_device="cuda" if on else ""\n)\n',
    ],
)
def test_it_goes(source):
    after = PLAIN
    if source.startswith("on"):
        after = "on = torch.cuda.is_available()\nloader = DataLoader(\n    data, batch_size=4, pin_memory=on\n)\n"
    check(HEAD + source, HEAD + after, attention=[])


def test_the_device_goes_with_it():
    made = (
        'device = torch.device("cuda")\nloader = DataLoader(data, 4, pin_memory=True, pin_memory_device=str(device))\n'
    )
    loop = "for x, y in loader:\n    print(x)\n"
    check(HEAD + made + loop, HEAD + "loader = DataLoader(data, 4, pin_memory=True)\n" + loop)


@pytest.mark.parametrize(
    "source",
    [
        "loader = DataLoader(data, pin_memory=True, pin_memory_device=next(devices))\n",
        'loader = Loader(data, pin_memory_device="cuda")\n',
        'settings["pin_memory_device"] = "here"\n',
        "# pin_memory_device is for later\nloader = DataLoader(data, pin_memory=True)\n",
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source)
