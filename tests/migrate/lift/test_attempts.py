"""A `try` around a pass over the data that closes something and raises again: opened, and the same run."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.attempts import open_attempts

from tests.migrate.lift.test_contexts import MANAGERS, evaluated, evaluating, training
from tests.migrate.running import check_same

RAISES = "try:\n    PASS\nexcept KeyboardInterrupt:\n    bar.close()\n    raise"
BAR = RAISES.replace("    PASS", "    with tqdm(train_loader) as bar:\n        PASS")
SAME = {
    "a bar": training(f"{BAR}\nbar.close()").replace("in train_loader:", "in bar:"),
    "raises again": training(RAISES),
    "only raises": training(RAISES.replace("    bar.close()\n", "")),
    "closes at the end": training("log = open('/dev/null', 'a')\ntry:\n    PASS\nfinally:\n    log.close()"),
    "an evaluation": evaluated("try:\n    with torch.no_grad():\n        PASS\nexcept RuntimeError:\n    raise"),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_it_becomes_a_module_that_runs_the_same(text):
    result = check_same(text, "module")
    assert result.count("try:") == MANAGERS.count("try:")


def test_what_it_closes_at_its_end_is_closed_behind_the_pass():
    text = open_attempts(Facts(SAME["closes at the end"]))
    assert "        total += loss.item()\n    log.close()\n" in text


FINALLY = "try:\n    PASS\nfinally:\n    log.close()"
UNCHANGED = {
    "left for the next epoch before it closes": training(FINALLY.replace("PASS", "PASS\n    if total > 9: continue")),
    "a value before it closes": evaluating(FINALLY.replace("PASS", "PASS\n    return right / n"), "# over"),
    "it goes on": training("try:\n    PASS\nexcept KeyboardInterrupt:\n    print('stopped')"),
    "another is raised": training("try:\n    PASS\nexcept KeyboardInterrupt:\n    raise SystemExit(1)"),
    "more than closing": training("try:\n    PASS\nexcept KeyboardInterrupt:\n    print('stopped')\n    raise"),
    "more is called": training("try:\n    PASS\nfinally:\n    told('x').close()"),
    "what is said at the end": training("try:\n    PASS\nfinally:\n    print('over')"),
    "only if nothing was raised": training(f"{RAISES}\nelse:\n    print('well')"),
    "around the epochs": training("PASS").replace("\nfor epoch", "\ntry:\n  for epoch") + "except KeyError:\n  raise\n",
    "around a step": training("PASS").replace(
        "        loss.backward()",
        "        try:\n            loss.backward()\n        except KeyError:\n            raise",
    ),
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_others_stay(text):
    compile(text, "<string>", "exec")
    assert open_attempts(Facts(text)) is None
