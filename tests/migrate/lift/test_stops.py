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
NEVER = {
    "stopped before the first": (STALLED.replace("stalled, best = 0", "stalled, best = 2"), ()),
    "a flag that is set": (FLAG, ("--no-cuda",)),
}


@pytest.mark.parametrize("text", [STALLED, FLAG], ids=["a count that the epochs keep", "a flag"])
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


def test_the_question_keeps_its_comment():
    result = check_same(STALLED, "module")
    assert "        # no better for two epochs\n        if self.stalled == 2:\n" in result


KEPT = {
    "the epoch is asked": STALLED.replace("if stalled == 2", "if epoch == 3"),
    "the epoch is read afterwards": STALLED + "print(epoch)\n",
    "something is called": STALLED.replace("if stalled == 2", "if int(stalled) == 2"),
    "more than a break": STALLED.replace("        break\n", "        print('stop')\n        break\n"),
    "an else": STALLED.replace("        break\n", "        break\n    else:\n        print('on')\n"),
    "a round that ends early": STALLED.replace("    total = 0.\n", "    total = 0.\n    if stalled > 5: continue\n"),
    "not at the top": STALLED.replace("    # no better", "    print(epoch)\n    # no better"),
    "an else of the loop": STALLED.replace("print(stalled)", "else:\n    print('all')\nprint(stalled)"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_the_loop_stays_as_it_is(text):
    assert stop_before(Facts(text)) is None
