"""A `with` around a pass over the data: entered before it and left behind it, and the same run on one and on two."""

import re
from textwrap import indent

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.contexts import enter_by_hand
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

MANAGERS = """
import contextlib, warnings
from tqdm import tqdm

class Timer:
    def __enter__(self):
        self.begun = True
        return self
    def __exit__(self, *error):
        print('over', self.begun)

@contextlib.contextmanager
def told(name):
    print('begin', name)
    yield name
    print('end', name)

@contextlib.contextmanager
def forgiving():
    try:
        yield
    except ValueError:
        print('never mind')

class Forgiving(Timer):
    def __exit__(self, *error):
        return True
"""
STEP = """for x, y in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.item()
"""
EVALUATION = """for x, y in test_loader:
    right += (model(x).argmax(1) == y).sum().item()
    n += len(x)
"""


def placed(lines, what):
    """`what` where the lines say PASS."""
    found = []
    for line in lines.split("\n"):
        by = line[: len(line) - len(line.lstrip())]
        found.append(indent(what, by).rstrip("\n") if line.strip() == "PASS" else line)
    return "\n".join(found) + "\n"


def training(lines):
    body = f"total = 0.0\n{placed(lines, STEP)}print(f'{{epoch}} {{total:.6f}}')\n"
    return f"{HEAD}{MANAGERS}\nfor epoch in range(2):\n{indent(body, '    ')}"


def evaluated(lines):
    """In the epoch itself, below a training pass."""
    body = f"right = n = 0\n{placed(lines, EVALUATION)}print(f'{{right / n:.4f}}')\n"
    return training("PASS") + indent(body, "    ")


def evaluating(lines, more="return right / n", above=""):
    """In a function that the epoch calls."""
    f = f"{above}def test(model):\n    right = n = 0\n{indent(placed(lines, EVALUATION), '    ')}    {more}\n"
    return (
        training("PASS").replace("\nfor epoch", f"\n{f}\nfor epoch", 1)
        + "    acc = test(model)\n    print(f'{acc:.4f}')\n"
    )


def called(lines):
    f = f"def train(model):\n    total = 0.0\n{indent(STEP, '    ')}    return total\n"
    body = f"{placed(lines, 'total = train(model)')}print(f'{{epoch}} {{total:.6f}}')\n"
    return f"{HEAD}{MANAGERS}\n{f}\nfor epoch in range(2):\n{indent(body, '    ')}"


