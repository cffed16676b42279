"""What is kept of a model's tensors before a Trainer places it is told of: they are its weights no more afterwards."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD, NESTED
from tests.migrate.running import check_same

BEGUN = "\nfor epoch in range(args.epochs):"
CLASS = """
class Average:
    def __init__(self, model):
        self.params = list(model.state_dict().values())

    def step(self):
        for p in self.params:
            if p.dtype == torch.float32:
                p.mul_(0.99)

average = Average(model)
"""


def told(text):
    notes = [n for n in migrate_text(text).attention if n.code == "PTM105" and "only until the Trainer" in n.message]
    return [n.line for n in notes]


def within(made, step=""):
    text = NESTED.replace(BEGUN, "\n" + made + BEGUN)
    return text.replace("optimizer.step()\n", f"optimizer.step()\n        {step}\n") if step else text


@pytest.mark.parametrize(
    ("made", "step"),
    [
        (CLASS, "average.step()"),
        (CLASS.replace("list(model.state_dict().values())", "[p.data for p in model.parameters()]"), "average.step()"),
        (CLASS.replace("model.state_dict().values()", "model.buffers()"), "average.step()"),
        ("kept = dict(model.state_dict())\n", "for v in kept.values():\n            v.mul_(1)"),
        ("kept = {n: p.detach() for n, p in model.named_parameters()}\n", "kept['0.bias'].mul_(1)"),
        ("first = model[0].weight.data\n", "first.clamp_(-1, 1)"),
        ("row = model[0].weight.detach()[0]\n", "row.zero_()"),
        ("flat = model[0].bias.data.view(-1)\n", "flat.mul_(1)"),
    ],
)
def test_what_is_kept_above_the_loop(made, step):
    assert len(told(within(made, step))) == 1


@pytest.mark.parametrize(
    ("made", "step"),
    [
        (CLASS.replace("average = Average(model)\n", ""), ""),  # nothing makes one
        (CLASS.replace("model.state_dict().values()", "model.parameters()"), "average.step()"),  # which stay its own
        (CLASS.replace("list(model.state_dict().values())", "len(model.state_dict())"), ""),
        ("state = model.state_dict()\nstate.update({})\nmodel.load_state_dict(state)\n", ""),
        ("first = model.state_dict()\n", "model.load_state_dict(first)"),
        ("names = list(model.state_dict().keys())\n", "print(names[0])"),
        ("model.load_state_dict(model.state_dict())\n", ""),
        ("own = model[0].weight\n", "own.data.clamp_(-1, 1)"),  # the parameter itself
        ("norm = model[0].weight.data.norm()\n", "print(norm)"),
        ("size = model[0].weight.shape[0]\n", "print(size)"),
        ("first = model[0].weight.data\nprint(first)\n", ""),
        ("kept = model.state_dict()\nprint(len(kept))\n", ""),
    ],
)
def test_what_is_not_kept_or_stays_the_models_own(made, step):
    assert told(within(made, step)) == []


def test_while_it_trains():
    assert told(within("", "kept = model.state_dict()\n        kept['0.bias'].mul_(1)")) == []


def test_the_run_is_the_same():
    check_same(within(CLASS, "average.step()"), "manual")


IN_FUNCTIONS = (
    HEAD
    + CLASS.replace("average = Average(model)\n", "")
    + """
def train(average):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        average.step()
    print(loss.item())


def main():
    BEFORE
    for epoch in range(args.epochs):
        train(average)
    AFTER


average = None
main()
"""
)


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("average = Average(model)", "pass", 1),
        ("average = make()", "pass", 1),
        ("average = Other()", "average = Average(model)", 0),
    ],
)
def test_before_a_function_that_trains_is_called(before, after, count):
    made = "def make():\n    return Average(model)\n\n\ndef main" if "make" in before else "def main"
    text = IN_FUNCTIONS.replace("def main", made).replace("BEFORE", before).replace("AFTER", after)
    assert len(told(text)) == count
