"""Snippets of what real scripts look like, each line labelled with what has to be found there: no more, no less.

A line that ends in `#~ PTM301 PTM410` has to be found by these rules, every other line by none. `# ======` starts a new
snippet; its `# only PTM3` says which rules it is about.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checking import findings

FOLDER = Path(__file__).parent / "labelled"
LABEL = re.compile(r"#~((?: PTM\d+)+)$")
ONLY = re.compile(r"^# only (.+)$", re.M)


def snippets():
    for path in sorted(FOLDER.glob("*.py")):
        for number, text in enumerate(re.split(r"^# ======.*\n", path.read_text(), flags=re.M)[1:], 1):
            yield pytest.param(text, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("text", list(snippets()))
def test_labelled(text):
    lines = text.splitlines()
    only = tuple(ONLY.search(text).group(1).split())
    wanted = {
        (number, code)
        for number, line in enumerate(lines, 1)
        if (label := LABEL.search(line))
        for code in label.group(1).split()
    }
    found = {(f.line, f.code) for f in findings(text) if f.code.startswith(only)}
    said = [f"{lines[n - 1].strip()}: {'missed' if (n, c) in wanted else 'wrong'} {c}" for n, c in wanted ^ found]
    assert not said, "\n".join(sorted(said))
    assert wanted or "nothing" in text, "a snippet with nothing to find says so"
