"""Numbers that a step computes of those of its steps and epochs: every rank has the same."""

import ast

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.find import find, outline
from ptmigrate.migrate.lift.same_numbers import same_numbers
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_shared import HEAD
from tests.migrate.running import check_same

FUNCTIONS = """
import math
import random
import numpy as np

n, every, kept = 0, 2, []


def ramp(now, length=1.0):
    \"\"\"From 0 to 1.\"\"\"
    if length == 0:
        return 1.0
    phase = 1.0 - max(0.0, min(float(now), length)) / length
    return float(math.exp(-5.0 * phase * phase))


def twice(now):
    return 2 * ramp(now) + every


def drawn(now):
    return now + random.random()


def of_step():
    return len(kept)


def looped(now):
    for k in (1, 2):
        now += k
    return now


def endless(now):
    return endless(now - 1) if now > 0 else 0
"""
SCRIPT = (
    HEAD.format(function=FUNCTIONS)
    + """\
for epoch in range(3):
    for i, (a, b) in enumerate(loader):
        loss = (net(a).squeeze(1) - b).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        {body}
"""
)


def script(body):
    return SCRIPT.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "body",
    [
        "n = epoch * len(loader) + i",
        "n += 1",
        "m = i + 1\nn = m * every",
        "n = i if epoch % 2 else -i",
        "if i % every == 0:\n    n = i",
        "n = f'{epoch}/{i}'",
        "m = 0\nfor k in range(3):\n    m += every\nn = m",
        "n = math.exp(-i / 3)",
        "n = np.clip(epoch / 3, 0, 1)",
        "n = ramp(epoch, 2)",
        "n = 10 * twice(i + 1)",
        "n = ramp(epoch)\nm = n * 2",
    ],
)
def test_numbers_of_steps_are_the_same_everywhere(body):
    facts = Facts(script(body))
    assert "n" in same_numbers(facts, find(facts, outline(facts)).train)


@pytest.mark.parametrize(
    "body",
    [
        "n = len(a)",
        "n = loss.item()",
        "n = a",
        "m = a.size(0)\nn = m + 1",
        "n += 1\nn = n + b.sum()",
        "if loss < 1:\n    n = 1",
        "m = 0\nif loss < 1:\n    m = 1\nif m:\n    n = 2",
        "for k in a:\n    n += 1",
        "n = ramp(len(a))",
        "n = ramp(loss.item(), 2)",
        "n = ramp(epoch, a)",
        "n = np.random.rand()",
        "n = np.mean(i)",
        "n = drawn(i)",
        "kept.append(loss.item())\nn = of_step()",
        "n = looped(i)",
        "n = endless(i)",
        "import time\nn = time.time()",
        "n = torch.rand(1)",
        "n, m = i, a",
        "for n in range(3):\n    pass",
        "while loss > n:\n    n += 1",
    ],
)
def test_what_batches_or_anything_else_decides_is_not(body):
    facts = Facts(script(body))
    assert "n" not in same_numbers(facts, find(facts, outline(facts)).train)


BY_COUNT = "done = epoch * len(loader) + i\nif done % 2 == 0:\n    print(done, f'{loss.item():.6f}')"
BY_BATCH = "good = loss < 1\nif good:\n    print(f'{loss.item():.6f}')"


def test_a_mean_that_every_hundredth_batch_shows_is_of_the_whole_batch():
    result = check_same(script(BY_COUNT), "module")
    assert "{self.batch_mean(loss.item()):.6f}" in result
    assert not migrate_text(script(BY_COUNT)).attention


def test_a_mean_that_a_batch_decides_to_show_stays_the_process_own():
    result = check_same(script(BY_BATCH), "module")
    assert "batch_mean" not in result and ast.parse(result)


@pytest.mark.parametrize(
    ("body", "brought"),
    [
        ("m = i + 1\nn += loss.item() * m", "n += (loss.item() * m) * self.share"),
        ("m = i + 1\nn += m", "self.n += m\n"),
    ],
)
def test_a_sum_weighed_by_the_number_of_the_step_is_brought_together(body, brought):
    text = script(body) + "    print(f'{n:.5f}')\n    n = 0\n"
    result = check_same(text, "module")
    assert brought in result and "divide_batches" not in result


def test_a_mean_weighed_by_a_count_of_steps_is_a_mean_and_no_guess():
    text = script("n += 1\nbest += loss.item() * n").replace("1e9", "0.0") + "    print(best)\n    best = 0.0\n"
    assert "(loss.item() * self.n) * self.share" in check_same(text, "module") and not migrate_text(text).attention
