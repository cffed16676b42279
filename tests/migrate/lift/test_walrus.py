"""What a walrus names in the batch loop has a line of its own in the result."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.walrus import name_before
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

SCRIPT = (
    HEAD
    + """
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        STEP
        optimizer.step()
    print(epoch, loss.item())
"""
)


@pytest.mark.parametrize(
    "step",
    [
        "(loss := criterion(model(x), y)).backward()",
        "loss = criterion((out := model(x)), y) + 0 * out.sum()\n        loss.backward()",
        "(loss := criterion(\n            model(x), y\n        )).backward()",
    ],
)
def test_the_same_run(step):
    assert ":=" not in check_same(SCRIPT.replace("STEP", step), "module")


@pytest.mark.parametrize(
    "step",
    [
        "if (loss := criterion(model(x), y)) > 1e9:\n            break\n        loss.backward()",
        "if not (loss := criterion(model(x), y)).isfinite():\n            continue\n        loss.backward()",
    ],
)
def test_the_same_run_where_a_branch_asks_for_it(step):
    assert ":=" not in check_same(SCRIPT.replace("STEP", step), "manual")


@pytest.mark.parametrize(
    "source",
    [
        "(a := f())",  # in no loop
        "for x in xs:\n    g(h(), a := f())",  # h() comes first
        "for x in xs:\n    b = x and (a := f())",
        "for x in xs:\n    if x:\n        pass\n    elif (a := f()) > 1:\n        pass",
        "for x in xs:\n    if 0 < x < (a := f()):\n        pass",
        "for x in xs:\n    if g() > (a := f()):\n        pass",
        "for x in xs:\n    if x and (a := f()):\n        pass",
        "for x in xs:\n    while (a := f()) > 1:\n        pass",
        "for x in xs:\n    b = [a := f() for y in x]",
        "for x in xs:\n    b = lambda: (a := f())",
        "for x in xs: b = (a := f())",
    ],
)
def test_what_stays(source):
    assert name_before(Facts(source + "\n")) is None


ASKS = "if (n := x.size(0)) and n > 3:\n            x = x * 2\n        "


def test_a_name_of_a_condition_that_is_read_below_keeps_the_loop():
    text = SCRIPT.replace("STEP", f"{ASKS}loss = f(n, x, y)\n        loss.backward()")
    text = text.replace("print(epoch, ", "print(epoch, n, ").replace("f(n, x, y)", "criterion(model(x), y) * n / n")
    result = migrate_text(text)
    assert result.plan == "loop" and not [n for n in result.attention if "failed" in n.message]
    assert [n.message for n in result.attention if n.code == "PTM701"] == [
        "the loop is kept: `n := x.size(0)` in an expression gives a name that other methods read"
    ]
