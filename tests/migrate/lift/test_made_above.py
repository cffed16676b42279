"""A function that is defined above a loop over batches and called in it is in another method: the loop is kept."""

import pytest

from tests.migrate.lift.test_same_run import FUNCTIONS
from tests.migrate.running import check_same

SEEN = "{m}def seen(v):\n{m}    print(v.item())\n\n"
CALLED = FUNCTIONS.replace("        total += loss.item()\n", "        total += loss.item()\n        seen(loss)\n")
TRAIN = CALLED.replace("def train(epoch):\n", "def train(epoch):\n" + SEEN.format(m="    "))
EPOCHS = CALLED.replace("    total = train(epoch)\n", SEEN.format(m="    ") + "    total = train(epoch)\n")


@pytest.mark.parametrize("text", [TRAIN, EPOCHS])
def test_the_loop_is_kept(text):
    assert text != CALLED
    assert "def train(epoch):" in check_same(text, "loop")


STEP = CALLED.replace("        total += loss", SEEN.format(m="        ") + "        total += loss")
BOTH = STEP.replace("    for batch in train_loader", SEEN.format(m="    ") + "    for batch in train_loader")
ABOVE = CALLED.replace("def train(epoch):\n", SEEN.format(m="") + "\ndef train(epoch):\n")


@pytest.mark.parametrize(("text", "plan"), [(STEP, "module"), (BOTH, "manual"), (ABOVE, "module")])
def test_what_the_step_or_the_script_defines_is_lifted(text, plan):
    assert text != CALLED
    check_same(text, plan)
