"""A training that both branches of a condition call is called once, with arguments that the condition chooses."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.branches import call_in_one_place
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TRAIN = """
def train(epoch, net, loaders, notes, rate=1.0):
    net.train()
    for x, y in loaders[0]:
        optimizer.zero_grad()
        loss = rate * criterion(net(x), y)
        loss.backward()
        optimizer.step()
    if notes is not None:
        notes.append(loss.item())
    return loss.item()

"""
LOOP = """notes = []
first = args.epochs > 1
for epoch in range(args.epochs):
    if first:
        print('begins')
        # with notes
        last = train(epoch, model, [train_loader, test_loader], notes, rate=0.5)
        print(last, notes)
    else:
        last = train(epoch, model, [train_loader, None], None, rate=1.0)
print(last)
"""
SCRIPT = HEAD + TRAIN + LOOP


@pytest.mark.parametrize("epochs", ["1", "2"])
def test_it_runs_the_same(epochs):
    assert "def train(" not in check_same(SCRIPT, "module", "--epochs", epochs)


def test_what_only_one_branch_does_stays_around_the_call():
    assert call_in_one_place(Facts(SCRIPT)).endswith("""
    if first:
        print('begins')
    # with notes
    last = train(epoch, model, [train_loader, test_loader if first else None], \
notes if first else None, rate=0.5 if first else 1.0)
    if first:
        print(last, notes)
print(last)
""")


OTHERS = LOOP.replace("        print('begins')\n        # with notes\n", "").replace("        print(last, notes)\n", "")


def test_what_only_the_other_branch_does():
    text = call_in_one_place(Facts(HEAD + TRAIN + OTHERS.replace("    else:\n", "    else:\n        print(epoch)\n")))
    assert "    if not (first):\n        print(epoch)\n    last = train(epoch, " in text


def test_a_value_that_nothing_takes():
    text = call_in_one_place(Facts(HEAD + TRAIN + OTHERS.replace("last = train", "train")))
    assert "\n    train(epoch, model, " in text and "if first:" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if first:", "if torch.rand(1) > 0.5:"),  # asking draws
        ("if first:", "if not notes:"),  # the call may change what is asked
        ("    if first:", "    first = epoch > 0\n    if first:"),  # it has another answer below
        ("if first:", "if args.first:"),
        ("first = args.epochs > 1", "args.first = args.epochs > 1"),
        (
            "        last = train(epoch, model, [train_loader, None]",
            "        lost = train(epoch, model, [train_loader, None]",
        ),
        ("None, rate=1.0)", "notes=None, rate=1.0)"),  # other parameters
        ("None, rate=1.0)", "None, **{})"),
        ("last = train(epoch, model, [train_loader, test", "last = 1 + train(epoch, model, [train_loader, test"),
        ("print(last)\n", "train(9, model, [train_loader], None)\n"),  # a third call
    ],
)
def test_it_stays_where_it_may_be_another_program(old, new):
    assert old in LOOP
    loop = LOOP.replace(old, new)
    if "args.first" in new:
        loop = "args.first = True\n" + loop.replace("if first:", "if args.first:").replace(
            "epoch in", "epoch, args.first in"
        )
    assert call_in_one_place(Facts(HEAD + TRAIN + loop)) is None


def test_what_rank_0_alone_has():
    text = HEAD + "import torch.distributed as dist\ndist.init_process_group('gloo')\nrank = dist.get_rank()\n" + TRAIN
    text += LOOP.replace("if first:", "if rank == 0:").replace("first = args.epochs > 1\n", "")
    result = migrate_text(text)
    assert result.plan == "module" and "notes if is_global_zero() else None" in result.text
    assert migrate_text(result.text).text == result.text
