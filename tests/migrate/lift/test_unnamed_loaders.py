"""A loop that moved what it is given goes over batches, whatever the name of what it goes over says."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import torch
from torch import nn
from helpers import get_data, networks

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(2, 1).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader, {name} = get_data()


def evaluate({name}):
    n = 0
    for {target} in {source}:
        {body}
    return n


for epoch in range(3):
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
    print(evaluate({name}))
"""
MOVED = "x, y = x.to(device), y.to(device)\n        n += score(model(x), y)"


def lifted(name="held_out", target="x, y", source="held_out", body=MOVED):
    result = migrate_text(SCRIPT.format(name=name, target=target, source=source, body=body))
    assert result.plan in ("module", "manual")
    compile(result.text, "result", "exec")
    return result.text


@pytest.mark.parametrize("name", ["test", "data", "dset", "val", "q", "test_loader"])
def test_its_batches_go_where_the_model_is(name):
    assert f"for x, y in on_device({name}):" in lifted(name, source=name)


def test_with_a_number_and_a_bar():
    assert "enumerate(on_device(held_out))" in lifted(target="i, (x, y)", source="enumerate(held_out)")


def test_two_side_by_side_and_what_a_call_gives():
    assert "in on_device(zip(held_out, rest))" in lifted(source="zip(held_out, rest)")
    assert "in on_device(cut(held_out, 3))" in lifted(source="cut(held_out, 3)")


def test_what_is_taken_from_a_batch_is_placed_with_it():
    body = "for a in x:\n            n += score(model(a.to(device)), y.to(device))"
    text = lifted(name="test_loader", source="test_loader", body=body)
    assert "for x, y in on_device(test_loader):" in text and "for a in x:" in text


def test_a_loop_that_comes_to_the_line_of_another_is_not_that_one():
    """The training pass goes: the loop above it has then the line that is nearest to it."""
    source = """\
import torch

def fit(loader, model, metrics, epochs):
    for epoch in range(epochs):
        loss, metrics = train(loader, model, metrics)

def train(loader, model, metrics):
    for metric in metrics:
        metric.reset()

    for i, (x, y) in enumerate(loader):
        if not type(x) in (tuple, list):
            x = (x,)
            x = tuple(d.cuda() for d in x)
        loss.backward()
        for metric in metrics:
            losses = []
    return total, metrics
"""
    result = migrate_text(source)
    assert result.plan in ("module", "manual") and "on_device(self.metrics)" not in result.text


def test_objects_that_hold_a_batch():
    body = "x = pair.text.to(device)\n        n += score(model(x), pair.label.to(device))"
    assert "for pair in on_device(held_out):" in lifted(target="pair", body=body)


def test_what_a_batch_is_taken_apart_to():
    body = "x, y = pair\n        x, y = x.to(device), y.to(device)\n        n += score(model(x), y)"
    assert "for pair in on_device(held_out):" in lifted(target="pair", body=body)


@pytest.mark.parametrize(
    ("target", "source", "body"),
    [
        ("x, y", "held_out", "n += score(x, y)"),
        ("i", "range(3)", "n += i"),
        ("net", "held_out", "net.to(device)\n        net.eval()\n        n += 1"),
        ("net", "held_out", "n += net.to(device)(torch.ones(2))"),
        ("a, b", "zip(held_out, held_out)", "n += 1"),
        ("net", "held_out.modules()", "net.to(device)\n        n += 1"),
        ("net", "[model, other]", "net.to(device)\n        n += 1"),
        ("name", "held_out", "z = torch.zeros(1).to(device)\n        n += len(name)"),
    ],
)
def test_what_moved_nothing_of_its_own_and_networks_stay(target, source, body):
    assert "on_device" not in lifted(target=target, source=source, body=body)
