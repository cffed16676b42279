"""Arguments that a dictionary holds, and a call spreads: written in the call, and the same run."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.spread import write_arguments

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TRAIN = """
def train(model, loader, optimizer, criterion, scale=1.0):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y) * scale
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total

"""
CALL = """given = dict(model=model, loader=train_loader, optimizer=optimizer,
             criterion=criterion, scale=args.lr)
for epoch in range(2):
    total = train(**given)
    print(f'{total:.6f}')
"""
DISPLAY = CALL.replace(
    """dict(model=model, loader=train_loader, optimizer=optimizer,
             criterion=criterion, scale=args.lr)""",
    "{'model': model, 'loader': train_loader, 'optimizer': optimizer, 'criterion': criterion}",
)
MAIN = "def main():\n" + "".join(f"    {line}\n" for line in CALL.splitlines()) + "\n\nmain()\n"
SAME = {
    "dict()": CALL,
    "a display": DISPLAY,
    "beside others": DISPLAY.replace("**given", "**given, scale=2.0"),
    "in a function": MAIN,
}


@pytest.mark.parametrize("call", SAME.values(), ids=SAME)
def test_it_becomes_a_module_that_runs_the_same(call):
    result = check_same(HEAD + TRAIN + call, "module")
    assert "given" not in result


def test_what_becomes_of_it():
    text = write_arguments(Facts(HEAD + TRAIN + CALL))
    assert text == HEAD + TRAIN + CALL[CALL.index("for epoch") :].replace(
        "**given",
        "model=model, loader=train_loader, optimizer=optimizer, criterion=criterion, scale=args.lr",
    )


UNCHANGED = {
    "alone in a block": CALL.replace("given = ", "if args.lr:\n    given = "),
    "what a function sets": MAIN + "\n\ndef other():\n    global criterion\n    criterion = None\n",
    "read elsewhere": CALL + "print(len(given))\n",
    "changed": CALL.replace("for epoch", "given['scale'] = 2.0\nfor epoch"),
    "given again": CALL.replace("for epoch", "given = given\nfor epoch"),
    "what has another value there": CALL.replace("for epoch", "model = nn.Linear(5, 3)\nfor epoch"),
    "an option that changes": CALL.replace("    total", "    args.lr = 0.1\n    total"),
    "something that is computed": CALL.replace("args.lr", "float(args.lr)"),
    "keys that do not show": CALL.replace("dict(", "dict(**other, "),
    "keys that are no names": DISPLAY.replace("'model'", "'the model'"),
    "keys that are computed": DISPLAY.replace("'model'", "str('model')"),
    "to what is not here": CALL.replace("train(**", "elsewhere(**"),
    "to a class": CALL.replace("train(**", "Net(**"),
    "a parameter": "def main(given):\n    train(**given)\n",
    "in another function": CALL.replace("for epoch", "def more():\n    return train(**given)\nfor epoch"),
    "an own dict()": "def dict(**given): return given\n" + CALL,
    "a key twice": DISPLAY.replace("'loader'", "'model'"),
    "the whole of a list": CALL.replace("dict(", "list("),
}


@pytest.mark.parametrize("call", UNCHANGED.values(), ids=UNCHANGED)
def test_others_stay(call):
    assert write_arguments(Facts(HEAD + TRAIN + call)) is None
