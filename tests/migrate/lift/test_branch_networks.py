"""Networks that a branch makes, which the loop's own branches work with: the Module has them, or nothing places any."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

SCRIPT = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Linear(4, 2)


second = "--second" in sys.argv
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), batch_size=4)
model = nn.Linear(4, 2).to(device)
if second:
    MADE
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def moving_average(kept, net):
    for a, b in zip(kept.parameters(), net.parameters()):
        a.data.mul_(0.5).add_(b.data, alpha=0.5)


for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        if second:
            STEP
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if second:
        AFTER
    print(epoch, loss.item())
"""
PASS = ("pass", "pass")
CALLED = ("loss = loss + nn.functional.mse_loss(out, other(x))", "pass")
BY_FUNCTION = ("loss = loss + extra(out, x)", "pass")
EXTRA = "def extra(out, x):\n    return nn.functional.mse_loss(out, other(x))\n\n\n"
OF_A_LIST = ("loss = loss + nn.functional.mse_loss(out, other[0](x))", "pass")
AVERAGED = ("pass", "moving_average(other, model); print(other.weight.sum().item())")
MOVED = "other = nn.Linear(4, 2).to(device)"


def script(made, step, after):
    return SCRIPT.replace("MADE", made).replace("STEP", step).replace("AFTER", after)


TEXTS = {
    "in the step": script(MOVED, *CALLED),
    "in a function of the step": script(MOVED, *BY_FUNCTION).replace("def moving", f"{EXTRA}def moving"),
    "after the epoch": script(
        "other = nn.Linear(4, 2)\n    other.cuda() if torch.cuda.is_available() else None", *AVERAGED
    ),
    "of two branches": script(f"{MOVED}\nelif len(sys.argv) > 1:\n    {MOVED}", *CALLED),
    "made by a function": script("other = build().to(device)", *CALLED),
    "in a list": script("other = [nn.Linear(4, 2).to(device)]", *OF_A_LIST),
    "in a dictionary": script("other = {0: nn.Linear(4, 2).to(device)}", *OF_A_LIST),
    "switched": script(f"{MOVED}\n    other.eval()", *CALLED),
    "read after it alone": script(MOVED, *PASS) + "if second:\n    print(other.weight.sum().item())\n",
}


@pytest.mark.parametrize("asked", [(), ("--second",)], ids=["not made", "made"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_module_has_them_and_none_where_they_were_not_made(tmp_path, text, asked):
    result = check_on_card(tmp_path, text, *asked)
    assert "\nother = None\nif second:" in result and "self.other = other" in result and ".to(device)" not in result


@pytest.mark.parametrize("asked", [(), ("--second",)], ids=["not made", "made"])
def test_a_list_that_the_script_sets_to_none_first(tmp_path, asked):
    text = TEXTS["in a list"].replace("if second:\n    other", "other = None\nif second:\n    other")
    assert "in enumerate(other or ()):" in check_on_card(tmp_path, text, *asked)


def test_the_same_on_the_cpu():
    check_same(TEXTS["in the step"], "module", "--second")


STAY = {
    "a number": script("other = 0.5", "loss = loss * other", "pass"),
    "a tensor": script("other = torch.ones(1).to(device)", "loss = loss * other", "pass"),
    "an optimizer": script("other = torch.optim.SGD(model.parameters(), lr=0.1)", "other.zero_grad()", "pass"),
    "a text": script("other = 'second'", "pass", "print(other)"),
}


@pytest.mark.parametrize("text", STAY.values(), ids=STAY)
def test_what_is_no_network_or_not_the_loops_stays_a_global(tmp_path, text):
    result = check_on_card(tmp_path, text, "--second")
    assert "other = None" not in result and "self.other" not in result


def test_one_that_every_run_makes_needs_no_none():
    text = script(MOVED, *CALLED).replace("if second:\n    other", "other", 1)
    assert "self.other = other" in migrate_text(text).text and "other = None" not in migrate_text(text).text
