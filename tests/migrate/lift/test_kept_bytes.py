"""A lift keeps the line ends, the indentation and the odd characters of its script."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ptmigrate.migrate.facts.text import lines_of
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

PLAIN = Path(__file__).parents[3] / "fixtures" / "plain"
SCRIPTS = ["digits.py", "warmup.py", "trainer_class.py", "forward_forward.py"]  # module, manual, a class, a kept loop
SMALL = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader([(torch.ones(2), torch.ones(1))] * 4, batch_size=2)
for epoch in range(2):
    for x, y in data:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("a\\u2028b\\x0cc", loss.item())
    torch.save(model.state_dict(), "/dev/null")
"""


def tabs(text: str) -> str:
    return re.sub(r"(?m)^(?: {4})+", lambda m: "\t" * (len(m.group()) // 4), text)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    "variant",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\n", "\r"),
        tabs,
        lambda t: t.replace("\ndef ", "\n\f\ndef "),
    ],
    ids=["CRLF", "CR", "tabs", "form feeds"],
)
def test_the_result_has_them_as_the_script_does(script, variant):
    text = (PLAIN / script).read_text()
    plain, result = migrate_text(text), migrate_text(variant(text))
    assert result.plan == plain.plan
    assert [line for line in lines_of(result.text) if line.strip()] == [
        line for line in lines_of(variant(plain.text)) if line.strip()
    ]
    ends = set(re.findall(r"\r\n|\r|\n", variant(text)))
    assert set(re.findall(r"\r\n|\r|\n", result.text)) == ends
    assert migrate_text(result.text).text == result.text


def test_other_separators_in_a_string_end_no_line():
    text = SMALL.replace("\\u2028", "\u2028").replace("\\x0c", "\x0c")
    assert "a\u2028b\x0cc" in check_same(text, "module")


@pytest.mark.parametrize("unit", ["\t", "  ", "   "])
def test_new_blocks_are_indented_as_the_script_is(unit):
    result = check_same(SMALL.replace("    ", unit), "module")
    margins = {len(line) - len(line.lstrip()) for line in lines_of(result) if line.strip()}
    assert {m % len(unit) for m in margins} == {0}
    assert f"\n{unit}def training_step" in result


def test_a_save_on_the_line_of_its_condition():
    text = SMALL.replace("    torch.save", "    if epoch % 2: torch.save")
    assert "if epoch % 2: rank_zero_save" in check_same(text, "module")


def test_an_unended_last_line():
    result = migrate_text(SMALL.rstrip("\n"))
    assert result.plan == "module"
    assert not result.text.endswith("\n")
    ast.parse(result.text)


def test_results_do_not_hang_on_the_order_of_sets():
    program = (
        "import sys\nfrom ptmigrate.migrate.migrate import migrate_text\n"
        "for path in sys.argv[1:]:\n    print(migrate_text(open(path).read(), is_script='wine' not in path))\n"
    )
    paths = [str(PLAIN / name) for name in ("wine_nested.py", "trainer_class.py", "dcgan.py", "random_lengths.py")]
    said = {
        subprocess.run(
            [sys.executable, "-c", program, *paths],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


OVER_LINES = """import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4):
        optimizer.zero_grad()
        (((model(x) - y) ** 2).mean() +
         0.1 * model.weight.abs().sum()).backward()
        optimizer.step()
print(model.weight.sum().item())
"""


def test_a_loss_over_several_lines_keeps_its_parentheses():
    assert "(((self.model(x) - y) ** 2).mean() +\n" in check_same(OVER_LINES, "module")
