"""Copies of weights that are made above the loop and meet the weights in it: they go where the Module is."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card, check_project_on_card

HEAD = """\
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))
net = nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(X, Y), batch_size=4)
"""
LOOP = """\
MADE

for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(net(x), y) + TERM
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        AFTER
    print(loss.item(), SHOWN)
"""
FAR = "sum((p - first[n]).pow(2).sum() for n, p in net.named_parameters())"
NEAR = "sum((p - q).pow(2).sum() for p, q in zip(net.parameters(), first))"
DICTIONARY = "for key, value in self.first.items():\n            self.first[key] = value.to(self.device)\n"
LIST = "self.first[:] = [value.to(self.device) for value in self.first]\n"
MADE = [
    ("first = {n: p.clone().detach() for n, p in net.named_parameters()}", FAR, DICTIONARY),
    ("first = copy.deepcopy(net.state_dict())", FAR, DICTIONARY),
    ("first = {n: torch.zeros_like(p) for n, p in net.named_parameters()}", FAR, DICTIONARY),
    ("first = {}\nfor n, p in net.named_parameters():\n    first[n] = p.data.clone()", FAR, DICTIONARY),
    ("first = [p.detach().clone() for p in net.parameters()]", NEAR, LIST),
    ("first = []\nfor p in net.parameters():\n    first.append(p.clone().detach())", NEAR, LIST),
    (
        "first = nn.utils.parameters_to_vector(net.parameters()).detach()",
        "(nn.utils.parameters_to_vector(net.parameters()) - first).pow(2).sum()",
        "self.first = self.first.to(self.device)",
    ),
    (
        "first = torch.cat([p.detach().view(-1) for p in net.parameters()])",
        "(nn.utils.parameters_to_vector(net.parameters()) - first).pow(2).sum()",
        "self.first = self.first.to(self.device)",
    ),
    (
        f"first = [p.detach().clone() for p in net.parameters()]\n\n\ndef near():\n    return {NEAR}",
        "near()",
        "        first[:] = [value.to(self.device) for value in first]\n",
    ),
]
AVERAGE = """\
import torch


class Average:
    def __init__(self, model):
        self.shadow = {}
        for n, p in model.named_parameters():
            self.shadow[n] = p.data.clone()
        self.sums = [torch.zeros_like(p) for p in model.parameters()]

    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n] = 0.9 * self.shadow[n] + 0.1 * p.data
        for s, p in zip(self.sums, model.parameters()):
            s.add_(p.data)
"""
SUMS = "sum(v.sum().item() for v in average.shadow.values()) + average.sums[0].sum().item()"


def script(made, term="0", after="pass", shown="0"):
    text = LOOP.replace("MADE", made).replace("TERM", term).replace("AFTER", after).replace("SHOWN", shown)
    return HEAD + text


def told(text):
    return [n.message for n in migrate_text(text).attention if n.code == "PTM105"]


@pytest.mark.parametrize("made, term, moved", MADE)
def test_they_go_along(tmp_path, made, term, moved):
    assert moved in check_on_card(tmp_path, script(made, term)) and not told(script(made, term))


def test_a_shadow_that_the_steps_give_anew(tmp_path):
    made, *_ = MADE[0]
    after = "for n, p in net.named_parameters():\n            first[n] = 0.9 * first[n] + 0.1 * p.data"
    check_on_card(tmp_path, script(made, after=after, shown="sum(v.sum().item() for v in first.values())"))


def test_those_that_an_object_keeps(tmp_path):
    text = script(f"{AVERAGE}\n\naverage = Average(net)", after="average.update(net)", shown=SUMS)
    result = check_on_card(tmp_path, text)
    assert "self.average.shadow[key] = value.to(self.device)" in result and not told(text)
    assert "self.average.sums[:] = [value.to(self.device) for value in self.average.sums]" in result


def test_those_of_a_class_in_another_file(tmp_path):
    text = script("from average import Average\naverage = Average(net)", after="average.update(net)", shown=SUMS)
    texts = check_project_on_card(tmp_path, main=text, average=AVERAGE)
    assert "self.average.shadow[key] = value.to(self.device)" in texts["main"]


LATER = AVERAGE.replace(
    "def __init__(self, model):",
    "def __init__(self, model):\n        self.model = model\n\n    def register(self):\n        model = self.model",
)


def test_those_that_a_method_of_another_file_makes_above_the_training(tmp_path):
    """The moving average that is registered, as it is copied from script to script."""
    made = "from average import Average\naverage = Average(net)\naverage.register()"
    texts = check_project_on_card(tmp_path, main=script(made, after="average.update(net)", shown=SUMS), average=LATER)
    assert "self.average.shadow[key] = value.to(self.device)" in texts["main"]


HANDED = """\
class Average:
    def __init__(self):
        self.shadow = {}
        self.start = []

    def register(self, name, value, first=None):
        self.shadow[name] = value.clone()
        self.start.append(first.detach().clone())

    def update(self, name, value):
        self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * value


