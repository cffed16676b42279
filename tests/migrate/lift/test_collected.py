"""What a step fills with values of its samples: read as a whole afterwards, each process has to have all of it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
def train(epoch):
    seen = {{'guess': [], 'rows': {{}}}}
    for i, (x, y) in enumerate(train_loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {fills}
    with open('/dev/null', 'w') as f:
        f.write(str(len(seen['guess']) + len(seen['rows'])))
    return sum(seen['guess']) + sum(seen['rows'].values())

for epoch in range(2):
    total = train(epoch)
    print(epoch, total)
"""
)


@pytest.mark.parametrize(
    "fills",
    ["seen['guess'].append(out.max().item())", "seen['rows'][i] = out.sum().item()"],
)
def test_values_of_samples_in_a_list_or_dictionary_that_another_holds(fills):
    text = TEXT.format(fills=fills)
    assert "divide_batches = False" in check_same(text, "module")
    assert any("`seen` collects values of the samples" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize(
    ("value", "brought"),
    [
        ("loss.item()", "self.batch_mean(loss.item())"),
        ("out.sum().item()", "self.batch_sum(out.sum().item())"),
        ("out.softmax(1).mean().item()", "self.batch_mean(out.softmax(1).mean().item())"),
    ],
)
def test_means_and_sums_of_the_batch_are_brought_together(value, brought):
    result = check_same(TEXT.format(fills=f"seen['guess'].append({value})"), "module")
    assert "divide_batches" not in result
    assert f"self.seen['guess'].append({brought})" in result


WEIGHTS = """for n, p in model.named_parameters():
            seen['rows'][n] = p.data.sum().item()"""


def test_weights_are_every_process_s():
    result = check_same(TEXT.format(fills=WEIGHTS), "manual")
    assert "divide_batches" not in result
    assert not [n for n in migrate_text(TEXT.format(fills=WEIGHTS)).attention if "`seen`" in n.message]


@pytest.mark.parametrize(
    "was, now",
    [
        ("p.data", "p.grad"),
        ("p.data.sum()", "(p.data.sum() * x.sum())"),
        ("model.named_parameters()", "enumerate(out)"),
    ],
)
def test_what_is_found_beside_weights_is_of_the_samples(was, now):
    text = TEXT.format(fills=WEIGHTS.replace(was, now))
    assert any("`seen` collects values of the samples" in n.message for n in migrate_text(text).attention)


EVALUATED = (
    HEAD
    + """
history = {{'loss': [], 'of': []}}

def test():
    meters = {{'loss': [], 'right': []}}
    model.eval()
    n = 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x)
            {fills}
            n += x.size(0)
    {after}
    return n

for epoch in range(2):
    model.train()
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    n = test()
    print(epoch, n, loss.item())
print(history)
"""
)


@pytest.mark.parametrize(
    ("fills", "after"),
    [
        ("meters['loss'] += [criterion(out, y).item()]", "print(sum(meters['loss']))"),
        ("history['of'] = out.sum().item()", "pass"),
    ],
    ids=["read in the evaluation", "set at each batch"],
)
def test_what_an_evaluation_fills_and_something_reads_is_filled_on_every_process(fills, after):
    result = check_same(EVALUATED.format(fills=fills, after=after), "module")
    assert "divide_validation = False" in result


def test_what_an_evaluation_fills_with_its_own_counts_is_divided():
    result = check_same(EVALUATED.format(fills="history['of'].append(1)", after="pass"), "module")
    assert "divide_validation" not in result


ATTRIBUTE = """
class Loop:
    def __init__(self):
        self.model, self.optimizer = model, optimizer
        self.total, self.worst = 0.0, []

    def fit(self):
        for epoch in range(2):
            self.total = 0.0
            for x, y in train_loader:
                out = self.model(x)
                loss = criterion(out, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                EACH
            AFTER

    def report(self):
        print(self.total)

Loop().fit()
"""


@pytest.mark.parametrize(
    ("each", "after"),
    [
        ("self.total += loss.item()", "self.total /= len(train_loader); self.report()"),
        ("self.worst.append(out.max().item())", "self.worst.sort(); self.report()"),
        ("self.worst.extend(out.argmax(1).tolist())", "chosen = max(self.worst); print(chosen)"),
    ],
)
def test_an_attribute_that_is_filled_and_read_for_more_than_to_show_it_gets_whole_batches(each, after):
    text = HEAD + ATTRIBUTE.replace("EACH", each).replace("AFTER", after)
    assert "divide_batches = False" in check_same(text, "module")


@pytest.mark.parametrize(
    ("each", "told"),
    [
        ("self.worst.append(out.max().item())", True),
        ("self.worst.append(loss.item())", False),
        ("self.worst.append(len(x))", False),
        ("kept = []; kept.append(out.max().item())", False),
    ],
)
def test_an_attribute_that_is_only_shown_is_told_of(each, told):
    text = HEAD + ATTRIBUTE.replace("EACH", each).replace("AFTER", "print(self.worst); self.worst.clear()")
    assert "divide_batches" not in check_same(text, "module")
    assert any("`self.worst` holds what the process sees" in n.message for n in migrate_text(text).attention) is told


STEP = """
for epoch in range(2):
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y)
        {rate}
        optimizer.param_groups[0].update(lr=rate)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), rate)
"""


@pytest.mark.parametrize("rate", ["rate = 0.1 / (i + 1)", "t = max(i, 1) + epoch; rate = 0.1 * math.cos(t)"])
def test_a_rate_that_counts_steps_is_every_processs(rate):
    text = HEAD + "import math\n" + STEP.format(rate=rate)
    assert "divide_batches" not in check_same(text, "module")
    assert not [n for n in migrate_text(text).attention if n.code == "PTM703"]


SCHEDULES = [
    ("lambda t: numpy.interp([t], [0, 2], [0.1, 0])[0]", True),
    ("lambda t, top=0.1: max(top - t / 100, 0.01)", True),
    ("lambda t: numpy.random.rand() / 10", False),
    ("lambda t: float(xs[int(t)].abs().max())", False),
]


@pytest.mark.parametrize(("schedule", "divided"), SCHEDULES)
def test_a_rate_that_a_lambda_computes_of_the_steps_number_is_every_processs(schedule, divided):
    head = f"{HEAD}import numpy\nxs = torch.rand(9, 2)\nschedule = {schedule}\n"
    text = head + STEP.format(rate="rate = schedule(epoch + (i + 1) / 4)")
    assert ("divide_batches" not in check_same(text, "module")) is divided


@pytest.mark.parametrize("rate", ["rate = 0.1 * float(x.abs().max())", "rate = 0.1 / (1 + i * len(str(y[0])))"])
def test_a_rate_of_the_samples_makes_them_whole(rate):
    text = HEAD + STEP.format(rate=rate)
    assert "divide_batches = False" in check_same(text, "module")
    assert any("the step's rate is computed from the samples" in n.message for n in migrate_text(text).attention)


def test_a_rate_that_is_a_mean_of_the_batch_is_brought_together():
    text = check_same(HEAD + STEP.format(rate="rate = loss.item() / 10"), "module")
    assert "update(lr=self.batch_mean(self.rate))" in text and "divide_batches" not in text


BAR = """
from tqdm import tqdm

class Seen:
    desc = ''

def train(loader):
    bar = {bar}
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bar.desc = "loss {{:.3f}}".format(x.max().item())
    return {read}

for epoch in range(2):
    print(train(train_loader))
"""


@pytest.mark.parametrize(
    "bar, read, shows",
    [
        ("tqdm(disable=True)", "loss.item()", True),
        ("tqdm(disable=True)", "bar.desc", False),
        ("Seen()", "bar.desc", False),
    ],
)
def test_what_a_bar_shows_is_not_collected(bar, read, shows):
    text = HEAD + BAR.format(bar=bar, read=read)
    told = [n.message for n in migrate_text(text).attention if "collects values" in n.message]
    assert bool(told) is not shows
    check_same(text, "module")


@pytest.mark.parametrize(
    ("reads", "whole"), [("print(kept)", False), ("x = 0 * len(kept)", True), ("kept.append(sum(kept))", True)]
)
def test_a_list_of_the_module_that_a_function_fills_from_a_function(reads, whole):
    text = TEXT.format(fills="kept.append(out.max().item())").replace("def train(", "kept = []\n\ndef train(")
    text = text.replace("len(seen['guess'])", "0").replace("return sum(seen['guess'])", "return 0")
    text = text.replace(
        "for epoch in range(2):\n    total = train(epoch)\n    print(epoch, total)",
        "def main():\n    for epoch in range(2):\n        train(epoch)\n\nmain()\n" + reads,
    )
    result = check_same(text, "module")
    assert "    kept.append(out.max().item())" in result and ("divide_batches = False" in result) == whole
    assert any("kept` " in n.message for n in migrate_text(text).attention)


def test_a_call_of_an_import_fills_nothing():
    text = TEXT.format(fills="torch.add(out, 1); F.pad(out, (0, 1))").replace(
        "def train", "import torch.nn.functional as F\n\ndef train", 1
    )
    assert not [n for n in migrate_text(text).attention if "`torch`" in n.message or "`F`" in n.message]


CLOSURE = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs, ys = torch.randn(22, 4), torch.randn(22, 1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)
values = []
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(xs, ys), batch_size=8):
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            values.append(KEPT)
            return loss
        loss = optimizer.step(closure)
        print(loss.item())
print(len(values))
"""


@pytest.mark.parametrize(("kept", "told"), [("loss.item()", True), ("1", False)])
def test_what_a_closure_keeps_is_told(kept, told):
    text = CLOSURE.replace("KEPT", kept)
    assert "self.print(self.batch_mean(loss.item()))" in check_same(text, "manual")
    assert any("`values` holds what the process sees" in n.message for n in migrate_text(text).attention) == told


OWN_UPDATE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Learner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def update(self, a, b):
        return ((self.net(a) - b) ** 2).sum(dim=-1).mean()

    def train(self, data):
        for epoch in range(2):
            for a, b in DataLoader(data, batch_size=8):
                loss = self.update(a, b)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"{epoch} {loss.item():.5f}")
        print(self.where())

    def where(self):
        return len(self.net.weight)


torch.manual_seed(0)
net = nn.Linear(4, 4)
Learner(net, torch.optim.SGD(net.parameters(), lr=0.1)).train(TensorDataset(torch.randn(20, 4), torch.randn(20, 4)))
"""


def test_a_method_of_ones_own_by_the_name_of_a_filling_fills_nothing():
    assert "divide_batches" not in check_same("epochs = 2\n" + OWN_UPDATE, "module")
