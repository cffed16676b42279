"""A pass over the data whose value is used in an expression, or in an f-string, gets a line of its own."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.hoist import hoist_passes

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = f"""{HEAD}
def train(model):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def test(model, factor=1):
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    return factor * right / 11


found = []
for epoch in range(2):
    train(model)
    USE
"""
HOISTED = {
    "print(test(model))": "test_result = test(model)\n    print(test_result)",
    "found.append(test(model))": "test_result = test(model)\n    found.append(test_result)",
    "print(f'{epoch}: {test(model):.4f}')": "test_result = test(model)\n    print(f'{epoch}: {test_result:.4f}')",
    "print('at', f'{test(model, factor=2):.2f}', epoch)": (
        "test_result = test(model, factor=2)\n    print('at', f'{test_result:.2f}', epoch)"
    ),
    "print('epoch ' f'{epoch}' f': {100 * test(model)}%')": (
        "test_result = test(model)\n    print('epoch ' f'{epoch}' f': {100 * test_result}%')"
    ),
    "text = f'{test(model)!r}'\n    print(text)": (
        "test_result = test(model)\n    text = f'{test_result!r}'\n    print(text)"
    ),
}


@pytest.mark.parametrize(("use", "result"), HOISTED.items())
def test_it_is_called_in_a_line_above(use, result):
    assert hoist_passes(Facts(SCRIPT.replace("USE", use))) == SCRIPT.replace("USE", result)


@pytest.mark.parametrize(
    "use", ["print(f'{epoch}: {test(model):.4f}')", "print('at', f'{test(model, factor=2):.2f}', epoch)"]
)
def test_it_is_a_step_of_the_module_and_prints_the_same(use):
    result = check_same(SCRIPT.replace("USE", use), "module")
    assert "def validation_step" in result and "def test" not in result


@pytest.mark.parametrize(
    "use",
    [
        "value = test(model)",
        "print(f'{test(model)=}')",
        "print(f'{time.time()} {test(model)}')",
        "print(f'{test(model)} test(model)')",
        "print(f'{test(model) if epoch else 0}')",
        "print([f'{test(model)}' for _ in range(2)])",
        "show = lambda: f'{test(model)}'",
        "print(f'{test(model)} {test(model)}')",
        "print('test(model)')",
        "if epoch: print(f'{test(model)}')",
        "x = time.time() + test(model)",
    ],
)
def test_others_stay(use):
    assert hoist_passes(Facts(SCRIPT.replace("USE", use))) is None
