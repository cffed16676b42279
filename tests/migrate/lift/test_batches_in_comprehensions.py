"""Comprehensions over loaders: their moves go as those of a loop do, so their batches go where the model is, too."""

import pytest

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
train_loader, test_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=8)
model = nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def right(net, held_out):
    net.eval()
    with torch.no_grad():
        found = FOUND
    return found


for epoch in range(2):
    model.train()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        STEP
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(right(model, test_loader))
"""
HIT = "int((net(x.to(device)).argmax(1) == y.to(device)).sum())"
PLACED = [
    f"sum({HIT} for x, y in held_out)",
    f"sum([{HIT} for x, y in held_out])",
    f"[{HIT} + i for i, (x, y) in enumerate(held_out)]",
    f"{{i: {HIT} for i, (x, y) in enumerate(held_out)}}",
    f"sorted({{{HIT} for x, y in held_out}})",
    "[round(net(b[0].to(device)).sum().item(), 5) for b in held_out]",
    f"[{HIT} for k in range(2) for x, y in held_out if len(x) > k]",
]


@pytest.mark.parametrize("found", PLACED)
def test_they_are_placed_where_the_model_is(found):
    result = check_same(TEXT.replace("FOUND", found).replace("STEP", "pass"), "module")
    assert result.count("on_device(held_out)") == 1 and result.count("on_device") == 2


def test_a_script_that_moves_nothing_gives_its_loader_to_the_network():
    found = "[int(net(x).argmax(1).sum()) for x, y in test_loader]"
    text = TEXT.replace(".to(device)", "").replace("FOUND", found).replace("STEP", "pass")
    assert "for x, y in on_device(test_loader)]" in check_same(text, "module")


BUILD = """
def build(n, **options):
    return DataLoader(data, n), GIVEN


"""
BUILT = [
    ("train_loader, held = build(4)", "DataLoader(data, 8)", "held"),
    ("parts = build(4)\ntrain_loader = parts[0]", "DataLoader(data, 8)", "parts[1]"),
    ("train_loader, parts = build(4)", "{k: DataLoader(data, 8) for k in 'ab'}", "parts['a']"),
    ("train_loader, parts = build(4)", "[DataLoader(data, 8)]", "parts[0]"),
]


@pytest.mark.parametrize(("made", "given", "held"), BUILT)
def test_loaders_that_a_function_gives(tmp_path, made, given, held):
    found = f"sum(int(net(x).argmax(1).sum()) for x, y in {held})"
    build = BUILD.replace("GIVEN", given)
    text = TEXT.replace(
        "\ntrain_loader, test_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=8)", f"{build}{made}"
    )
    text = text.replace(".to(device)", "").replace("FOUND", found).replace("STEP", "pass").replace("held_out", "_")
    text = text.replace("print(right(model, test_loader))", "print(right(model, 0))")
    assert "on_device(" in check_on_card(tmp_path, text)


MEETS = [
    "sum((net(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in held_out)",
    "[(b[1] == net(b[0].to(device)).argmax(1).cpu()).sum().item() for b in held_out]",
    "[float((net(x.to(device)).argmax(1).cpu().numpy() == y.numpy()).mean()) for x, y in held_out]",
]


@pytest.mark.parametrize("found", MEETS)
def test_what_was_left_on_the_cpu_meets_there_what_is_brought_to_it(tmp_path, found):
    result = check_on_card(tmp_path, TEXT.replace("FOUND", found).replace("STEP", "pass"))
    assert "on_device(held_out)" in result and ".to(device)" not in result


STAY = [
    ("[len(x) for x, y in held_out]", "pass"),
    ("[round(x.sum().item(), 5) for x, y in held_out]", "pass"),
    ("[p.to(device).numel() for p in net.parameters()]", "pass"),
    ("[i for i in range(3)]", "x, y = [t.to(device) for t in (x, y)]"),
    ("[i for i in range(3)]", "sums = [t.to(device).sum() for t in x]"),
    ("[i for i in range(3)]", "parts = [model(t.to(device)) for t in x.chunk(2)]"),
    ("[i for i in range(3)]", "parts = [model(t) for t in (x[:2], x[2:])]"),
    ("[i for i in range(3)]", "parts = [x[:2], x[2:]]; found = [model(t) for t in parts]"),
]


@pytest.mark.parametrize(("found", "step"), STAY)
def test_what_is_no_batch_or_is_placed_stays(found, step):
    assert "on_device" not in check_same(TEXT.replace("FOUND", found).replace("STEP", step), "module")