NUMBER = r"\d+\.\d+"
HALF = "torch.autocast('cpu', dtype=torch.bfloat16)"
SAME = {
    "a timer": training("with Timer() as t:\n    PASS\nprint(t.begun)"),
    "no name": training("with told('x'):\n    PASS"),
    "two": training("with Timer() as t, told('y') as name:\n    PASS\n    print(name)"),
    "one in the other": training("with Timer() as t:\n    with told('y'):\n        PASS"),
    "more in it": training("with Timer():\n    factor = 2\n    PASS\n    total *= factor"),
    "a file": training("with open('/dev/null', 'a') as log:\n    PASS\n    log.write(str(total))"),
    "gradients": training("with torch.enable_grad():\n    PASS"),
    "gradients, set": training("with torch.set_grad_enabled(True):\n    PASS"),
    "autocast around steps": training(f"with {HALF}:\n    PASS"),
    "anomalies": training("with torch.autograd.set_detect_anomaly(True):\n    PASS"),
    "a function": called("with Timer() as t:\n    PASS"),
    "an evaluation": evaluated("with Timer(), torch.no_grad():\n    PASS"),
    "an evaluation in autocast": evaluated(f"with torch.no_grad(), {HALF}:\n    PASS"),
    "autocast within": evaluated(f"with torch.no_grad():\n    with {HALF}:\n        PASS"),
    "autocast without": evaluated(f"with {HALF}:\n    with torch.no_grad():\n        PASS"),
    "an evaluation's bar": evaluated("with torch.no_grad(), tqdm(test_loader) as bar:\n    PASS").replace(
        "in test_loader:", "in bar:"
    ),
    "a function that evaluates": evaluating(f"with torch.no_grad(), {HALF}:\n    PASS"),
    "its value within": evaluating("with torch.no_grad(), Timer() as t:\n    PASS\n    return right / n", "# over"),
    "decorated": evaluating(f"with {HALF}:\n    PASS", above="@torch.no_grad()\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_it_becomes_a_module_that_runs_the_same(text):
    result = check_same(text, "module")
    assert "divide_batches" not in result and "on_device(" not in result
    assert ("enable_grad" in result or "grad_enabled" in result) is False


def test_what_becomes_of_it():
    text = enter_by_hand(Facts(SAME["two"]))
    assert text.split("for epoch in range(2):\n")[1] == indent(
        "total = 0.0\ncontexts = contextlib.ExitStack()\nt = contexts.enter_context(Timer())\n"
        f"name = contexts.enter_context(told('y'))\n{STEP}print(name)\ncontexts.close()\n"
        "print(f'{epoch} {total:.6f}')\n",
        "    ",
    )  # fmt: skip


def test_autocast_of_an_evaluation_goes_around_each_batch():
    text = enter_by_hand(Facts(SAME["an evaluation in autocast"]))
    assert f"    with torch.no_grad():\n        for x, y in test_loader:\n            with {HALF}:\n" in text
    assert "ExitStack" not in text


@pytest.mark.parametrize(
    "lines", [f"with {HALF}:\n    PASS", f"with torch.no_grad(), {HALF}:\n    PASS\n    model(xs)"]
)
def test_autocast_that_more_is_computed_in_is_entered(lines):
    assert "ExitStack" in enter_by_hand(Facts(evaluated(lines)))


def test_what_is_entered_last_is_left_first():
    text = enter_by_hand(Facts(training("with tqdm(train_loader) as bar, Timer():\n    PASS")))
    assert "    contexts.close()\n    bar.close()\n" in text


def test_comments_stay():
    text = enter_by_hand(Facts(training("# how long\nwith Timer():\n    # all of them\n    PASS\n    # done")))
    assert "# how long" in text and "# all of them" in text and "# done" in text


UNCHANGED = {
    "around the epochs": SAME["a timer"].replace("\nfor epoch", "\nif 1:\n  with Timer():\n   pass\nfor epoch"),
    "around a step": training("PASS").replace("    loss.backward()", "    with Timer(): loss.backward()"),
    "no gradients": evaluated("with torch.no_grad():\n    PASS"),
    "a bar": training("with tqdm(train_loader) as bar:\n    PASS").replace("in train_loader:", "in bar:"),
    "left in the middle": called("PASS").replace(
        indent(STEP, "    "), f"    with Timer():\n{indent(STEP, ' ' * 8)}        if total > 9:\n            return 9\n"
    ),
    "left for a while": called("PASS").replace(
        indent(STEP, "    "), f"    with Timer():\n{indent(STEP, ' ' * 8)}        yield total\n"
    ),
    "left for the next epoch": training("with Timer():\n    PASS\n    if total > 9: continue"),
    "what it gives is computed in it": evaluating("with Timer() as t:\n    PASS\n    return float(t.begun)", "# over"),
    "errors that are forgiven": training("with contextlib.suppress(ValueError):\n    PASS"),
    "by a function": training("with forgiving():\n    PASS"),
    "by a class": training("with Forgiving():\n    PASS"),
    "after the training": training("PASS") + "right = n = 0\n" + placed("with Timer():\n    PASS", EVALUATION),
    "something that has been made": training("timer = Timer()\nwith timer:\n    PASS"),
}  # fmt: skip
UNCHANGED["around the epochs"] = training("PASS").replace("\nfor epoch", "\nwith Timer():\n  for epoch")


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_others_stay(text):
    compile(text, "<string>", "exec")
    assert enter_by_hand(Facts(text)) is None


@pytest.mark.slow
def test_two_processes_print_what_one_does(tmp_path):
    texts = list(SAME.values())
    for kind, *printed in zip(SAME, by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        words, numbers = zip(*((re.sub(NUMBER, "#", each), re.findall(NUMBER, each)) for each in printed), strict=True)
        one, two = ([float(n) for n in each] for each in numbers)
        assert words[0] == words[1] and two == pytest.approx(one, abs=2e-3 if "autocast" in kind else 2e-5), kind


@pytest.mark.parametrize("items", ["torch.no_grad(), torch.cuda.amp.autocast()",
                                   "torch.cuda.amp.autocast(), torch.no_grad()"])  # fmt: skip
@pytest.mark.parametrize("step", ["torch.cuda.amp.autocast()", "contextlib.nullcontext(), torch.cuda.amp.autocast()"])
def test_autocast_beside_another_is_the_precision(items, step):
    text = evaluated(f"with {items}:\n    PASS").replace(
        "        loss = criterion(model(x), y)\n", f"        with {step}:\n            loss = criterion(model(x), y)\n"
    )
    result = migrate_text(text)
    assert 'precision="16-mixed"' in result.text and "autocast(" not in result.text, result.attention
    assert "def validation_step" in result.text


@pytest.mark.parametrize("items", ["torch.cuda.amp.autocast() as half, torch.no_grad()",
                                   "torch.cuda.amp.autocast(), torch.cuda.amp.autocast()"])  # fmt: skip
def test_autocast_that_has_a_name_is_kept(items):
    text = evaluated(f"with {items}:\n    PASS").replace(
        "        loss = criterion(model(x), y)\n",
        "        with torch.cuda.amp.autocast():\n            loss = criterion(model(x), y)\n",
    )
    result = migrate_text(text)
    assert "precision=" not in result.text and result.text.count("autocast(") == text.count("autocast(")
