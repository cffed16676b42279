"""T2: what meets the batch before it is moved itself is made where the batch is."""

import pytest
from helpers import check_unchanged
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(2, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
loader = DataLoader(data, batch_size=4)
for i, (x, y) in enumerate(loader):
    x = x.to(device)
"""
TAIL = """\
    opt.zero_grad()
    loss = (net(x) - t).pow(2).mean()
    loss.backward()
    opt.step()
"""


def step(*lines):
    return HEAD + "".join(f"    {line}\n" for line in lines) + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["t = torch.eye(2)[y].to(device)"], "torch.eye(2, device=y.device)[y]"),
        (["t = torch.eye(2).float()[y.long(), :].to(device)"], "torch.eye(2, device=y.device).float()[y.long(), :]"),
        (
            ["t = torch.zeros(len(x), 2).scatter_(1, y.view(-1, 1), 1).to(device)"],
            "torch.zeros(len(x), 2, device=y.device).scatter_(1, y.view(-1, 1), 1)",
        ),
        (["t = torch.zeros(4)", "t[y == 1] = 1", "t = t.to(device)"], "t = torch.zeros(4, device=y.device)"),
        (
            ["t = torch.zeros(4, 2)", "t.scatter_(1, y[:, None], 1.0)", "t = t.to(device)"],
            "t = torch.zeros(4, 2, device=y.device)",
        ),
        (
            ["y = torch.zeros(len(x), 2).scatter_(1, y.view(-1, 1), 1)", "t = y.to(device)"],
            "y = torch.zeros(len(x), 2, device=y.device).scatter_(1, y.view(-1, 1), 1)",
        ),
        (["t = torch.eye(2)[y]", "y = t.argmax(1)", "t = t.cuda()"], "torch.eye(2, device=y.device)[y]"),
        (
            ["k = y.view(-1, 1)", "t = torch.zeros(len(x), 2).scatter_(1, k, 1).to(device)"],
            "torch.zeros(len(x), 2, device=y.device)",
        ),
        (
            ["t = y[:, None] + 0.1 * torch.randn(len(y), 2)", "t = t.to(device)"],
            "torch.randn(len(y), 2, device=y.device)",
        ),
        (["t = torch.randn(len(y), 2)", "t = (t + y[:, None]).to(device)"], "torch.randn(len(y), 2, device=y.device)"),
        (
            ["t = torch.cat([y[:, None], torch.ones(len(y), 1)], 1).to(device)"],
            "torch.ones(len(y), 1, device=y.device)",
        ),
        (
            ["t = torch.bernoulli(torch.full((4, 2), 0.5)) * y[:, None]", "t = t.to(device)"],
            "torch.full((4, 2), 0.5, device=y.device)",
        ),
        (
            ["t = torch.FloatTensor(4, 2).zero_()", "t.scatter_(1, y[:, None], 1)", "t = t.cuda()"],
            "torch.FloatTensor(4, 2).to(y.device).zero_()",
        ),
        (["t = (torch.from_numpy(weights) * y[:, None]).to(device)"], "torch.from_numpy(weights).to(y.device) * y"),
        (["t = torch.full((4,), 0.1)", "t[y > 0] = 1", "t = t.cuda()"], "t = torch.full((4,), 0.1, device=y.device)"),
    ],
)
def test_it_is_made_where_the_batch_is(before, after):
    result = migrate_text(step(*before))
    assert after in result.text and result.plan == "module"


@pytest.mark.parametrize(
    "lines",
    [
        ["t = torch.zeros(4, 2)", "t[i % 4] = 1", "t = t.to(device)"],
        ["t = torch.zeros(4, 2)", "t[0] = 1", "t = t.to(device)"],
        ["t = torch.zeros(400, 2)", "t[i] = 1", "t = t.to(device)"],
        ["t = torch.eye(2)[y.cpu()].to(device)"],
        ["t = torch.eye(2)[:len(y)].to(device)"],
        ["t = torch.eye(2)[y.size(0) - 1].to(device)"],
        ["t = torch.zeros(4, 2)", "other[y] = 1", "t = t.to(device)"],
        ["t = torch.zeros(4, 2)", "t = t.to(device)", "t[y] = 1"],
        ["t = torch.zeros(4, 2).to(device).scatter_(1, y[:, None].to(device), 1)"],
        ["t = torch.zeros(4, 2, device=device).scatter_(1, y[:, None].to(device), 1)"],
        ["t = torch.randn(4, 2)", "t = t.to(device) + y.to(device)[:, None]"],
        ["t = torch.randn(4, 2).to(device) + y.to(device)[:, None]"],
        ["t = torch.cat([torch.randn(2, 2), torch.ones(2, 2)]).to(device)"],
        ["for _ in range(2):", "    t = torch.eye(2)[y]", "    y = y.numpy()", "t = t.to(device)"],
        ["t = torch.FloatTensor(4, 2)", "t = t.to(device) * y.to(device)[:, None]"],
        ["t = torch.from_numpy(weights).to(device) * y.to(device)[:, None]"],
        ["y = y.tolist()", "t = torch.eye(2)[y].to(device)"],
        ["y = y.numpy()", "t = torch.zeros(4)", "t[y] = 1", "t = t.to(device)"],
    ],
)
def test_what_meets_nothing_of_the_batch_is_made_as_it_was(lines):
    text = migrate_text(step(*lines)).text
    assert "device=y.device" not in text and ".to(y.device)" not in text


def test_a_step_and_a_helper_that_it_calls():
    source = """\
import torch
import pytorch_lightning as pl


class Net(pl.LightningModule):
    def encode(self, y):
        return torch.zeros(y.size(0), 2).scatter_(1, y.view(-1, 1), 1).cuda()

    def training_step(self, batch, batch_idx):
        x, y = batch
        z = torch.eye(3)[y].cuda()
        return (self(x) - self.encode(y) - z).mean()
"""
    text = migrate_text(source).text
    assert "torch.zeros(y.size(0), 2, device=y.device)" in text and "torch.eye(3, device=y.device)[y]" in text


def test_outside_of_steps_nothing_is_placed():
    check_unchanged("import torch\ndef encode(y):\n    return torch.eye(2)[y]\n")


def test_a_name_that_is_made_of_itself_ends_the_search():
    noisy = """
import torch
class Noisy(torch.nn.Module):
    def forward(self, x):
        noise = torch.zeros(3)
        x = x + noise
        return x
"""
    assert "noise = torch.zeros(3, device=x.device)" in migrate_text(noisy).text


DRAWN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

use_cuda = torch.cuda.is_available()
loader = DataLoader(range(8), batch_size=4)
net = nn.Linear(1, 4)
net = net.cuda() if use_cuda else net
opt = torch.optim.SGD(net.parameters(), lr=0.1)
it = iter(loader)
for i in range(4):
{}
    if use_cuda:
        x, y = x.cuda(), y.cuda()
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DRAWS = """\
    try:
        x, y = next(it)
    except StopIteration:
        it = iter(loader)
        x, y = next(it)
"""


@pytest.mark.parametrize("draws", [DRAWS, "    x, y = next(it)\n", "    x, y = it.next()\n    y = y.long()\n"])
def test_a_batch_that_is_drawn_by_hand(draws):
    made = "    y = torch.zeros(x.size(0), 4).scatter_(1, y.view(-1, 1), 1)"
    result = migrate_text(DRAWN.format(draws + made))
    assert result.plan in ("module", "manual")
    assert "torch.zeros(x.size(0), 4, device=y.device).scatter_(1, y.view(-1, 1), 1)" in result.text


@pytest.mark.parametrize(
    "draws",
    [
        "    x, y = next(it)\n    y = torch.tensor(y.tolist())\n",
        "    x, y = next(open('/dev/null'))\n",
        "    x, y = next(it)\n    y = places[i]\n",
    ],
)
def test_what_is_no_batch_any_more_or_comes_from_elsewhere(draws):
    made = "    y = torch.zeros(x.size(0), 4).scatter_(1, y.view(-1, 1), 1)"
    assert "device=y.device" not in migrate_text(DRAWN.format(draws + made)).text


@pytest.mark.parametrize(
    "number",
    ["2 * self.size * self.k", "x.size(0) * self.k", "self.size", "self.scale * 2"],
)
def test_a_number_that_a_tensor_is_counted_with_is_on_no_device(number):
    """It is made where the input is, and not where the number is, which is nowhere."""
    source = (
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self, size, k):\n        super().__init__()\n"
        "        self.size, self.k = size, k\n        self.scale = 0.5\n\n    def forward(self, x):\n"
        f"        n = {number}\n        target = torch.arange(4) % n\n        return x.view(-1) + target\n"
    )
    after = source.replace("arange(4)", "arange(4, device=x.device)")
    assert migrate_text(source).text == after


def test_nor_is_one_that_says_how_large_a_tensor_is():
    source = (
        "import torch\n\nclass Net(torch.nn.Module):\n    def many(self, x):\n        return 4\n\n"
        "    def forward(self, x):\n        n = self.many(x)\n        t = torch.zeros(n) + n\n        return x + t\n"
    )
    assert migrate_text(source).text == source.replace("zeros(n)", "zeros(n, device=x.device)")


def test_what_of_the_module_is_used_as_a_tensor_is_met():
    source = (
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        w = 2 * self.weight\n"
        "        return torch.zeros(4) * w + w.sum()\n"
    )
    assert "torch.zeros(4, device=w.device) * w" in migrate_text(source).text


@pytest.mark.parametrize(
    ("lines", "there"),
    [
        (["t = torch.zeros(3)", "if MOVED:", "    t = t.cuda()", "b = x > 0", "t[b] = 1"], False),
        (["b = x > 0", "t = torch.zeros(3)", "if MOVED:", "    t = t.cuda()", "t[b] = 1"], True),
        (["if MOVED:", "    b = x > 0", "t = torch.zeros(3)", "t[b] = 1"], False),
        (["for b in (x > 0).view(1, -1):", "    t = torch.zeros(3)", "    t[b] = 1"], True),
    ],
)
def test_what_it_meets_has_its_value_where_it_is_made(lines, there):
    """As `targets[positive] = 0` of the losses of detectors has, where `positive` comes below `targets`."""
    loss = "import torch\nfrom torch import nn\n\n\nclass Loss(nn.Module):\n    def forward(self, x, y):\n"
    body = [line.replace("MOVED", "torch.cuda.is_available()") for line in lines]
    result = migrate_text(loss + "".join(f"        {line}\n" for line in [*body, "return (t * y).sum()"]))
    made = next(line for line in result.text.splitlines() if "torch.zeros(3" in line)
    assert ("device=b.device" in made) is there
    namespace: dict = {}
    exec(compile(result.text, "loss.py", "exec"), namespace)
    torch = namespace["torch"]
    if "    b = x > 0" not in lines:
        assert namespace["Loss"]()(torch.tensor([1.0, -1.0, 2.0]), torch.ones(3)).item() == 2.0
