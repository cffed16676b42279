"""An epoch loop that is left at its top: the question moves to the end of the epoch before. Run before and after."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.stops import stop_before
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same, run

STALLED = (
    HEAD
    + """
stalled, best = 0, 9.
for epoch in range(8):
    # no better for two epochs
    if stalled == 2:
        break
    if stalled > 0:
        for group in optimizer.param_groups:
            group['lr'] *= 0.5
    total = 0.
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    stalled = 0 if total < best - 0.3 else stalled + 1
    best = min(best, total)
    print(epoch, f'{total:.6f}', stalled)
print(stalled)
"""
)

FLAG = STALLED.replace("    if stalled == 2:\n        break\n", "    if args.no_cuda: break  # nothing to train\n")
TOLD = STALLED.replace("        break\n", "        print('early stop')\n        break\n")
FLAG_TOLD = TOLD.replace("stalled == 2", "args.no_cuda")
LAST = TOLD.replace("range(8)", "range(1, 4)")  # stalls in what is the last
NEVER = {
    "stopped before the first": (STALLED.replace("stalled, best = 0", "stalled, best = 2"), ()),
    "a flag that is set": (FLAG, ("--no-cuda",)),
    "told before the first": (TOLD.replace("stalled, best = 0", "stalled, best = 2"), ()),
    "a flag that is set, and told": (FLAG_TOLD, ("--no-cuda",)),
}


IDS = ["a count that the epochs keep", "a flag", "told", "a flag, told", "told of no last epoch"]


@pytest.mark.parametrize("text", [STALLED, FLAG, TOLD, FLAG_TOLD, LAST], ids=IDS)
def test_the_loop_is_lifted_and_runs_the_same(text):
    check_same(text, "module")


@pytest.mark.parametrize(("text", "args"), NEVER.values(), ids=NEVER.keys())
def test_no_epoch_is_begun(text, args):
    result = migrate_text(text)
    before, after = run(text, *args), run(result.text, *args)
    assert result.plan == "module" and not before.losses and not after.losses and before.output == after.output


def test_what_cannot_change_is_asked_once():
    result = check_same(FLAG, "module")
    assert "# nothing to train\nif not (args.no_cuda):\n" in result and "should_stop" not in result


def test_what_is_told_is_told_where_another_epoch_follows():
    text = stop_before(Facts(TOLD))
    head = text[text.index("stalled, best") :].replace("print(epoch", "#\nprint(epoch").split("    if stalled > 0")[0]
    assert head == (
        "stalled, best = 0, 9.\n# no better for two epochs\nif stalled == 2:\n    print('early stop')\n"
        "else:\n    for epoch in range(8):\n    "
    )
    assert text.endswith(
        "        # no better for two epochs\n        if epoch + 1 < 8 and (stalled == 2):\n"
        "            print('early stop')\n            break\nprint(stalled)\n"
    )
    assert "early stop" not in run(migrate_text(LAST).text).output


def test_the_question_keeps_its_comment():
    result = check_same(STALLED, "module")
    assert "        # no better for two epochs\n        if self.stalled == 2:\n" in result


KEPT = {
    "the epoch is asked": STALLED.replace("if stalled == 2", "if epoch == 3"),
    "the epoch is read afterwards": STALLED + "print(epoch)\n",
    "something is called": STALLED.replace("if stalled == 2", "if int(stalled) == 2"),
    "more than is told": TOLD.replace("print('early stop')", "stalled = 9"),
    "told of epochs that have no end": TOLD.replace("range(8)", "itertools.count()"),
    "told of epochs that may be others": TOLD.replace("range(8)", "range(len(rows))"),
    "an else": STALLED.replace("        break\n", "        break\n    else:\n        print('on')\n"),
    "a round that ends early": STALLED.replace("    total = 0.\n", "    total = 0.\n    if stalled > 5: continue\n"),
    "not at the top": STALLED.replace("    # no better", "    print(epoch)\n    # no better"),
    "an else of the loop": STALLED.replace("print(stalled)", "else:\n    print('all')\nprint(stalled)"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_the_loop_stays_as_it_is(text):
    assert stop_before(Facts(text)) is None
