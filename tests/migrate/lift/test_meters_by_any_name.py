"""A meter of the script's own gets the whole batch's means, whatever its method is called."""

import pytest
import torch
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same, on_one_and_two

SCRIPT = """
import torch
from torch import nn
from tqdm import tqdm
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, value, n=1):
        self.total += float(value) * n
        self.n += n

    __call__ = feed = add

    def keep(self, out, n):
        self.add(out.max(), n)

    def tick(self, n):
        self.n += n

    def __str__(self):
        return f"{self.total / max(1, self.n):.5f} of {self.n}"


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.arange(27) % 3), batch_size=8, shuffle=True)
model = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
meter, meters = Meter(), {"acc": Meter()}
sizes, bar = [], tqdm(disable=True)
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        out = model(x)
        loss = criterion(out, y)
        acc = (out.argmax(1) == y).float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        STEP
    print(epoch, meter, meters["acc"], sizes)
"""
ACC, SIZE = "self.batch_mean(acc.item())", "self.batch_sum(len(y))"
BROUGHT = {
    "meter.add(acc.item())": f"self.meter.add({ACC})",
    "meter.feed(acc.item(), len(y))": f"self.meter.feed({ACC}, {SIZE})",
    "meter.feed(n=len(y), value=acc.item())": f"self.meter.feed(n={SIZE}, value={ACC})",
    "meters['acc'].add(acc.item(), len(y))": f"self.meters['acc'].add({ACC}, {SIZE})",
    "meter.tick(len(y))": f"self.meter.tick({SIZE})",
    "sizes.append(len(y))": f"self.sizes.append({SIZE})",
    "meter.add(loss.detach(), len(y))": f"self.meter.add(self.batch_mean(loss.detach()), {SIZE})",
}


@pytest.mark.parametrize("step", BROUGHT)
def test_means_are_brought_together(step):
    text = SCRIPT.replace("STEP", step)
    assert f"        {BROUGHT[step]}\n" in check_same(text, "module")
    assert not migrate_text(text).attention


def test_two_processes_have_what_one_had(tmp_path):
    text = SCRIPT.replace("STEP", "meter.feed(acc.item(), len(y))\n        meters['acc'].add(loss.item())")
    text = text.replace(
        'print(epoch, meter, meters["acc"], sizes)', "open(f'{epoch}.txt', 'w').write(f'{meter} {meters[\"acc\"]}')"
    )
    one, two = on_one_and_two(tmp_path, text, migrate_text(text).text)
    for name in ("0.txt", "1.txt"):
        assert (one / name).read_text() == (two / name).read_text()


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("meter.keep(out, len(y))", True),
        ("meter.add(out.max().item())", True),
        ("meter.tick(1)", False),
        ("sizes.append(len(loader))", False),
        ("bar.update(len(y))", False),
        ("meter.add(i)", False),
        ("own = Meter(); own.add(acc.item())", False),
        ("out.detach().clamp_(max=acc.item())", False),
    ],
)
def test_what_is_no_mean_stays_a_share_s(step, told):
    text = SCRIPT.replace("STEP", step)
    result = check_same(text, "module")
    assert "self.batch_mean(" not in result and "self.batch_sum(" not in result.replace(f"out, {SIZE}", "")
    assert any("`meter` holds what the process sees" in n.message for n in migrate_text(text).attention) is told


RESET = """

class Cell(nn.Linear):
    def reset(self, n):
        self.state = torch.zeros(n, 3)

    def forward(self, x):
        self.state = 0.5 * self.state + super().forward(x)
        return self.state


"""


def test_a_network_is_told_of_its_own_samples(tmp_path):
    text = SCRIPT.replace("\n\n\nclass Meter", f"{RESET}class Meter", 1).replace("model = nn.Linear", "model = Cell")
    text = text.replace("STEP", "meter.tick(len(y))").replace("out = model", "model.reset(len(x))\n        out = model")
    result = check_same(text, "module")
    assert "self.model.reset(len(x))" in result and f"self.meter.tick({SIZE})" in result
    save = "\ntorch.save(model.state_dict(), 'net.pt')\n"
    one, two = (torch.load(f / "net.pt") for f in on_one_and_two(tmp_path, text + save, result + save))
    torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("made", ["torch.zeros(len(y), 2)", "torch.full((len(y),), 1.0)", "x.new_ones(len(x))"])
def test_what_is_made_for_each_sample_is_as_long_as_the_share(made):
    result = check_same(SCRIPT.replace("STEP", f"states = []\n        states.append({made})"), "module")
    assert f"states.append({made.partition(')')[0]}" in result


def test_a_meter_that_is_a_module_is_none_of_the_networks():
    text = SCRIPT.replace("class Meter:", "class Meter(nn.Module):").replace(
        "    def __init__(self):\n", "    def __init__(self):\n        super().__init__()\n", 1
    )
    result = check_same(text.replace("STEP", "meter.add(loss.item(), len(y))"), "module")
    assert f"self.meter.add(self.batch_mean(loss.item()), {SIZE})" in result
