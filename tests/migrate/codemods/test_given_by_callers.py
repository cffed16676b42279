"""Functions that move what `map` gives them, or what they decorate: on a card all is where the original placed it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """
import functools
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
xs = torch.randn(32, 8)
ys = (xs.sum(1) > 0).long()
loader = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
net = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

FUNCTIONS

for epoch in range(2):
    for batch in loader:
        STEP
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
    with torch.no_grad():
        BELOW
"""
LAMBDA = "to = lambda t: t.to(device)"
NAMED = "def to(t):\n    return t.to(device)"
STEP = "x, y = map(to, batch)\n        loss = nn.functional.cross_entropy(net(x), y)"
BELOW = {
    "a tuple": "print(net(*map(to, (xs[:4],))).sum().item())",
    "a list, with a batch": "x, y = [*map(to, [xs[:4], ys[:4]])]; print((net(x).argmax(1) == y).sum().item())",
    "called": "print(net(to(xs[:4])).sum().item())",
}
DECORATORS = {
    "of the places": """\
def on_device(f):
    @functools.wraps(f)
    def wrapped(model, *args):
        return f(model, *[a.to(device) for a in args])
    return wrapped
""",
    "of the names too": """\
def on_device(f):
    def wrapped(model, *args, **names):
        args = [a.to(device) if torch.is_tensor(a) else a for a in args]
        names = {k: v.to(device) for k, v in names.items()}
        return f(model, *args, **names)
    return wrapped
""",
    "by name": """\
def on_device(f):
    def wrapped(model, x, y):
        return f(model, x.to(device), y.to(device))
    return wrapped
""",
    "that is made": """\
def on(where):
    def on_device(f):
        def wrapped(model, *args, **names):
            return f(model, *(a.to(where) for a in args), **names)
        return wrapped
    return on_device
""",
}
DECORATED = """
@{}
def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)
"""


def script(functions, step, below="pass"):
    return SCRIPT.replace("FUNCTIONS", functions).replace("STEP", step).replace("BELOW", below)


def decorated(name):
    return DECORATORS[name] + DECORATED.format("on(device)" if name == "that is made" else "on_device")


@pytest.mark.parametrize("function", [LAMBDA, NAMED])
@pytest.mark.parametrize("below", BELOW.values(), ids=BELOW.keys())
def test_by_map(tmp_path, function, below):
    check_on_card(tmp_path, script(function, STEP, below))


def test_by_map_of_batches_alone(tmp_path):
    text = script(NAMED, STEP)
    assert ".to(device)" not in check_on_card(tmp_path, text)


@pytest.mark.parametrize("name", DECORATORS)
def test_through_a_decorator(tmp_path, name):
    text = script(
        decorated(name), "x, y = batch\n        loss = loss_of(net, x, y)", "print(loss_of(net, xs, ys).item())"
    )
    check_on_card(tmp_path, text)


@pytest.mark.parametrize("name", DECORATORS)
def test_through_a_decorator_batches_alone(name):
    text = script(decorated(name), "x, y = batch\n        loss = loss_of(net, x, y)")
    assert ".to(" not in migrate_text(text).text


CUT = (
    "x.view(n, -1)",
    "x.view(n, -1).t().t().contiguous()",
    "x[:, :8].narrow(0, 0, n)",
    "x.split(n)[0].unsqueeze(0)[0]",
)


@pytest.mark.parametrize("cut", CUT)
def test_numbers_beside_it_do_not_say_where_it_is(tmp_path, cut):
    """What the script makes is cut by a number that the function gets too, and the function moves it."""
    text = script(
        f"def cut(x, n):\n    return {cut}.to(device)\n\nheld = cut(xs, 32)",
        "x, y = batch[0].to(device), batch[1].to(device)\n        loss = nn.functional.cross_entropy(net(x), y)",
        "print(net(held).sum().item())",
    )
    assert ".to(device)" in check_on_card(tmp_path, text)


@pytest.mark.parametrize("cut", CUT)
def test_with_numbers_of_batches_alone(tmp_path, cut):
    step = "x, y = cut(batch[0], 8), batch[1].to(device)\n        loss = nn.functional.cross_entropy(net(x), y)"
    assert ".to(device)" not in check_on_card(tmp_path, script(f"def cut(x, n):\n    return {cut}.to(device)", step))