"""
HANDS = "average = Average()\nfor n, p in net.named_parameters():\n    average.register(n, p.data, first=p)"
UPDATES = "for n, p in net.named_parameters():\n            average.update(n, p.data)"
STARTED = "sum((p - q).pow(2).sum() for p, q in zip(net.parameters(), average.start))"


def test_those_that_a_method_keeps_of_what_it_is_given(tmp_path):
    text = script(HANDED + HANDS, STARTED, after=UPDATES, shown="sum(v.sum().item() for v in average.shadow.values())")
    result = check_on_card(tmp_path, text)
    assert "self.average.shadow[key] = value.to(self.device)" in result
    assert "self.average.start[:] = [value.to(self.device) for value in self.average.start]" in result
    assert told(text) == []


def test_what_a_method_of_another_file_keeps_of_what_it_is_given(tmp_path):
    text = script("from average import Average\n" + HANDS, STARTED, after=UPDATES)
    results = check_project_on_card(tmp_path, main=text, average=HANDED)
    assert "self.average.shadow[key] = value.to(self.device)" in results["main"]


@pytest.mark.parametrize(
    "given, kept",
    [
        ("p.data.cpu()", "value.clone()"),
        ("p.norm().item()", "value"),
        ("n", "[value]"),
        ("p.data", "value.cpu()"),
        ("p", "value.clone().cpu()"),
    ],
)
def test_what_a_method_keeps_elsewhere_stays(given, kept):
    made = "class Seen:\n    def __init__(self):\n        self.all = {}\n\n    def take(self, name, value):\n"
    made += f"        self.all[name] = {kept}\n\n\nseen = Seen()\n"
    text = script(f"{made}for n, p in net.named_parameters():\n    seen.take(n, {given})", after="seen.all")
    assert "self.seen.all[key]" not in migrate_text(text).text and told(text) == []


def test_what_a_method_keeps_for_a_function_of_the_script_is_told():
    kept = HANDED + HANDS + "\n\n\ndef first():\n    return " + STARTED
    (message, *_) = told(script(kept, "first()"))
    assert message.startswith("`average.register(n, p.data, first=p)`: a copy of weights that the Trainer has not")


def test_on_lightning():
    result = migrate_text(script(*MADE[0][:2]), Options(framework="lightning"))
    assert "self.first[key] = value.to(self.device)" in result.text


STAY = [
    ("first = {n: p.clone().cpu() for n, p in net.named_parameters()}", "0"),
    ("first = {k: v.clone() for k, v in net.state_dict().items()}\nnet.load_state_dict(first)", "0"),
    ("first = {n: p.numel() for n, p in net.named_parameters()}", "len(first)"),
    ("first = {n: (p.clone(), 0) for n, p in net.named_parameters()}", "len(first)"),
]


@pytest.mark.parametrize("made, term", STAY)
def test_what_stays_where_it_is(made, term):
    assert "value.to(" not in migrate_text(script(made, term)).text
