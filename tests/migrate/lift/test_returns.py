"""Loops that are left by `return`: it stands below them afterwards. Run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.returns import return_below

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

EPOCHS = (
    HEAD
    + """
def fit(most):
    steps, model.best = 0, 9.
    for epoch in range(4):
        total = 0.
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(epoch, f'{total:.6f}')
        if steps > most:
            print('enough')
            return
    print('through', steps)


print(fit(10))
print(fit(1000))
"""
)
BATCHES = EPOCHS.replace(
    "            steps += 1\n", "            steps += 1\n            if steps > most:\n                return model\n"
).replace("            return\n", "            return model\n")
LAST = EPOCHS.replace("    print('through', steps)\n", "")
VALUE = EPOCHS.replace("            return\n", "            return steps, total\n")
SAME_VALUE = EPOCHS.replace("            return\n", "            return steps\n").replace(
    "    print('through', steps)\n", "    return steps\n"
)


@pytest.mark.parametrize(
    "text", [EPOCHS, LAST, VALUE, SAME_VALUE], ids=["bare", "the end", "a value", "the same value"]
)
def test_the_loop_is_lifted_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "self.trainer.should_stop = True" in result


def test_out_of_the_batches():
    text = BATCHES.replace("print(fit(10))\nprint(fit(1000))", "print(fit(10) is model, fit(1000))")
    result = check_same(text, "module")
    assert "self.trainer.stop_epoch()" in result and "if stopped:\n        return model\n" in result


@pytest.mark.parametrize("text", [LAST, SAME_VALUE], ids=["nothing below", "the same below"])
def test_no_name_where_the_end_is_the_same(text):
    shaped = return_below(Facts(text))
    assert shaped is not None and "stopped" not in shaped and "            break\n" in shaped


def test_a_name_that_is_taken():
    assert "stopped_ = True\n            break" in return_below(Facts(EPOCHS.replace("most", "stopped")))


RETURN, PRINT, LOOP = "            return\n", "    print('through', steps)\n", "    for epoch in range(4):\n"
INNER = "            for name in 'ab':\n                if name in 'b':\n                    return\n"
STAYS = {
    "two values": BATCHES.replace("return model", "return steps", 1),
    "a value that is computed": EPOCHS.replace(RETURN, "            return steps * 2\n"),
    "a loop of its own": EPOCHS.replace(RETURN, INNER),
    "a line that is shared": EPOCHS.replace("print('enough')\n            return", "print('enough'); return"),
    "an else of the loop": EPOCHS.replace(PRINT, f"    else:\n    {PRINT}"),
    "a loop in another": EPOCHS.replace(LOOP, f"    for _ in range(1):\n  {LOOP}"),
    "no return": EPOCHS.replace(RETURN, "            break\n"),
    "a function's own": EPOCHS.replace(RETURN, "            def one():\n                return 1\n"),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS.keys())
def test_it_stays(text):
    compile(text, "script", "exec")
    assert return_below(Facts(text)) is None


GIVEN = """
import torch
from torch import nn


def train_epoch(loader, model, optimizer, scale=2):
    loss_sum = 0.0
    for x in loader:
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * x.size(0)
    return {'loss': loss_sum / len(loader.dataset) * scale}


torch.manual_seed(0)
loaders = {'train': torch.utils.data.DataLoader(torch.ones(8, 3), batch_size=4)}
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    result = train_epoch(loaders['train'], net, optimizer)
    print(result['loss'])
"""


def test_what_is_returned_reads_what_the_call_gave():
    assert "loader = self.loaders['train']\n" in check_same(GIVEN, "module")
