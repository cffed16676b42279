"""The strategy of docs/own-strategy.md, as a user would paste it: two processes train as one."""

import json
import re
from pathlib import Path

import pytest
from launching import SCRIPTS, run

from tests.forked import answers

PAGE = Path(__file__).parents[3] / "docs" / "own-strategy.md"
CELLS = ["fit", "accumulate", "clip", "manual", "validate", "predict"]
MAIN = """
import json, sys
sys.path.insert(0, {scripts!r})
from cells import Cells, Trainer
answers = Cells({strategy}).run({cells!r})
print(json.dumps(answers)) if Trainer(strategy={strategy}, accelerator="cpu").is_global_zero else None
"""


def code():
    return re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)[1]


def test_it_has_about_thirty_lines():
    body = code()[code().index("@register") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 33


@pytest.mark.parametrize("strategy", ["'by_hand'", pytest.param("ByHand('gloo')", marks=pytest.mark.slow)])
def test_two_processes_as_one(tmp_path, strategy):
    script = tmp_path / "mine.py"
    script.write_text(code() + MAIN.format(scripts=str(SCRIPTS), strategy=strategy, cells=CELLS))
    done = run(str(script), PTMIGRATE_DEVICES="2", PTMIGRATE_GLOBAL_BATCH="1")
    assert done.returncode == 0, done.stderr[-3000:]
    two, one = json.loads(done.stdout.splitlines()[-1]), answers("cells.py", 1, "single", *CELLS)
    assert "by_hand on 2 processes" in done.stderr
    for cell in CELLS:
        assert numbers(two[cell]) == pytest.approx(numbers(one[cell]), abs=1e-6), cell


def numbers(value):
    """All numbers of an answer, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [] if value is None else [value]
