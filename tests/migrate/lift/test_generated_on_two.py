"""Training scripts put together from parts print on two processes, with --global-batch, what they printed on one.

A long form of it: FUZZ=1.
"""

import os
import random
import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_generated_scripts import SLOTS, script
from tests.migrate.printed_on_two import by_results
from tests.migrate.running import run

MANY = 200 if os.environ.get("FUZZ") else 24
SHARES = ("what the process sees", "the process's part")  # told: each process shows its own


def chosen(number):
    """Parts by the number of a script: the same ones every time, others where it is asked for a long form."""
    draw = random.Random(random.random() if os.environ.get("FUZZ") else number)
    parts = {slot: draw.choice(ways) for slot, ways in SLOTS.items()}
    if "BatchNorm" in parts["between"] and "Adam" in parts["optimizer"]:
        parts["between"] = "nn.ReLU()"  # a bias before a batch norm has no gradient but rounding: Adam takes its sign
    return parts


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = [script(chosen(number)) for number in range(MANY)]
    compared = 0
    for text, after in zip(texts, by_results(tmp_path, texts, limit=60 + 10 * MANY), strict=True):
        if any(words in note.message for words in SHARES for note in migrate_text(text).attention):
            continue
        compared += 1
        assert numbers(after) == pytest.approx(numbers(run(text).output), rel=1e-3, abs=1e-4), text
    assert compared > MANY / 2
