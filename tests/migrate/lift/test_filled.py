"""Tensors that passes over batches fill are made where the Module is; what cannot be keeps the script on the CPU."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SOURCE = """
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def score(model, loader):
    model.eval()
    with torch.no_grad():
        {begins}
        for x, y in loader:
            out = model(x)
            n = len(x)
            {fills}
    model.train()
    {ends}


torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), 8, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(20, 3), torch.randn(20, 1)), 8)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    {start}
    for i, (x, y) in enumerate(train):
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        {step}
    print({shown})
    {evaluates}
"""
PLAIN = {
    "begins": "total = 0.0", "fills": "total += (out - y).abs().sum().item()", "ends": "print(total)",
    "start": "pass", "step": "pass", "shown": "loss.item()", "evaluates": "score(net, test)",
}  # fmt: skip


def source(**parts):
    return SOURCE.format(**{**PLAIN, **parts})


@pytest.mark.parametrize(
    ("start", "step", "made"),
    [
        ("total = torch.zeros(1)", "total += loss.detach()", "torch.zeros(1, device=self.device)"),
        ("total = torch.zeros(1)", "total = total + loss.detach()", "torch.zeros(1, device=self.device)"),
        ("total = torch.tensor(0.0)", "total += loss.detach()", "torch.tensor(0.0, device=self.device)"),
        ("total = torch.zeros(1)", "total.add_(loss.detach())", "torch.zeros(1, device=self.device)"),
        ("total, n = torch.zeros(1), 0", "total += loss.detach()", "torch.zeros(1, device=self.device), 0"),
        ("total = torch.zeros(1)", "total += loss.detach().float()", "torch.zeros(1, device=self.device)"),
        ("total = torch.zeros(2)", "total[0] += loss.detach()", "torch.zeros(2, device=self.device)"),
        ("total = torch.zeros(0)", "total = torch.cat([total, loss.detach()[None]])", "torch.zeros(0, device=self"),
    ],
)
def test_a_sum_of_the_training_is_where_the_module_is(start, step, made):
    result = check_same(source(start=start, step=step, shown="total.sum().item()"), "module")
    assert made in result and 'accelerator="cpu"' not in result


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("total = torch.zeros(1)", "total += loss.item()"),
        ("total = torch.zeros(1)", "total += len(x) * 2"),
        ("total = torch.zeros(1)", "total += loss.detach().cpu()"),
        ("total = torch.zeros(1)", "total += loss.detach().to('cpu').float()"),
        ("total = torch.zeros(1)", "value = loss.item(); total[0] += value"),
    ],
)
def test_a_sum_of_numbers_stays_where_it_is(start, step):
    result = check_same(source(start=start, step=step, shown="total.sum().item()"), "module")
    assert "torch.zeros(1)\n" in result and 'accelerator="cpu"' not in result


def test_the_sums_of_an_evaluation_are_where_the_module_is():
    begins, ends = "total, hits = torch.zeros(1), torch.zeros(1)", "print(total.item(), hits.item())"
    fills = "total += (out - y).abs().sum(); hits += (out > y).sum()"
    result = check_same(source(begins=begins, fills=fills, ends=ends), "module")
    assert result.count("torch.zeros(1, device=self.device)") == 2


TWICE = {"begins": "total = torch.zeros(1)", "fills": "total += (out - y).sum()"}
TWICE["evaluates"] = "score(net, test), score(net, train)"
READ = {"start": "total = torch.zeros(1)", "step": "total += loss.detach()"}
READ["shown"] = "numpy.mean(numpy.array(total))"


@pytest.mark.parametrize("parts", [TWICE, READ], ids=["it stays a function", "NumPy reads it"])
def test_a_script_of_sums_that_nothing_places_stays_on_the_cpu(parts):
    text = source(**parts)
    assert 'accelerator="cpu"' in check_same(text, "module")
    told = [n.message for n in migrate_text(text).attention if "names no device" in n.message]
    assert len(told) == 1 and "`torch.zeros(1)`" in told[0] and "a loop over batches fills" in told[0]


ADD = """
def add(total, value):
    total += value
"""


@pytest.mark.parametrize(
    ("start", "step", "told"),
    [
        ("total = torch.zeros(3)", "add(total, x.sum(0))", True),
        ("total = torch.zeros(3)", "add(total, numpy.ones(3))", False),
        ("total = 0.0", "add(total, loss.item())", False),
    ],
    ids=["a tensor of the batch", "the same for each batch", "a number, which the caller keeps as it was"],
)
def test_a_tensor_that_a_function_adds_to_is_filled(start, step, told):
    text = source(start=start, step=step, shown="total").replace(
        "torch.manual_seed(0)", ADD + "\n\ntorch.manual_seed(0)"
    )
    check_same(text, "module")
    notes = [n.message for n in migrate_text(text).attention]
    assert any("`total` holds what the process sees" in n for n in notes) is told
    assert any("`torch.zeros(3)`" in n and "a loop over batches fills" in n for n in notes) is told


def test_a_script_that_names_devices_says_itself_where_they_are():
    text = source(start="total = torch.zeros(1)", step="total += loss.detach().to('cpu')", shown="total.item()")
    text = text.replace(
        "net = nn.Linear(3, 1)", "net = nn.Linear(3, 1).to('cuda' if torch.cuda.is_available() else 'cpu')"
    )
    result = migrate_text(text)
    assert "device=self.device" not in result.text
