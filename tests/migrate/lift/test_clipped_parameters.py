"""The Trainer clips what the optimizer has, in its order: other parameters are clipped in the step, as they were."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
other = nn.Linear(4, 1)
optimizer = torch.optim.SGD(MADE, lr=0.1)

def train(model, optimizer):
    for x in DataLoader(torch.randn(8, 4), batch_size=4):
        loss = model(x).pow(2).mean() + other(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(CLIPPED, 0.1)
        optimizer.step()

net = model
for epoch in range(2):
    train(NET, optimizer)
print([p.sum().item() for p in model.parameters()])
"""
ALL = "model.parameters()"


@pytest.mark.parametrize(
    ("made", "clipped", "plan"),
    [
        (ALL, ALL, "module"),
        (f"params={ALL}", ALL, "module"),
        ("[{'params': [p for p in model.parameters() if p.ndim == d]} for d in (1, 2)]", ALL, "manual"),
        ("model[2].parameters()", ALL, "manual"),
        (ALL, "model[0].parameters()", "manual"),
        ("[*model.parameters(), *other.parameters()]", ALL, "manual"),
        (ALL, "other.parameters()", "manual"),
    ],
)
def test_only_what_the_optimizer_has_is_the_trainers_to_clip(made, clipped, plan):
    text = TEXT.replace("MADE", made).replace("CLIPPED", clipped).replace("NET", "model")
    assert ("gradient_clip_val" in check_same(text, plan)) is (plan == "module")


@pytest.mark.parametrize(
    ("made", "clipped", "plan"),
    [
        ("[{'params': model[2].parameters(), 'lr': 0.2}, {'params': model[0].parameters()}]", ALL, "manual"),
        ("[{'params': model.parameters()}, {'params': other.parameters()}]", ALL, "manual"),
    ],
)
def test_groups_are_clipped_by_value_in_any_order(made, clipped, plan):
    text = TEXT.replace("MADE", made).replace("CLIPPED", clipped).replace("NET", "model")
    check_same(text.replace("clip_grad_norm_", "clip_grad_value_"), plan)


NETWORK = """class Net(nn.Sequential):
    first, last = property(lambda s: s[0]), property(lambda s: s[2])

model = Net("""
NAMED = "[{'params': model.last.parameters(), 'lr': 0.2}, {'params': model.first.parameters()}]"


@pytest.mark.parametrize(
    ("made", "by", "plan"),
    [
        (NAMED, "value", "module"),
        (NAMED, "norm", "manual"),
        (f"{NAMED[:-1]}, {{'params': other.parameters()}}]", "value", "manual"),
    ],
)
def test_groups_of_a_network_are_clipped_by_value_in_any_order(made, by, plan):
    text = TEXT.replace("model = nn.Sequential(", NETWORK).replace("MADE", made).replace("CLIPPED", ALL)
    text = text.replace("NET", "model").replace("clip_grad_norm_", f"clip_grad_{by}_")
    assert ("gradient_clip" in check_same(text, plan)) is (plan == "module")


def test_the_network_may_have_another_name_in_the_function():
    text = TEXT.replace("MADE", ALL).replace("CLIPPED", ALL).replace("NET", "net")
    assert "gradient_clip_val=0.1" in check_same(text, "module")


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        ("parameters=model.parameters(), max_norm=0.1", "module"),
        ("max_norm=0.1, parameters=model.parameters()", "module"),
        ("model.parameters(), max_norm=0.1", "module"),
        ("parameters=other.parameters(), max_norm=0.1", "manual"),
        ("parameters=model.parameters(), max_norm=0.1, norm_type=1", "manual"),
    ],
)
def test_what_is_given_by_name(given, plan):
    text = TEXT.replace("CLIPPED, 0.1", given).replace("MADE", ALL).replace("NET", "model")
    assert ("gradient_clip_val=0.1" in check_same(text, plan)) is (plan == "module")
