"""Parameters of a pass that get another value there, and passes with a name of their own that the epochs count with."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = (
    HEAD
    + """
def train(epoch, loader, lr=0.1, total=0.0):
    'One epoch.'
    CHANGE
    for group in optimizer.param_groups:
        group['lr'] = lr
    model.train()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if i % 2 == 0:
            print(epoch, i, lr)
    print(total / len(loader), lr)

for EPOCH in range(3):
    CALL
"""
)


def text_of(change, call="train(epoch, train_loader)", epoch="epoch"):
    return SCRIPT.replace("CHANGE", change).replace("CALL", call).replace("EPOCH", epoch)


@pytest.mark.parametrize(
    "change", ["lr = lr * 0.5", "if epoch > 0:\n        lr *= 0.5", "lr = max(lr, 0.01) if epoch else lr", "pass"]
)
@pytest.mark.parametrize("call", ["train(epoch, train_loader)", "train(epoch, loader=train_loader, lr=args.lr)"])
def test_a_parameter_begins_anew_in_every_epoch(change, call):
    result = check_same(text_of(change, call), "module")
    assert "divide_batches = False" not in result


def test_a_loader_that_is_only_sometimes_wrapped():
    check_same(text_of("if args.no_cuda:\n        loader = list(loader)"), "module")


def test_a_parameter_that_is_written_before_it_is_read_keeps_its_name():
    assert "_given" not in check_same(text_of("lr, total = 0.05, 0.0"), "module")


def test_a_function_that_is_handed_on_keeps_its_parameters():
    text = text_of("lr = lr * 0.5") + "\nprint(callable(train), (lambda f: 1)(train))\n"
    assert "lr_given" not in migrate_text(text).text


@pytest.mark.parametrize("epoch", ["i", "x", "e"])
def test_the_epoch_has_a_name_of_its_own_in_a_pass_that_means_something_else_by_it(epoch):
    result = check_same(text_of("pass", f"train({epoch}, train_loader)", epoch), "module")
    assert ("epoch = self.current_epoch" in result) is (epoch != "e")


EVALUATION = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(net, loader, device=None, scale=0):
    net.eval()
    CHANGE
    right = count = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            right += (net(x).argmax(1) == y).sum().item()
            count += y.numel()
    return right / count * scale


def train(net, loader, epochs, device):
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        net.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, CALL)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(30, 4), torch.randint(0, 2, (30,))), 8)
train(nn.Linear(4, 2), loader, 3, torch.device("cpu"))
"""
WHERE = "device = next(iter(net.parameters())).device"


@pytest.mark.parametrize(
    "change",
    [
        f"if not device:\n        {WHERE}",
        f"if isinstance(net, nn.Module):\n        if device is None:\n            {WHERE}",
        "scale = scale or torch.rand(1).item()",
        "if scale < 2:\n        scale += 1",
        "scale += 1",
    ],
)
@pytest.mark.parametrize(
    "call", ["evaluate(net, loader)", "evaluate(net, loader, device)", "evaluate(net, loader, scale=epoch)"]
)
def test_a_parameter_of_an_evaluation_beside_the_loop_begins_anew(change, call):
    """The step stands in the function that goes through the epochs, and calls nothing that trains."""
    check_same(EVALUATION.replace("CHANGE", change).replace("CALL", call), "module")


@pytest.mark.parametrize("change", ["pass", f"{WHERE}", "scale = 2"])
def test_one_that_it_leaves_or_writes_first_keeps_its_name(change):
    text = EVALUATION.replace("CHANGE", change).replace("CALL", "evaluate(net, loader)")
    assert "_given" not in check_same(text, "module")


def test_what_a_step_calls_keeps_the_names_of_its_parameters():
    deep = "def weighed(outs, y, gamma=0.8):\n    gamma = gamma * 0.5\n    loss = 0.0\n    for i in range(len(outs)):\n"
    deep += "        loss = loss + gamma**i * criterion(outs[i], y)\n    return loss\n\n\n"
    text = SCRIPT.replace("CHANGE", "pass").replace("EPOCH", "epoch").replace("CALL", "train(epoch, train_loader)")
    text = text.replace("def train(", f"{deep}def train(").replace(
        "criterion(model(x), y)", "weighed([model(x), model(x)], y)"
    )
    result = check_same(text, "module")
    assert "def weighed(outs, y, gamma=0.8):\n    gamma = gamma * 0.5\n" in result
