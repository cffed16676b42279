"""Names of the trunk that a data set, a collate_fn, a lambda, a hook or a handler reads or changes while it trains."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
data = [torch.randn(6) for i in range(12)]
"""
LOOP = """\
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {first}
    for x in loader:
        opt.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        opt.step()
    {last}
    print(epoch, loss.item())
"""
COLLATE = """
def collate(batch):
    {body}
    x = torch.stack(batch)
    x[:, width:] = 0
    return x

width = 2
loader = DataLoader(data, batch_size=4, collate_fn=collate)
"""
SAMPLES = """
class Samples(Dataset):
    def __len__(self):
        return len(data)

    def __getitem__(self, i):
        return data[i] * width

width = 2
loader = DataLoader(Samples(), batch_size=4)
"""


def script(before: str, first: str = "pass", last: str = "pass", made: str = "") -> str:
    return HEAD + before + LOOP.format(first=first, last=last, before=made)


def in_main(text: str) -> str:
    body = text[len(HEAD) :].replace("\n", "\n    ").replace("global ", "nonlocal ")
    return f"{HEAD}\ndef main():\n    {body}\n\nmain()\n"


KEEPS = """
class Samples(Dataset):
    def __init__(self):
        self.by = width

    def __len__(self):
        return len(data)

    def __getitem__(self, i):
        return data[i] * self.by

width = 2
loader = DataLoader(Samples(), batch_size=4)
"""
FOLLOWS = "width = 1 + epoch"
SCHEDULE = "loader = DataLoader(data, batch_size=4)\nwidth = 1.0\ntold = [0]\n"
LAMBDA = "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: width * 0.9**e)"
HOOKED = "net.register_forward_hook(count)"
COUNT = """
seen = 0

def count(*given):
    global seen
    seen += 1

loader = DataLoader(data, batch_size=4)
"""


DRAWN = """
def batches():
    for i in range(3):
        yield torch.stack(data[4 * i : 4 * i + 4]) * width

width = 1
"""
FORWARD = """
class Net(nn.Linear):
    def forward(self, x):
        return super().forward(x) / heat

heat = 1.0
loader = DataLoader(data, batch_size=4)
"""


@pytest.mark.parametrize("place", [str, in_main])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (script(COLLATE.format(body="pass"), FOLLOWS), "collate() reads `width`, which the loop changes"),
        (script(SAMPLES, FOLLOWS), "__getitem__() reads `width`, which the loop changes"),
        (script(SCHEDULE, FOLLOWS, "schedule.step()", LAMBDA), "() reads `width`, which the loop changes"),
        (script(COLLATE.format(body="global width; width += 1"), last="print(width)"), "collate() changes `width`"),
        (script(FORWARD, "heat *= 0.5", made="net = Net(6, 2)"), "forward() reads `heat`, which the loop changes"),
        (script(DRAWN, FOLLOWS).replace("in loader", "in batches()"), "batches() reads `width`, which the loop"),
        (script(COUNT, last="print(seen)", made=HOOKED), "count() changes `seen`, which the loop reads"),
    ],
)
def test_what_runs_beside_the_loop_sees_its_names(text, why, place):
    source = place(text)
    result = migrate_text(source)
    (kept,) = [n.message for n in result.attention if n.code == "PTM701"]
    assert why in kept or "a lambda" in kept
    ours, theirs = run(result.text), run(source)
    assert (ours.losses, ours.output) == (theirs.losses, theirs.output)


SETUP = """
seen = 0

def setup():
    global seen, loader
    seen = 3
    loader = DataLoader(data, batch_size=4)

setup()
"""
AFTER = "\ndef report():\n    print(last)\n\nlast = 0\nloader = DataLoader(data, batch_size=4)\n"


@pytest.mark.parametrize(
    "text",
    [
        script(COLLATE.format(body="pass"), "told = epoch"),
        script(SAMPLES, last="print(width)"),
        script(KEEPS, FOLLOWS),
        script(SETUP, last="print(seen)"),
        script(COLLATE.format(body="pass").replace("collate(batch)", "collate(batch, width=3)"), FOLLOWS),
        script(AFTER, "last = epoch * 2") + "report()\n",
        script(COUNT, made=HOOKED) + "print(seen)\n",
        script(AFTER, "last = epoch * 2") + "print(sorted([1, 5, 3], key=lambda n: abs(n - last)))\n",
        script(AFTER, "last = epoch * 2", made="print((lambda: last)())"),
        script(COLLATE.format(body="global width"), last="print(width)"),
    ],
)
def test_what_is_over_before_the_loop_or_reads_what_stays_is_no_matter(text):
    result = migrate_text(text)
    assert "trainer.fit(" in result.text, [n.message for n in result.attention]
    ours, theirs = run(result.text), run(text)
    assert (ours.losses, ours.output) == (theirs.losses, theirs.output)


def test_the_number_of_the_epoch_stays_the_global_that_others_read():
    source = script(SAMPLES.replace("* width", "* (1 + epoch)"))
    result = migrate_text(source)
    assert "trainer.fit(" in result.text and "global epoch" in result.text
    assert run(result.text).losses == run(source).losses
