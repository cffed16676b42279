"""An optimizer that every epoch makes anew: one that is given a new one's state. Run before and after."""

import pytest
import torch
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.renewed import keep_one_optimizer
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same, run

BARE = HEAD[: HEAD.index("optimizer = ")]
IN_A_FUNCTION = (
    BARE
    + """
def rate(epoch):
    return args.lr * 0.5 ** epoch

def train(epoch):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate(epoch), momentum=0.9, weight_decay=args.lr / 100)
    total = 0.
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, optimizer.param_groups[0]['lr'], f'{total:.6f}')

for epoch in range(1, 4):
    train(epoch)
"""
)

IN_MAIN = IN_A_FUNCTION.replace("def train(epoch):", "def train(net, epoch):").replace("model.", "net.")
IN_MAIN = IN_MAIN.replace("model(x)", "net(x)").replace(
    "for epoch in range(1, 4):\n    train(epoch)\n",
    "def main():\n    for epoch in range(1, 4):\n        train(model, epoch)\n\nmain()\n",
)
IN_PLACE = IN_A_FUNCTION[: IN_A_FUNCTION.index("def train(epoch)")] + (
    "for epoch in range(1, 4):\n"
    + IN_A_FUNCTION[IN_A_FUNCTION.index("    model.train()") : IN_A_FUNCTION.index("for epoch in range(1, 4)")]
)
ADAM = "torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))"
MADE = "torch.optim.SGD(model.parameters(), lr=rate(epoch), momentum=0.9, weight_decay=args.lr / 100)"
GROUPS = "torch.optim.Adam([{'params': model[0].parameters(), 'lr': rate(epoch)}, {'params': model[3].parameters()}])"

LIFTED = {
    "in a function": IN_A_FUNCTION,
    "in a function that main() calls": IN_MAIN,
    "in the epoch loop": IN_PLACE,
    "the parameters that are trained": IN_A_FUNCTION.replace(MADE, ADAM),
    "attributes": IN_A_FUNCTION.replace("args.lr / 100", "args.lr"),
}


@pytest.mark.parametrize("text", LIFTED.values(), ids=LIFTED.keys())
def test_it_is_lifted_and_runs_the_same(text):
    result = migrate_text(text)
    assert result.plan == "module" and migrate_text(result.text).text == result.text
    before, after = run(text), run(result.text)
    assert before.losses and after.losses == before.losses and after.output == before.output
    assert all(map(torch.equal, before.parameters[-4:], after.parameters[-4:]))  # of the last optimizer
    assert ".load_state_dict(torch.optim." in result.text and "divide_batches" not in result.text


def test_above_the_epochs_it_has_what_is_plain_there():
    text = IN_A_FUNCTION.replace("args.lr / 100", "args.lr")
    shaped = keep_one_optimizer(Facts(text))
    assert "\noptimizer = torch.optim.SGD(model.parameters(), momentum=0.9, weight_decay=args.lr)\nfor epoch" in shaped


def test_a_schedule_of_the_epoch_is_none_of_the_constructors():
    text = IN_PLACE.replace("    total = 0.\n", "    total = 0.\n    decay = StepLR(optimizer, 1)\n")
    text = text.replace("        optimizer.step()\n", "        optimizer.step()\n        decay.step()\n")
    text = text.replace(
        "        loss.backward()\n", "        total = total * x.max().item()\n        loss.backward()\n"
    )
    assert "super().__init__()" in (result := check_same(text, "manual")) and "self.decay = decay" not in result


LOCAL = "    parts = list(model.parameters())\n    optimizer = "
KEPT = {
    "groups by index": IN_A_FUNCTION.replace(MADE, GROUPS),
    "of its own": IN_A_FUNCTION.replace("    optimizer = ", LOCAL).replace("SGD(model.parameters()", "SGD(parts"),
    "a schedule of the epoch": IN_A_FUNCTION.replace("total = 0.", "total, steps = 0., StepLR(optimizer, 1)"),
    "frozen in between": IN_A_FUNCTION.replace("    model.train()", "    model[0].requires_grad_(epoch > 1)"),
    "another model in each epoch": IN_PLACE.replace("    model.train()", "    model = nn.Linear(5, 3)"),
    "handed on": IN_A_FUNCTION.replace("    print(", "    kept = optimizer\n    print("),
    "in the step": IN_A_FUNCTION.replace("        optimizer.zero_grad()", f"        optimizer = {MADE}"),
    "a name of the script": IN_A_FUNCTION.replace("for epoch in range", "optimizer = None\nfor epoch in range"),
    "one for all epochs": HEAD + "\nfor epoch in range(2):\n    for x, y in train_loader:\n"
    "        optimizer.zero_grad()\n        criterion(model(x), y).backward()\n        optimizer.step()\n",
}  # fmt: skip


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_it_stays_as_it_is(text):
    assert keep_one_optimizer(Facts(text)) is None
