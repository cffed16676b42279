"""Comments below loops that are dissolved stay; those above a statement that goes go with it."""

import re

import pytest

from tests.migrate.running import check_same

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=8)
valid = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
BATCHES = """\
    # A above the loop
    for x, y in loader:
        # B first
        out = model(x)
        loss = nn.functional.mse_loss(out, y)
        # C above zero_grad
        optimizer.zero_grad()

        # D above backward
        loss.backward()
        # E above step
        optimizer.step()
        # F below step

        # G last
    # H below the loop
"""
EVALUATION = """\

    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in valid:
            total += nn.functional.mse_loss(model(x), y).item()
            # I last
        # J below that loop
    # K below no_grad

    # L above print
    print(epoch, total)
    # M at the end
"""
SHOWN = "\n    # L above print\n    print(epoch, loss.item())\n    # M at the end\n"
FUNCTION = "def train():\n" + BATCHES + "\n    # N above return\n    return loss.item()\n    # V below return\n\n\n"
CALLED = "    # O above the call\n    last = train()\n    # P below the call\n\n    # Q above print\n    print(last)\n"
EPOCHS = "# Z above the epochs\nfor epoch in range(2):\n"
SCRIPTS = {
    "below the batches": HEAD + EPOCHS + BATCHES + SHOWN + "# X below the epochs\n",
    "nothing below the batches": HEAD + EPOCHS + BATCHES + "# X below the epochs\nprint('done')\n",
    "an evaluation": HEAD + EPOCHS + BATCHES + EVALUATION,
    "a function": HEAD + FUNCTION + EPOCHS + CALLED,
    "a function without a value": HEAD + "def train():\n" + BATCHES + "\n\n" + EPOCHS + "    train()\n    # P below\n",
    "nothing below them but what is deleted": HEAD + EPOCHS + BATCHES + "\n    del out\n",
    "what is deleted": HEAD + EPOCHS + BATCHES + "\n    del out\n    # R below del\n" + SHOWN,
}
GONE = {"C above zero_grad", "D above backward", "E above step"}


def comments(text):
    return [c.strip() for c in re.findall(r"# ([A-Z] .*)", text)]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_those_below_stay_once(script):
    after = comments(check_same(script, "module"))
    assert sorted(after) == sorted(set(comments(script)) - GONE)


def test_they_stand_above_what_comes_next():
    text = check_same(SCRIPTS["below the batches"], "module")
    hook = text[text.index("def on_train_epoch_end") :]
    assert comments(hook[: hook.index("trainer = ")])[:3] == ["H below the loop", "L above print", "M at the end"]


STEP = """\
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()
    # S below the return


"""


@pytest.mark.parametrize("each", ["total += step(x, y)", "x = x * 2\n        total += step(x, y)"])
def test_those_that_end_a_function_go_with_it(each):
    """They stood at the module's level, with their margin."""
    text = (
        HEAD
        + STEP
        + f"for epoch in range(2):\n    total = 0\n    for x, y in loader:\n        {each}\n    print(total)\n"
    )
    result = check_same(text, "module")
    assert comments(result) == ["S below the return"]
    step = result[result.index("def training_step") :]
    assert comments(step[: step.index("def on_train_epoch_end")]) == ["S below the return"]
