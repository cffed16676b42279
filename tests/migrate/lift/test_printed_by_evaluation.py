"""What an evaluation's step prints: all lines on any number of processes, in the order of one."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

from tests.migrate.lift.test_printed_by_two import HEAD
from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

SCRIPT = """
import logging
from tqdm import tqdm

def test(loader):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        bar = tqdm(loader, disable=True)
        for i, (x, y) in enumerate(bar):
            loss = criterion(model(x), y)
            total += loss.item()
            n += len(x)
            EACH
    print("mean", total / n)

for epoch in range(2):
    model.train()
    for x, y in train:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    test(valid)
"""
DIVIDED = {
    "a line for each batch": "print('batch', i, loss.item())",
    "now and then": "if i % 2: print(f'{i}: {loss.item():.5f}', end=' ')",
    "in a loop": "for v in (0, 1):\n                print(v, loss.item())",
    "a number of batches": "print(i)",
    "a bar": "bar.set_postfix(loss=loss.item())",
    "the first batch": "if i == 0: print(loss.item())",
}
WHOLE = {
    "a sum so far": "print(i, total / n)",
    "a name for one": "so_far = total / n; bar.set_postfix(acc=so_far)\n            if i == 1: print(so_far)",
    "what is decided by one": "if total > 1: print(i)",
}


@pytest.mark.parametrize("name", DIVIDED)
def test_a_line_for_each_batch_is_printed_in_order(name):
    text = HEAD + SCRIPT.replace("EACH", DIVIDED[name])
    result = check_same(text, "module")
    assert "divide_validation" not in result
    assert ("self.in_order(self.print, " in result) is (name not in ("a bar", "the first batch"))
    assert not migrate_text(text).attention


@pytest.mark.parametrize("name", WHOLE)
def test_a_sum_so_far_is_that_of_all_batches(name):
    result = check_same(HEAD + SCRIPT.replace("EACH", WHOLE[name]), "module")
    assert "in_order" not in result and "divide_validation = False" in result


SHOWN = (
    "logging.info('%f', loss.item())",
    "tqdm.write(f'{loss.item()}')",
    "bar.set_postfix(acc=total / n)",
    "progress_bar(i, 'Loss: %f' % (total / n))",
)


@pytest.mark.parametrize("shown", SHOWN)
def test_what_is_shown_otherwise_is_told(shown):
    result = migrate_text(HEAD + SCRIPT.replace("EACH", shown))
    says = f"`{shown}` shows what the process sees: on several processes those are its own batches of the evaluation"
    assert says in [n.message for n in result.attention]


HELPERS = """
def say(i, value):
    text = f"{i}: {value:.4f}"
    print(text)

def warn(value):
    if value > 99:
        print("large", value)

def look(value):
    return round(value, 4)

def test(loader):
"""


@pytest.mark.parametrize(
    ("each", "told"),
    [
        ("say(i, loss.item())", True),
        ("say(i, 1.0)", True),
        ("if i == 0: say(i, loss.item())", False),
        ("warn(loss.item())", False),
        ("look(loss.item())", False),
    ],
)
def test_what_a_function_says_of_each_batch_is_told(each, told):
    text = HEAD + SCRIPT.replace("\ndef test(loader):\n", HELPERS).replace("EACH", each)
    check_same(text, "module")
    assert any("its own batches of the evaluation" in n.message for n in migrate_text(text).attention) is told


def test_a_bar_is_not_worth_whole_batches():
    each = "acc = total / n; bar.set_postfix(acc=acc); bar.set_description(f'{total:.3f}')"
    result = migrate_text(HEAD + SCRIPT.replace("EACH", each))
    assert "divide_validation" not in result.text and len(result.attention) == 2


@pytest.mark.parametrize("shown", ["logging.info('%d', len(train))", "bar.set_postfix(loss=loss.item())"])
def test_what_shows_no_samples_and_a_bar_are_not(shown):
    assert not migrate_text(HEAD + SCRIPT.replace("EACH", shown)).attention


def test_lightning_has_no_order():
    result = migrate_text(HEAD + SCRIPT.replace("EACH", "print(loss.item())"), Options(framework="lightning"))
    assert "in_order" not in result.text


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = [HEAD + SCRIPT.replace("EACH", each) for each in (*DIVIDED.values(), *WHOLE.values())]
    for before, after in zip(by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        numbers = [[float(n) for n in re.findall(r"[-\d.]*\d(?:e-?\d+)?", each)] for each in (before, after)]
        assert numbers[0] and numbers[1] == pytest.approx(numbers[0], rel=1e-4)


LOGS = ("logger.log(20, loss.item())", "run.log({'loss': loss.item()})", "log_metrics(loss.item())", "log(loss.item())")


@pytest.mark.parametrize("shown", LOGS)
def test_what_is_logged_is_told(shown):
    messages = [n.message for n in migrate_text(HEAD + SCRIPT.replace("EACH", shown)).attention]
    assert any(m.startswith(f"`{shown}` shows what the process sees") for m in messages)


LOGARITHMS = (
    "torch.log(loss)",
    "loss.log()",
    "F.log_softmax(model(x), 1)",
    "normal.log_prob(loss)",
    "math.log(loss.item())",
)


@pytest.mark.parametrize("computed", LOGARITHMS)
def test_a_logarithm_is_no_log(computed):
    messages = [n.message for n in migrate_text(HEAD + SCRIPT.replace("EACH", f"low = {computed}")).attention]
    assert not any("shows what the process sees" in m for m in messages)
